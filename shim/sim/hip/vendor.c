/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim/driver/image.h"

enum { SHARED_BYTES = 64 << 10 };

/* As ROCm has it, a number of the board's: here the half that differs. */
static void name_uuid(const char uuid[16], char *to, size_t size) {
    const unsigned char *u = (const unsigned char *)uuid;
    snprintf(to, size, "GPU-%02x%02x%02x%02x%02x%02x%02x%02x", u[8], u[9], u[10], u[11], u[12],
             u[13], u[14], u[15]);
}

const struct drv_vendor drv_vendor = {
    .read_image = drv_amd_read,
    .visible_first = "ROCR_VISIBLE_DEVICES",
    .visible = {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
    .name_uuid = name_uuid,
    .largest_y_z = 65536,
    .largest_block_z = 1024,
    .shared_bytes = SHARED_BYTES,
    .extra_end = (void *)3,
    .multiprocessor = {2048, 32, 131072, SHARED_BYTES, 0, 64},
    .faults_abort = true,
};
