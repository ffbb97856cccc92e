/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the model share.
 *
 *   order.c    what a command waits for, and who waits for it
 *   work.c     a command's way, from when nothing is before it to its end
 *   compute.c  the kernels of a device: who runs, how fast, until when
 *   copy.c     the copy engines
 *   context.c  contexts from their making to when nothing is left of them
 *   resident.c who has contexts, and what it has there
 *
 * An event is handled whole before the next: a device's clocks are brought up to it (device_enter), it
 * changes what is on the engines, and what that means for the next event is worked out (device_leave).
 * What is ready meanwhile waits in a list until then, and gets a time; so nothing calls itself.
 */
#ifndef KREX_SIM_INSIDE_H
#define KREX_SIM_INSIDE_H

#include "engine.h"
#include "heap.h"
#include "list.h"
#include "table.h"

/* A clock of work done, which may be slower than time. Work counts in 1/1024 ns, so that what is
 * shared in fractions of it is not lost; alone it is exact. */
enum { WORK = 1024, PPM = 1000000 };
struct pace {
    uint64_t work, since;
    uint64_t slow_ppm; /* PPM: as fast as time; 0: it stands still */
};

static inline uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

void pace_settle(struct pace *, uint64_t now);
uint64_t pace_when(const struct pace *, uint64_t work);

/* Kernels that run at once: those of one context, or where contexts share, all. */
struct group {
    struct pace pace;
    struct heap ends;  /* by work */
    uint32_t running;  /* those too that are past their time, and have to wait for the host */
    uint32_t due;      /* those that start in a moment: its turn lasts until then */
    struct link waits; /* for its turn */
};

struct compute {
    struct group *current; /* NULL: none, or during a switch */
    struct group *coming;  /* during a switch */
    struct link turns;     /* groups that wait for theirs */
    uint64_t turn_began;
    uint64_t switched_at, slice_at;
    struct timer timer;
    struct group all; /* where contexts share */
};

enum { ENGINE_TO, ENGINE_FROM, ENGINES };

struct copies {
    struct pace pace;
    struct link queue; /* the first one is under way */
    uint64_t end;      /* of its work */
    struct timer timer;
};

struct device {
    struct engine *engine;
    uint32_t number;
    bool lost;
    uint64_t now; /* up to here it is history */
    uint64_t memory_used;
    struct compute compute;
    struct copies copies[ENGINES];
    struct link contexts;
};

struct kernel {
    char *name;
    uint64_t hash;
    const struct rule *rule;
};

struct engine {
    struct model model;
    uint64_t seed;
    struct engine_events events;
    struct heap timers;
    struct link ready;  /* commands that nothing is before */
    struct link making; /* contexts; the first one is being made */
    struct table contexts;
    struct link clients; /* connected, or with contexts still */
    uint32_t last_context;
    struct kernel *kernels;
    size_t kernel_count, kernel_room;
    struct table kernel_numbers; /* by hash */
    uint32_t occupied;           /* commands on any device */
    uint32_t device_count;
    struct command *spare;
    struct device devices[KREX_SIM_DEVICES];
};

struct client {
    struct engine *engine;
    void *owner;
    int pid;
    bool gone;
    uint64_t last_seq;
    uint32_t under_way;
    uint64_t worked[KREX_SIM_DEVICES]; /* commands ever that are work, on each */
    struct table commands;             /* under way, by their numbers */
    struct link contexts;
    struct link listed;
};

struct stream {
    uint32_t under_way;
    struct command *tail; /* NULL: nothing is under way */
    uint64_t end;         /* of its last one that is complete */
};

enum life { CONTEXT_QUEUED, CONTEXT_MAKING, CONTEXT_LIVE, CONTEXT_ENDING };

struct context {
    struct client *client;
    struct device *device;
    uint32_t number;
    enum life life;
    uint32_t status; /* what its commands end with from now on, unless OK */
    uint64_t asked;  /* for, when */
    uint64_t began;  /* its making */
    uint64_t memory;
    struct table streams; /* by number + 1 */
    struct stream *legacy;
    struct link all;           /* its commands under way, as they came */
    struct link ordered;       /* those of the legacy stream and of those that it waits for */
    uint64_t end, ordered_end; /* of the last one complete in each list */
    struct group group;
    struct timer timer; /* its making, or its teardown */
    struct link of_client, of_device, queued;
};

struct command;
struct edge {
    struct command *waiter;
    struct edge *next, **link; /* among those who wait for the same; link NULL: for nothing */
};
enum { EDGES = 2 + KREX_SIM_AFTER };

enum state {
    WAITING,   /* for others */
    READY,     /* in the engine's list */
    DUE,       /* its timer stands for its start */
    QUEUED,    /* at a copy engine */
    COPYING,   /* first there */
    RUNNING,   /* a kernel, or what counts as one */
    OVERDUE,   /* likewise, past its time: until the host says so, or for ever */
    HOST_TURN, /* the host's */
    LOADING,
};

struct command {
    struct krex_sim_command said;
    struct context *context;
    struct stream *stream; /* NULL: of a load */
    enum state state;
    uint32_t pending;              /* how many things it waits for */
    bool waits_all, waits_ordered; /* two of them: to be the first in that list */
    bool released;                 /* HOST_DONE was said */
    enum fault fault;
    uint64_t behind; /* the end of what it waited for; 0: nothing */
    uint64_t start;
    struct timer timer;
    struct edge edges[EDGES];
    struct edge *waiters;
    struct link in_all, in_ordered;
    struct link listed; /* by its state */
    struct command *next_spare;
};

/* order.c */
struct command *order_take(struct context *, const struct krex_sim_command *);
void order_drop(struct command *, uint64_t end); /* it is complete: those behind it move up */

/* work.c */
void work_begin_ready(struct engine *);
void work_complete(struct command *, uint64_t end, uint32_t status);
void work_report(const struct command *, uint64_t end, uint32_t status);
void work_host_done(struct command *, uint64_t at);
void work_abort(struct context *, uint32_t status, uint64_t end, bool on_device);
bool is_on_device(const struct command *);
bool is_work(const struct krex_sim_command *); /* takes time on the device */

/* compute.c */
void compute_init(struct device *);
void compute_settle(struct device *);
void compute_due(struct command *);
void compute_not_due(struct command *);
void compute_start(struct command *);
void compute_release(struct command *); /* one that is held may end */
void compute_remove(struct command *);
void compute_plan(struct device *);
bool compute_is_busy(const struct device *);

/* copy.c */
void copy_init(struct device *);
void copy_settle(struct device *);
void copy_queue(struct command *);
void copy_remove(struct command *);
void copy_plan(struct device *);
bool copy_is_busy(const struct device *);

/* context.c */
struct context *context_of(const struct client *, uint32_t number);
void context_failed(struct context *, uint32_t status, uint64_t now);
void context_emptied(struct context *, uint64_t now); /* the last of its commands is complete */
void device_lost(struct device *, uint64_t now);

/* engine.c */
uint64_t device_enter(struct device *, uint64_t at); /* the time there, which may be later */
void device_leave(struct device *);

#endif
