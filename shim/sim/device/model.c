/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

__extension__ typedef unsigned __int128 wide;

void model_default(struct model *m) {
    *m = (struct model){
        .name = "KREX simulated H20",
        .memory_bytes = UINT64_C(96) << 30,
        .context_bytes = UINT64_C(400) << 20,
        .multiprocessors = 78,
        .threads_per_mp = 2048,
        .blocks_per_mp = 32,
        .clock_khz = 1980000,
        .memory_clock_khz = 2619000,
        .bus_bits = 6144,
        .l2_bytes = UINT64_C(60) << 20,
        .major = 9,
        .sharing = SHARING_TIMESLICE,
        .slice_ns = 2000000,
        .switch_ns = 50000,
        .stream_slowdown_ppm = 900000,
        .context_slowdown_ppm = 1000000,
        .gap_ns = 1000,
        .copy_ns = 5000,
        .to_bytes_per_s = UINT64_C(50000000000),
        .from_bytes_per_s = UINT64_C(50000000000),
        .memory_bytes_per_s = UINT64_C(4000000000000),
        .kernel_beside_copy_ppm = 20000,
        .copy_beside_kernel_ppm = 50000,
        .context_ns = 120000000,
        .teardown_ns = 10000000,
        .load_ns = 50000,
        .load_bytes_per_s = UINT64_C(2000000000),
    };
}

void model_free(struct model *m) {
    for (size_t i = 0; i < m->rule_count; i++)
        free(m->rules[i].pattern);
    free(m->rules);
    m->rules = NULL;
    m->rule_count = m->rule_room = 0;
}

/* What holds for a kernel that no rule names. */
static char any[] = "*";
static const struct rule otherwise = {
    .pattern = any, .fixed_ns = NO_FIXED_NS, .launch_ns = 2000, .wave_ns = 20000};

const struct rule *model_rule(const struct model *m, const char *kernel) {
    for (size_t i = 0; i < m->rule_count; i++)
        if (fnmatch(m->rules[i].pattern, kernel, 0) == 0)
            return &m->rules[i];
    return &otherwise;
}

uint64_t model_bytes_ns(uint64_t bytes, uint64_t bytes_per_s) {
    wide ns = ((wide)bytes * 1000000000u + bytes_per_s - 1) / bytes_per_s;
    return ns < LONGEST_NS ? (uint64_t)ns : LONGEST_NS;
}

/* How many blocks a multiprocessor has room for at once. */
static uint64_t resident(const struct model *m, const struct rule *r, uint32_t threads) {
    uint64_t fit = m->threads_per_mp / (threads ? threads : 1);
    uint64_t most = r->blocks_per_mp ? r->blocks_per_mp : m->blocks_per_mp;
    if (fit > most)
        fit = most;
    return fit ? fit : 1;
}

/* Mixes all bits of x into all bits of the result (the finalizer of splitmix64). */
static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Evenly between one jitter less and one more. */
static uint64_t with_jitter(uint64_t ns, uint32_t ppm, uint64_t salt) {
    uint64_t span = (uint64_t)((wide)ns * ppm / 1000000);
    return span ? ns - span + mix(salt) % (2 * span + 1) : ns;
}

uint64_t model_kernel_ns(const struct model *m, const struct rule *r, uint64_t blocks,
                         uint32_t threads, uint64_t salt) {
    uint64_t at_once = m->multiprocessors * resident(m, r, threads);
    uint64_t waves = blocks / at_once + (blocks % at_once != 0);
    wide ns = r->fixed_ns != NO_FIXED_NS ? r->fixed_ns : r->launch_ns + (wide)waves * r->wave_ns;
    return with_jitter(ns < LONGEST_NS ? (uint64_t)ns : LONGEST_NS, r->jitter_ppm, salt);
}
