/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that the tests launch, as a compiler makes an AMD code object of them:
 * kernels.gfx90a.hsaco. The simulated devices know what they compute by their names, and their
 * parameters by the object's metadata.
 *
 *   clang-14 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -O2 \
 *       -Xclang -finclude-default-header -Wl,-s -o kernels.gfx90a.hsaco kernels.cl
 */
#define INDEX                                                                                      \
    (__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +                     \
     __builtin_amdgcn_workitem_id_x())

#define KERNEL kernel __attribute__((amdgpu_flat_work_group_size(1, 1024)))

__attribute__((visibility("protected"))) global int counter = 7;

KERNEL void nothing(void) {}

KERNEL void krex_spin(long ns) {
    for (long i = 0; i < ns; i++)
        __builtin_amdgcn_s_sleep(1);
}

KERNEL void krex_wait_flag(volatile global int *flag) {
    while (!*flag)
        __builtin_amdgcn_s_sleep(1);
}

KERNEL void krex_fill_f32(global float *to, float value, int n) {
    if (INDEX < n)
        to[INDEX] = value;
}

KERNEL void krex_copy_f32(global float *to, global const float *from, int n) {
    if (INDEX < n)
        to[INDEX] = from[INDEX];
}

KERNEL void krex_axpy_f32(int n, float a, global const float *x, global float *y) {
    if (INDEX < n)
        y[INDEX] = a * x[INDEX] + y[INDEX];
}

KERNEL void krex_add_f32(global const float *x, global const float *y, global float *to, int n) {
    if (INDEX < n)
        to[INDEX] = x[INDEX] + y[INDEX];
}

KERNEL void krex_sum_f32(global const float *from, global float *to, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += from[i];
    to[0] = sum;
}

KERNEL void krex_scale_f32(global float *x, float a, int n) {
    if (INDEX < n)
        x[INDEX] *= a;
}

/* Not one that the devices know. It has memory that its block shares, and a limit of its block. */
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void blocks_of_64(global int *to) {
    local int shared[64];
    shared[__builtin_amdgcn_workitem_id_x()] = counter;
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
    __builtin_amdgcn_s_barrier();
    to[INDEX] = shared[63 - __builtin_amdgcn_workitem_id_x()];
}
