/* SPDX-License-Identifier: Apache-2.0 */
#include "../vendor.h"

#include "api.h"

static const struct krex_vendor opencl = {
    .name = "opencl",
    .drain_begin = krex_cl_drain_begin,
    .drain_done = krex_cl_drain_done,
    .drain_end = krex_cl_drain_end,
    .cares = krex_cl_cares,
    .owns = krex_cl_owns,
    .find = krex_cl_find_any,
    .hand_out = krex_cl_hand_out,
    .stand_in = krex_cl_stand_in,
};

KREX_VENDOR(opencl);
