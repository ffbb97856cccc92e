/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim/driver/image.h"

enum { SHARED_BYTES = 48 << 10 };

static void name_uuid(const char uuid[16], char *to, size_t size) {
    const unsigned char *u = (const unsigned char *)uuid;
    snprintf(to, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

const struct drv_vendor drv_vendor = {
    .read_image = drv_nvidia_read,
    .visible = {"CUDA_VISIBLE_DEVICES"},
    .name_uuid = name_uuid,
    .loading = "CUDA_MODULE_LOADING",
    .largest_y_z = 65535,
    .largest_block_z = 64,
    .shared_bytes = SHARED_BYTES,
    .multiprocessor = {2048, 32, 65536, 233472, 1024, 32},
};
