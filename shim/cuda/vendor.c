/* SPDX-License-Identifier: Apache-2.0 */
#include "../vendor.h"

#include "api.h"
#include "drain.h"

static void drain_begin(bool asks_only) { krex_gpu_drain_reset(&krex_cu_gpu, asks_only); }
static bool drain_done(void) { return krex_gpu_drain_advance(&krex_cu_gpu); }
static void drain_end(void) {} /* the events stay, for the next one */

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
