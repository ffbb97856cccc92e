/* SPDX-License-Identifier: Apache-2.0
 *
 * What the vendor's structures say of a copy in three dimensions.
 */
#include "structs.h"

/* Kinds of memory. ROCm 5 begins to count at 0: there this is what it calls the device's. */
enum { HOST_5 = 0, HOST = 1, ARRAY_5 = 2, ARRAY = 10 };

/* One end of a copy. */
struct end {
    uint64_t at;
    size_t pitch, rows; /* bytes from row to row, rows from plane to plane */
    struct position begin;
};

static hipError_t set(struct drv_copy *c, const struct end *to, const struct end *from) {
    c->to_pitch = to->pitch ? to->pitch : c->width;
    c->from_pitch = from->pitch ? from->pitch : c->width;
    if (c->to_pitch < to->begin.x + c->width || c->from_pitch < from->begin.x + c->width)
        return hip_error(HIP_INVALID_VALUE);
    c->to_slice = c->to_pitch * (to->rows ? to->rows : c->rows);
    c->from_slice = c->from_pitch * (from->rows ? from->rows : c->rows);
    c->to = to->at + to->begin.z * c->to_slice + to->begin.y * c->to_pitch + to->begin.x;
    c->from =
        from->at + from->begin.z * c->from_slice + from->begin.y * c->from_pitch + from->begin.x;
    return hipSuccess;
}

hipError_t hip_copy_of_parms(const hipMemcpy3DParms *p, struct drv_copy *copy) {
    if (!p)
        return hip_error(HIP_INVALID_VALUE);
    if (p->src_array || p->dst_array)
        return hip_error(HIP_NOT_SUPPORTED);
    *copy = (struct drv_copy){
        .width = p->extent.width, .rows = p->extent.height, .planes = p->extent.depth};
    struct end to = {(uintptr_t)p->dst.ptr, p->dst.pitch, p->dst.ysize, p->dst_at};
    struct end from = {(uintptr_t)p->src.ptr, p->src.pitch, p->src.ysize, p->src_at};
    return set(copy, &to, &from);
}

static bool is_array(unsigned type, hipArray_t array) {
    return type == ARRAY || (type == ARRAY_5 && array);
}

static uint64_t choose(unsigned type, const void *host, hipDeviceptr_t device) {
    bool is_host = type == HOST_5 || (type == HOST && host);
    return (uintptr_t)(is_host ? host : device);
}

hipError_t hip_copy_of_solid(const HIP_MEMCPY3D *p, struct drv_copy *copy) {
    if (!p)
        return hip_error(HIP_INVALID_VALUE);
    if (is_array(p->src_type, p->src_array) || is_array(p->dst_type, p->dst_array))
        return hip_error(HIP_NOT_SUPPORTED);
    *copy = (struct drv_copy){.width = p->width, .rows = p->height, .planes = p->depth};
    struct end to = {.at = choose(p->dst_type, p->dst_host, p->dst_device),
                     .pitch = p->dst_pitch,
                     .rows = p->dst_height,
                     .begin = {p->dst_x, p->dst_y, p->dst_z}};
    struct end from = {.at = choose(p->src_type, p->src_host, p->src_device),
                       .pitch = p->src_pitch,
                       .rows = p->src_height,
                       .begin = {p->src_x, p->src_y, p->src_z}};
    return set(copy, &to, &from);
}
