/* SPDX-License-Identifier: Apache-2.0
 *
 * The model of the devices, in device time. It does no input or output and has no clock: who uses it
 * says what happened when, and is told what came of it. So it gives the same for the same, however
 * late it is asked.
 *
 * Each device is a simulation of its own, that never goes back: something that arrives for a device
 * that is past it already is taken for having arrived at that moment, as far as it has to do with
 * what the device's engines did meanwhile.
 */
#ifndef KREX_SIM_ENGINE_H
#define KREX_SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"
#include "sim/wire.h"

struct engine;
struct client; /* a process that may have contexts */

/* A kind in the log beside those of enum krex_sim_kind. */
enum { KIND_CONTEXT = 64, KIND_LOAD };

/* A status in the log beside those of enum krex_sim_status: it was not over when the log ended. */
enum { STATUS_RUNNING = 64 };

/* What was on a device. */
struct interval {
    uint32_t device, context;
    int pid;
    uint32_t kind, stream;
    uint64_t seq;
    uint64_t arrival_ns, start_ns, end_ns;
    uint32_t status;
    const char *name; /* of a kernel, else "" */
};

struct engine_events {
    void *owner;
    void (*interval)(void *owner, const struct interval *);
    void (*result)(void *client_owner, const struct krex_sim_result *);
    /* To engine_context, engine_context_end or engine_load, of which a client has one at a time. */
    void (*answer)(void *client_owner, uint32_t status, uint32_t context);
    void (*gone)(void *owner); /* a context has: engine_has may have changed */
};

struct engine *engine_new(const struct model *, uint32_t devices, uint64_t seed,
                          const struct engine_events *);
void engine_free(struct engine *);

uint64_t engine_next(const struct engine *); /* when something happens by itself; NEVER: nothing */
void engine_run(struct engine *, uint64_t until);
bool engine_is_idle(const struct engine *);      /* nothing is on any device */
bool engine_has(const struct engine *, int pid); /* a context of that process */
/* Ends the log: what is still on a device is said to run until now. */
void engine_report_running(struct engine *, uint64_t now);

struct client *engine_client(struct engine *, void *owner, int pid);
/* Its process is gone, and nothing is to be said to its owner any more. */
void engine_client_gone(struct client *, uint64_t now);

/* False: no proper client does that, and it is to be cut off. */
bool engine_submit(struct client *, const struct krex_sim_command *);

void engine_context(struct client *, uint32_t device, uint64_t now);
void engine_context_end(struct client *, uint32_t context, uint64_t now);
void engine_load(struct client *, uint32_t context, uint64_t bytes, uint64_t now);
uint32_t engine_allocate(struct client *, uint32_t context, uint64_t bytes);
uint32_t engine_release(struct client *, uint32_t context, uint64_t bytes);
uint32_t engine_memory(const struct engine *, uint32_t device, uint64_t *free, uint64_t *all);
uint32_t engine_kernel(struct engine *, const char *name, uint32_t *number);

/* A process with contexts on a device. */
struct resident {
    int pid;
    uint64_t bytes;     /* of the memory, that of the contexts themselves included */
    uint64_t submitted; /* work, ever */
    uint32_t running;   /* work that is on the device now */
};

/* The one with the lowest pid from this one on. False: there is none. */
bool engine_resident(const struct engine *, uint32_t device, int from, struct resident *);

#endif
