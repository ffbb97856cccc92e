/* SPDX-License-Identifier: Apache-2.0
 *
 * A call that may wait inside the driver, such as a copy to pageable memory, stands there for as long
 * as the work before it takes. So it leaves the gate once it has passed it, and is waited for as what
 * it waits for is: a drain begins when none of them is inside any more. A thread that ends inside
 * one, or leaves it by a jump, keeps its process from being drained: that costs regions, never truth.
 */
#include "../vendor.h"

#include "api.h"
#include "drain.h"

static bool begun;

static void drain_begin(void) { begun = false; }

static bool drain_done(void) {
    /* Acquire: pairs with the call's end. What it submitted is there for the drain to find. */
    if (!begun && krex_load_acquire(&krex_cu_inside))
        return false;
    if (!begun)
        krex_cu_drain_begin();
    begun = true;
    return krex_cu_drain_done();
}

static void drain_end(void) {
    if (begun)
        krex_cu_drain_end();
}

static const struct krex_vendor cuda = {
    .name = "cuda",
    .drain_begin = drain_begin,
    .drain_done = drain_done,
    .drain_end = drain_end,
    .cares = krex_cu_cares,
    .owns = krex_cu_owns,
    .find = krex_cu_find_any,
    .hand_out = krex_cu_hand_out,
    .stand_in = krex_cu_stand_in,
};

KREX_VENDOR(cuda);
