/* SPDX-License-Identifier: Apache-2.0 */
#include "../vendor.h"

#include "api.h"
#include "drain.h"

static void drain_begin(void) { krex_gpu_drain_reset(&krex_hip_gpu); }
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
