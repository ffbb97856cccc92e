/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "inside.h"

enum { KERNELS = 1 << 20 };

uint64_t device_enter(struct device *d, uint64_t at) {
    if (d->now < at)
        d->now = at;
    compute_settle(d);
    copy_settle(d);
    return d->now;
}

void device_leave(struct device *d) {
    work_begin_ready(d->engine);
    compute_plan(d);
    copy_plan(d);
}

static void device_init(struct engine *e, uint32_t number) {
    struct device *d = &e->devices[number];
    d->engine = e;
    d->number = number;
    link_init(&d->contexts);
    compute_init(d);
    copy_init(d);
}

struct engine *engine_new(const struct model *model, uint32_t devices, uint64_t seed,
                          const struct engine_events *events) {
    struct engine *e = make(sizeof *e);
    e->model = *model;
    e->seed = seed;
    e->events = *events;
    e->device_count = devices;
    link_init(&e->ready);
    link_init(&e->making);
    link_init(&e->clients);
    for (uint32_t i = 0; i < devices; i++)
        device_init(e, i);
    return e;
}

/* What clients there are is gone first: engine_client_gone, and what follows from it. */
void engine_free(struct engine *e) {
    struct command *c;
    while ((c = e->spare)) {
        e->spare = c->next_spare;
        free(c);
    }
    for (size_t i = 0; i < e->kernel_count; i++)
        free(e->kernels[i].name);
    for (uint32_t i = 0; i < e->device_count; i++)
        heap_free(&e->devices[i].compute.all.ends);
    free(e->kernels);
    table_free(&e->kernel_numbers);
    table_free(&e->contexts);
    heap_free(&e->timers);
    free(e);
}

uint64_t engine_next(const struct engine *e) { return heap_next(&e->timers); }

void engine_run(struct engine *e, uint64_t until) {
    while (engine_next(e) <= until) {
        struct timer *first = heap_first(&e->timers);
        uint64_t at = first->at;
        heap_drop(&e->timers, first);
        first->fire(first, at);
        work_begin_ready(e);
    }
}

bool engine_is_idle(const struct engine *e) { return !e->occupied; }

bool engine_has(const struct engine *e, int pid) {
    for (const struct link *l = e->clients.next; l != &e->clients; l = l->next) {
        const struct client *c = LISTED(l, struct client, listed);
        if (c->pid == pid && !list_empty(&c->contexts))
            return true;
    }
    return false;
}

static void report_context(struct context *x, uint64_t now) {
    for (struct link *l = x->all.next; l != &x->all; l = l->next) {
        struct command *c = LISTED(l, struct command, in_all);
        if (is_on_device(c))
            work_report(c, now, STATUS_RUNNING);
    }
}

void engine_report_running(struct engine *e, uint64_t now) {
    for (uint32_t i = 0; i < e->device_count; i++) {
        struct link *contexts = &e->devices[i].contexts;
        for (struct link *l = contexts->next; l != contexts; l = l->next)
            report_context(LISTED(l, struct context, of_device), now);
    }
}

struct client *engine_client(struct engine *e, void *owner, int pid) {
    struct client *c = make(sizeof *c);
    c->engine = e;
    c->owner = owner;
    c->pid = pid;
    link_init(&c->contexts);
    list_append(&e->clients, &c->listed);
    return c;
}

/* What its commands end with that are not even taken. */
static uint32_t refusal(const struct client *c, const struct krex_sim_command *said) {
    const struct context *x = context_of(c, said->context);
    if (!x || (said->kind == KREX_SIM_RUN && said->kernel >= c->engine->kernel_count))
        return KREX_SIM_INVALID;
    return x->status;
}

static void refuse(const struct client *c, const struct krex_sim_command *said, uint32_t status) {
    struct krex_sim_result r = {.seq = said->seq,
                                .start_ns = said->arrival_ns,
                                .end_ns = said->arrival_ns,
                                .status = status,
                                .what = KREX_SIM_COMPLETE};
    c->engine->events.result(c->owner, &r);
}

static bool is_proper(const struct client *c, const struct krex_sim_command *said) {
    return said->kind >= KREX_SIM_RUN && said->kind <= KREX_SIM_HOST_DONE &&
           said->seq > c->last_seq && c->under_way < KREX_SIM_RING;
}

static void host_done(const struct client *c, const struct krex_sim_command *said) {
    struct command *done = table_find(&c->commands, said->amount);
    if (done)
        work_host_done(done, said->arrival_ns);
}

static void take(struct client *c, const struct krex_sim_command *said) {
    struct context *x = context_of(c, said->context);
    c->worked[x->device->number] += is_work(said);
    order_take(x, said);
}

bool engine_submit(struct client *c, const struct krex_sim_command *said) {
    struct engine *e = c->engine;
    engine_run(e, said->arrival_ns);
    if (said->kind == KREX_SIM_HOST_DONE) {
        host_done(c, said);
    } else {
        if (!is_proper(c, said))
            return false;
        c->last_seq = said->seq;
        uint32_t status = refusal(c, said);
        if (status != KREX_SIM_OK)
            refuse(c, said, status);
        else
            take(c, said);
    }
    work_begin_ready(e);
    return true;
}

uint32_t engine_memory(const struct engine *e, uint32_t device, uint64_t *left, uint64_t *all) {
    if (device >= e->device_count)
        return KREX_SIM_INVALID;
    *all = e->model.memory_bytes;
    *left = *all - e->devices[device].memory_used;
    return e->devices[device].lost ? KREX_SIM_LOST : KREX_SIM_OK;
}

static uint64_t hash_of(const char *text) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h ? h : 1;
}

static uint32_t new_kernel(struct engine *e, const char *name, uint64_t hash) {
    e->kernels = grow(e->kernels, &e->kernel_room, e->kernel_count + 1, sizeof *e->kernels);
    struct kernel *k = &e->kernels[e->kernel_count];
    *k = (struct kernel){have(strdup(name)), hash, model_rule(&e->model, name)};
    return (uint32_t)e->kernel_count++;
}

/* The table has a kernel's number + 1, by the hash of its name; or by the next free number after. */
uint32_t engine_kernel(struct engine *e, const char *name, uint32_t *number) {
    uint64_t hash = hash_of(name), key = hash;
    uintptr_t known;
    for (; (known = (uintptr_t)table_find(&e->kernel_numbers, key)); key += key == NEVER ? 2 : 1) {
        *number = (uint32_t)known - 1;
        if (!strcmp(e->kernels[*number].name, name))
            return KREX_SIM_OK;
    }
    if (e->kernel_count == KERNELS)
        return KREX_SIM_INVALID;
    *number = new_kernel(e, name, hash);
    table_put(&e->kernel_numbers, key, (void *)((uintptr_t)*number + 1));
    return KREX_SIM_OK;
}
