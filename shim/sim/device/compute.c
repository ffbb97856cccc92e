/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a device. Those of one group run at once, the slower the more there are; groups take
 * turns. Where contexts share there is one group. One whose next kernel is due in a moment keeps its
 * turn. A switch takes its time only where one group made another wait: what runs alone is not slowed.
 */
#include "inside.h"

static struct group *group_of(const struct command *c) {
    struct device *d = c->context->device;
    return d->engine->model.sharing == SHARING_CONCURRENT ? &d->compute.all : &c->context->group;
}

bool compute_is_busy(const struct device *d) { return d->compute.current != NULL; }

void compute_settle(struct device *d) {
    if (d->compute.current)
        pace_settle(&d->compute.current->pace, d->now);
}

static uint64_t kernel_ns(const struct command *c) {
    const struct engine *e = c->context->device->engine;
    const struct krex_sim_command *said = &c->said;
    uint64_t bytes = said->kind == KREX_SIM_COPY_WITHIN ? 2 * said->amount : said->amount;
    if (said->kind != KREX_SIM_RUN)
        return e->model.copy_ns + model_bytes_ns(bytes, e->model.memory_bytes_per_s);
    if (said->flags & KREX_SIM_EXPLICIT)
        return said->amount < LONGEST_NS ? said->amount : LONGEST_NS;
    const struct kernel *k = &e->kernels[said->kernel];
    return model_kernel_ns(&e->model, k->rule, said->blocks, said->threads,
                           e->seed ^ k->hash ^ said->seq);
}

static enum fault fault_of(const struct command *c) {
    const struct engine *e = c->context->device->engine;
    return c->said.kind == KREX_SIM_RUN ? e->kernels[c->said.kernel].rule->fault : FAULT_NONE;
}

void compute_due(struct command *c) { group_of(c)->due++; }

void compute_not_due(struct command *c) { group_of(c)->due--; }

void compute_start(struct command *c) {
    struct compute *k = &c->context->device->compute;
    struct group *g = group_of(c);
    c->context->device->engine->occupied++;
    c->fault = fault_of(c);
    c->state = c->fault == FAULT_HANG ? OVERDUE : RUNNING;
    if (c->state == RUNNING)
        heap_set(&g->ends, &c->timer, g->pace.work + kernel_ns(c) * WORK);
    g->running++;
    if (g != k->current && g != k->coming && list_empty(&g->waits))
        list_append(&k->turns, &g->waits);
}

void compute_release(struct command *c) {
    struct group *g = group_of(c);
    c->state = RUNNING;
    heap_set(&g->ends, &c->timer, g->pace.work);
}

void compute_remove(struct command *c) {
    struct group *g = group_of(c);
    c->context->device->engine->occupied--;
    heap_drop(&g->ends, &c->timer);
    if (!--g->running)
        link_drop(&g->waits);
}

static void take_turn(struct device *d, struct group *g) {
    d->compute.current = g;
    d->compute.turn_began = g->pace.since = d->now;
}

static void stop_current(struct compute *k) {
    if (k->current)
        k->current->pace.slow_ppm = 0;
    k->current = NULL;
}

static void begin_switch(struct device *d, struct group *to) {
    stop_current(&d->compute);
    d->compute.coming = to;
    d->compute.switched_at = d->now + d->engine->model.switch_ns;
}

static struct group *next_turn(struct compute *k) {
    struct group *g = LIST_FIRST(&k->turns, struct group, waits);
    if (g)
        link_drop(&g->waits);
    return g;
}

/* Who has the device now. */
static void choose(struct device *d) {
    struct compute *k = &d->compute;
    if (k->coming && !k->coming->running)
        k->coming = next_turn(k);
    bool left = k->current && !k->current->running && !k->current->due;
    if (k->coming || (k->current && !left))
        return;
    stop_current(k);
    struct group *g = next_turn(k);
    if (g && left)
        begin_switch(d, g);
    else if (g)
        take_turn(d, g);
}

static uint64_t slowness(const struct device *d, const struct group *g) {
    const struct model *m = &d->engine->model;
    bool shared = m->sharing == SHARING_CONCURRENT;
    uint64_t each = shared ? m->context_slowdown_ppm : m->stream_slowdown_ppm;
    uint64_t slow = PPM + (g->running > 1 ? (g->running - 1) * each : 0);
    return copy_is_busy(d) ? slow * (PPM + m->kernel_beside_copy_ppm) / PPM : slow;
}

void compute_plan(struct device *d) {
    struct compute *k = &d->compute;
    uint64_t at = NEVER;
    choose(d);
    k->slice_at = NEVER;
    if (k->current) {
        struct group *g = k->current;
        uint64_t slice_end = k->turn_began + d->engine->model.slice_ns;
        g->pace.slow_ppm = slowness(d, g);
        if (heap_first(&g->ends))
            at = pace_when(&g->pace, heap_next(&g->ends));
        if (!list_empty(&k->turns))
            k->slice_at = later(slice_end, d->now);
        at = at < k->slice_at ? at : k->slice_at;
    } else if (k->coming) {
        at = k->switched_at;
    }
    if (at == NEVER)
        heap_drop(&d->engine->timers, &k->timer);
    else
        heap_set(&d->engine->timers, &k->timer, at);
}

/* Its time is over. */
static void over(struct command *c, uint64_t now) {
    struct context *x = c->context;
    enum fault fault = c->fault;
    if (c->said.flags & KREX_SIM_HELD && c->said.kind == KREX_SIM_RUN && !c->released) {
        heap_drop(&group_of(c)->ends, &c->timer);
        c->state = OVERDUE;
    } else if (fault == FAULT_LOST) {
        device_lost(x->device, now);
    } else if (fault == FAULT_NONE) {
        work_complete(c, now, KREX_SIM_OK);
    } else {
        uint32_t status =
            fault == FAULT_TIMEOUT ? KREX_SIM_LAUNCH_TIMEOUT : KREX_SIM_ILLEGAL_ADDRESS;
        work_complete(c, now, status);
        context_failed(x, status, now);
    }
}

static void end_finished(struct device *d) {
    struct group *g = d->compute.current;
    while (heap_next(&g->ends) <= g->pace.work)
        over(OWNER(heap_first(&g->ends), struct command, timer), d->now);
}

static void end_slice(struct device *d) {
    struct compute *k = &d->compute;
    struct group *g = k->current;
    if (list_empty(&k->turns) || k->slice_at > d->now)
        return;
    begin_switch(d, next_turn(k));
    if (g->running)
        list_append(&k->turns, &g->waits);
}

static void fire(struct timer *t, uint64_t at) {
    struct device *d = OWNER(t, struct device, compute.timer);
    struct compute *k = &d->compute;
    device_enter(d, at);
    if (k->coming) {
        take_turn(d, k->coming);
        k->coming = NULL;
    } else if (k->current) {
        end_finished(d);
        end_slice(d);
    }
    device_leave(d);
}

void compute_init(struct device *d) {
    link_init(&d->compute.turns);
    link_init(&d->compute.all.waits);
    d->compute.timer.fire = fire;
}
