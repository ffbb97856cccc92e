/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of the model: what a device is, and how long what takes on it. docs/sim.md explains
 * each; krex/sim/model.toml has the same defaults, and a test keeps them alike.
 */
#ifndef KREX_SIM_MODEL_H
#define KREX_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LONGEST_NS (UINT64_C(1) << 50) /* of anything: 13 days */
#define NO_FIXED_NS UINT64_MAX

enum sharing { SHARING_TIMESLICE, SHARING_CONCURRENT };

enum fault { FAULT_NONE, FAULT_ILLEGAL_ADDRESS, FAULT_TIMEOUT, FAULT_HANG, FAULT_LOST };

/* How long a kernel takes, by its name; the first rule whose pattern fits. */
struct rule {
    char *pattern;
    uint64_t fixed_ns; /* or NO_FIXED_NS: by the number of waves */
    uint64_t launch_ns;
    uint64_t wave_ns;
    uint32_t blocks_per_mp; /* 0: as many as the threads in a block allow */
    uint32_t jitter_ppm;
    enum fault fault;
};

struct model {
    char name[96];
    uint64_t memory_bytes;
    uint64_t context_bytes;
    uint64_t largest_bytes; /* of an allocation; 0: no limit but the memory */
    uint64_t multiprocessors;
    uint64_t threads_per_mp;
    uint64_t blocks_per_mp;
    uint64_t clock_khz, memory_clock_khz, bus_bits, l2_bytes;
    uint64_t major, minor;

    uint64_t sharing; /* enum sharing */
    uint64_t slice_ns, switch_ns;
    uint64_t stream_slowdown_ppm;  /* of a kernel, by each other one of its context beside it */
    uint64_t context_slowdown_ppm; /* by each other one of any context, where all run at once */
    uint64_t gap_ns;               /* between what a kernel waited for and its start */

    uint64_t copy_ns; /* of each copy, beside its bytes */
    uint64_t to_bytes_per_s, from_bytes_per_s, memory_bytes_per_s;
    uint64_t kernel_beside_copy_ppm, copy_beside_kernel_ppm;

    uint64_t context_ns, teardown_ns;
    uint64_t load_ns, load_bytes_per_s;

    struct rule *rules;
    size_t rule_count, rule_room;
};

void model_default(struct model *);

/* Adds what a file in the flat form says; false, and what is wrong with which line, if it is wrong. */
bool model_read(struct model *, const char *path, char *why, size_t size);

/* Adds one line of that form. NULL, or what is wrong with it. */
const char *model_line(struct model *, char *line);

void model_free(struct model *);

const struct rule *model_rule(const struct model *, const char *kernel);

/* How long a kernel takes alone. `salt` decides on the jitter. */
uint64_t model_kernel_ns(const struct model *, const struct rule *, uint64_t blocks,
                         uint32_t threads, uint64_t salt);

/* How long so many bytes take. */
uint64_t model_bytes_ns(uint64_t bytes, uint64_t bytes_per_s);

#endif
