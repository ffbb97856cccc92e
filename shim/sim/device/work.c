/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

static struct engine *engine_of(const struct command *c) { return c->context->device->engine; }

static bool is_copy(const struct command *c) {
    return c->said.kind == KREX_SIM_COPY_TO || c->said.kind == KREX_SIM_COPY_FROM;
}

bool is_on_device(const struct command *c) {
    return c->state == RUNNING || c->state == OVERDUE || c->state == COPYING;
}

bool is_work(const struct krex_sim_command *said) {
    return said->kind >= KREX_SIM_RUN && said->kind <= KREX_SIM_FILL;
}

static void say(const struct command *c, enum krex_sim_what what, uint64_t end, uint32_t status) {
    const struct client *owner = c->context->client;
    struct krex_sim_result r = {
        .seq = c->said.seq, .start_ns = c->start, .end_ns = end, .status = status, .what = what};
    if (owner->gone)
        return;
    if (c->said.kind == KIND_LOAD)
        engine_of(c)->events.answer(owner->owner, status, c->context->number);
    else
        engine_of(c)->events.result(owner->owner, &r);
}

static void start_due(struct command *c, uint64_t at) {
    struct device *d = c->context->device;
    c->start = device_enter(d, at);
    if (is_copy(c)) {
        copy_queue(c);
    } else {
        compute_not_due(c);
        compute_start(c);
    }
    if (c->said.flags & KREX_SIM_HELD && c->said.kind == KREX_SIM_RUN)
        say(c, KREX_SIM_YOUR_TURN, 0, KREX_SIM_OK);
    device_leave(d);
}

static void fire(struct timer *t, uint64_t at) {
    struct command *c = OWNER(t, struct command, timer);
    if (c->state == LOADING)
        work_complete(c, at, KREX_SIM_OK);
    else
        start_due(c, at);
}

/* Nothing is before it any more. */
static void begin(struct command *c) {
    struct engine *e = engine_of(c);
    uint64_t gap = c->behind && !is_copy(c) ? e->model.gap_ns : 0;
    c->start = later(c->said.arrival_ns, c->behind);
    c->timer.fire = fire;
    switch (c->said.kind) {
    case KREX_SIM_EVENT:
        work_complete(c, c->start, KREX_SIM_OK);
        break;
    case KREX_SIM_HOST:
        c->state = HOST_TURN;
        say(c, KREX_SIM_YOUR_TURN, 0, KREX_SIM_OK);
        if (c->released)
            work_complete(c, c->start, KREX_SIM_OK);
        break;
    case KIND_LOAD:
        c->state = LOADING;
        heap_set(&e->timers, &c->timer, c->start + c->said.amount);
        break;
    default:
        c->state = DUE;
        if (!is_copy(c))
            compute_due(c);
        heap_set(&e->timers, &c->timer, later(c->said.arrival_ns, c->behind + gap));
    }
}

void work_begin_ready(struct engine *e) {
    struct command *c;
    while ((c = LIST_FIRST(&e->ready, struct command, listed))) {
        link_drop(&c->listed);
        begin(c);
    }
}

void work_report(const struct command *c, uint64_t end, uint32_t status) {
    const struct context *x = c->context;
    struct engine *e = engine_of(c);
    struct interval i = {
        .device = x->device->number,
        .context = x->number,
        .pid = x->client->pid,
        .kind = c->said.kind,
        .stream = c->said.stream,
        .seq = c->said.seq,
        .arrival_ns = c->said.arrival_ns,
        .start_ns = c->start,
        .end_ns = end,
        .status = status,
        .name = c->said.kind == KREX_SIM_RUN ? e->kernels[c->said.kernel].name : "",
    };
    e->events.interval(e->events.owner, &i);
}

/* Takes it from where its state says that it is. */
static void take_off(struct command *c) {
    switch (c->state) {
    case READY:
        link_drop(&c->listed);
        break;
    case DUE:
        if (!is_copy(c))
            compute_not_due(c);
        heap_drop(&engine_of(c)->timers, &c->timer);
        break;
    case LOADING:
        heap_drop(&engine_of(c)->timers, &c->timer);
        break;
    case QUEUED:
    case COPYING:
        copy_remove(c);
        break;
    case RUNNING:
    case OVERDUE:
        compute_remove(c);
        break;
    case WAITING:
    case HOST_TURN:
        break;
    }
}

void work_complete(struct command *c, uint64_t end, uint32_t status) {
    bool seen = is_on_device(c) || c->state == LOADING;
    if (!seen && c->state != HOST_TURN)
        c->start = end;
    if (seen)
        work_report(c, end, status);
    take_off(c);
    say(c, KREX_SIM_COMPLETE, end, status);
    order_drop(c, end);
}

void work_host_done(struct command *c, uint64_t at) {
    struct device *d = c->context->device;
    c->released = true;
    if (c->state == HOST_TURN) {
        work_complete(c, later(c->start, at), KREX_SIM_OK);
    } else if (c->state == OVERDUE && c->fault != FAULT_HANG) {
        device_enter(d, at);
        compute_release(c);
        device_leave(d);
    }
}

void work_abort(struct context *x, uint32_t status, uint64_t end, bool on_device) {
    for (struct link *l = x->all.next, *next; l != &x->all; l = next) {
        struct command *c = LISTED(l, struct command, in_all);
        next = l->next; /* one that is complete takes only itself out of the list */
        if (on_device || !is_on_device(c))
            work_complete(c, end, status);
    }
}
