/* SPDX-License-Identifier: Apache-2.0
 *
 * For `krex eval overhead`: what the gate adds to a submission, in nanoseconds, on a board of its own,
 * in a process that is not on any other; and what a lookup takes.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "closer.h"
#include "futex.h"
#include "gate.h"
#include "vendor.h"

#define EXPORT __attribute__((visibility("default")))
#define LEASE_NS UINT64_C(3600000000000)

static const struct krex_vendor *find_vendor(const char *name) {
    KREX_EACH_VENDOR (v)
        if (!strcmp((*v)->name, name))
            return *v;
    return NULL;
}

static double ns_each(const struct krex_vendor *vendor, bool hooked, uint64_t times) {
    uint64_t start = krex_now_ns();
    vendor->stand_in(hooked, times);
    return (double)(krex_now_ns() - start) / (double)times;
}

/* One round: direct, direct again (the control), with the gate open, as the holder of a closed gate,
 * and there with a full fence in each submission instead of the closer's membarrier. */
static void measure(const struct krex_vendor *vendor, struct krex_board *board, int block,
                    uint64_t times, double ns[5]) {
    uint64_t epoch = krex_gate_epoch(board, 0);
    ns[0] = ns_each(vendor, false, times);
    ns[1] = ns_each(vendor, false, times);
    ns[2] = ns_each(vendor, true, times);
    krex_block_pass(board, block, epoch + 1);
    krex_gate_swap(board, 0, epoch);
    ns[3] = ns_each(vendor, true, times);
    krex_process.self_fenced = 1;
    ns[4] = ns_each(vendor, true, times);
    krex_process.self_fenced = 0;
    krex_gate_swap(board, 0, epoch + 1);
    krex_block_pass(board, block, 0);
}

/* Fills ns[rounds][5], in nanoseconds a call, each the mean of `times` calls. Returns 0, or a negative
 * errno: EINVAL if there is no such vendor, EBUSY if the process is on a board already, EPERM if the
 * kernel has no membarrier for it. */
EXPORT int krex_eval_overhead(const char *vendor_name, uint64_t times, uint32_t rounds,
                              double *ns) {
    const struct krex_vendor *vendor = find_vendor(vendor_name);
    if (!vendor)
        return -EINVAL;
    if (krex_process.generation)
        return -EBUSY;
    struct krex_board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return -errno;
    krex_board_init(board, "sim:0", 0);
    krex_board_lease(board, LEASE_NS);
    int block = krex_block_reserve(board, 0);
    int status = krex_gate_attach(board, (uint32_t)block);
    if (!status && krex_process.self_fenced)
        status = -EPERM;
    ns_each(vendor, true, 1000); /* the thread takes its word */
    for (uint32_t i = 0; i < rounds && !status; i++)
        measure(vendor, board, block, times, ns + (size_t)5 * i);
    krex_process.self_fenced = 0;
    krex_gate_detach();
    munmap(board, sizeof *board);
    return status;
}

/* Nanoseconds a lookup, as the mean of `times`: by our dlsym, or by that of libc. */
EXPORT double krex_eval_lookup(void *(*look_up)(void *, const char *), void *library,
                               const char *name, uint64_t times) {
    uint64_t start = krex_now_ns();
    for (uint64_t i = 0; i < times; i++)
        look_up(library, name);
    return (double)(krex_now_ns() - start) / (double)times;
}
