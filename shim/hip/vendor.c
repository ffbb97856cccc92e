/* SPDX-License-Identifier: Apache-2.0 */
#include "../vendor.h"

#include "api.h"
#include "drain.h"

/* A question too ends with the wait for the whole device: where all known streams are done, it takes a
 * moment; and a stream that is not known may have a long kernel. */
static void drain_begin(bool asks_only) {
    (void)asks_only;
    krex_gpu_drain_reset(&krex_hip_gpu, false);
}
static bool drain_done(void) { return krex_gpu_drain_advance(&krex_hip_gpu); }
static void drain_end(void) {}

static const struct krex_vendor hip = {
    .name = "hip",
    .drain_begin = drain_begin,
    .drain_done = drain_done,
    .drain_end = drain_end,
    .cares = krex_hip_cares,
    .owns = krex_hip_owns,
    .find = krex_hip_find_any,
    .hand_out = krex_hip_hand_out,
    .stand_in = krex_hip_stand_in,
};

KREX_VENDOR(hip);
