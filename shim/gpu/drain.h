/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains a process's contexts, whoever's they are: the list of them, who may be in the driver when,
 * and when all are drained. What is asked of a driver, and when its answer means that a context is
 * drained, is the vendor's (struct krex_gpu).
 *
 * None of these functions changes errno, and each may be called from any thread, but for those of the
 * drain, which are the drainer's. Context tickets are in ../ticket.h.
 */
#ifndef KREX_GPU_DRAIN_H
#define KREX_GPU_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct krex_gpu;

/* REFUSED: there is a capture that we have not seen; asking again would invalidate the next one. */
enum krex_gpu_state { KREX_GPU_ASKED, KREX_GPU_UNDER_EVENT, KREX_GPU_DRAINED, KREX_GPU_REFUSED };

enum { KREX_GPU_NO_PRIMARY = -1 };

/* What a vendor's drain has to be asked for: a context, or a device where work has none. */
struct krex_gpu_context {
    struct krex_gpu_context *next;
    const struct krex_gpu *vendor;
    void *handle;
    int primary_of; /* the device whose primary context it is, if that is known */
    void *event;    /* the vendor's, in that context; only the drainer's */
    enum krex_gpu_state state;
    uint32_t ending; /* how many calls are under way that may destroy it */
    bool again;      /* meanwhile it was told again: maybe of its successor, with the same handle */
    bool gone;       /* it is destroyed, but the drainer is in the driver for it */
};

struct krex_gpu {
    bool begun;     /* the drain; only the drainer's */
    bool asks_only; /* it may not wait in the driver */

    /* Of the drain; called by the drainer, without a lock. */

    /* Finds the driver, and sees to it that no capture forbids what visit does. False: not now. */
    bool (*prepare)(void);
    /* Asks the driver about one context; what has become of it. May wait in the driver if told so. */
    enum krex_gpu_state (*visit)(struct krex_gpu_context *context, bool may_wait);

    /* Of the captures (capture.h); called by any thread. */

    /* The handle that means another stream in each thread. */
    const void *per_thread_stream;
    /* The calling thread's context; NULL: none. */
    void *(*current)(void);
    bool (*is_capturing)(const void *stream);
};

/* A context that this process may submit to. Telling the same again is right, and costs a lock. NULL:
 * work is submitted to a context that cannot be found out, so this process is never reported as
 * drained again. */
void krex_gpu_context_made(const struct krex_gpu *vendor, void *handle, int primary_of);
/* NULL: none was told. */
void *krex_gpu_primary_of(const struct krex_gpu *vendor, int device);
/* Around a call that destroys the context, or may: the drain leaves it alone in between. `gone`: it is
 * destroyed. NULL does nothing. */
void krex_gpu_context_ending(const struct krex_gpu *vendor, void *handle);
void krex_gpu_context_ended(const struct krex_gpu *vendor, void *handle, bool gone);

/* Calls that may wait inside a driver, and are past the gate.
 *
 * Such a call, a copy to pageable memory for one, stands there for as long as the work before it takes.
 * So it leaves the gate once it has passed it, and is waited for as what it waits for is: a drain
 * begins when none of them is inside any more. A thread that ends inside one, or leaves it by a jump,
 * keeps its process from being drained: that costs regions, never truth. */
extern uint32_t krex_gpu_inside;

/* For a vendor's drain_begin and drain_done (../vendor.h): the questions begin when nothing is inside. */
void krex_gpu_drain_reset(struct krex_gpu *vendor, bool asks_only);
bool krex_gpu_drain_advance(struct krex_gpu *vendor);
/* The same, whatever is inside. */
void krex_gpu_drain_begin(const struct krex_gpu *vendor);
bool krex_gpu_drain_done(const struct krex_gpu *vendor);

/* Returns when the drainer is not in a driver, or has been for too long (false). As long as the caller
 * is in the counter of heavy calls, it does not go there again. */
bool krex_gpu_await_drainer(void);

#endif
