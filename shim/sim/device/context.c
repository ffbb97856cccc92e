/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts are made one at a time on the whole machine, as the drivers do it. One that ends first
 * finishes its work; one whose process is gone loses at once what has not started, and keeps the
 * device a little longer with what has.
 */
#include <stdlib.h>

#include "grow.h"
#include "inside.h"

static struct engine *engine_of(const struct context *x) { return x->device->engine; }

struct context *context_of(const struct client *c, uint32_t number) {
    struct context *x = table_find(&c->engine->contexts, number);
    return x && x->client == c && x->life == CONTEXT_LIVE ? x : NULL;
}

static void answer(const struct context *x, uint32_t status) {
    if (!x->client->gone)
        engine_of(x)->events.answer(x->client->owner, status, x->number);
}

static void free_client_if_done(struct client *c) {
    if (!c->gone || !list_empty(&c->contexts))
        return;
    link_drop(&c->listed);
    table_free(&c->commands);
    free(c);
}

static void free_context(struct context *x) {
    struct engine *e = engine_of(x);
    struct client *owner = x->client;
    x->device->memory_used -= x->memory;
    heap_drop(&e->timers, &x->timer);
    link_drop(&x->of_client);
    link_drop(&x->of_device);
    link_drop(&x->queued);
    link_drop(&x->group.waits);
    table_drop(&e->contexts, x->number);
    for (size_t i = 0; i < x->streams.size; i++)
        free(x->streams.places[i].thing);
    table_free(&x->streams);
    heap_free(&x->group.ends);
    free(x);
    free_client_if_done(owner);
    e->events.gone(e->events.owner);
}

/* Begins with the first one in the queue, if nobody did. */
static void make_next(struct engine *e, uint64_t now) {
    struct context *x = LIST_FIRST(&e->making, struct context, queued);
    if (!x || x->life == CONTEXT_MAKING)
        return;
    x->life = CONTEXT_MAKING;
    x->began = now;
    heap_set(&e->timers, &x->timer, now + e->model.context_ns);
}

static void report(const struct context *x, uint64_t end, uint32_t status) {
    struct engine *e = engine_of(x);
    struct interval i = {.device = x->device->number,
                         .context = x->number,
                         .pid = x->client->pid,
                         .kind = KIND_CONTEXT,
                         .arrival_ns = x->asked,
                         .start_ns = x->began,
                         .end_ns = end,
                         .status = status,
                         .name = ""};
    e->events.interval(e->events.owner, &i);
}

static uint32_t charge(struct context *x, uint64_t bytes) {
    struct device *d = x->device;
    if (bytes > d->engine->model.memory_bytes - d->memory_used)
        return KREX_SIM_OUT_OF_MEMORY;
    d->memory_used += bytes;
    x->memory += bytes;
    return KREX_SIM_OK;
}

static uint32_t finish_making(struct context *x) {
    if (x->client->gone)
        return KREX_SIM_ENDED;
    return x->device->lost ? KREX_SIM_LOST : charge(x, engine_of(x)->model.context_bytes);
}

static void made(struct context *x, uint64_t at) {
    struct engine *e = engine_of(x);
    uint32_t status = finish_making(x);
    link_drop(&x->queued);
    make_next(e, at);
    report(x, at, status);
    answer(x, status);
    if (status == KREX_SIM_OK)
        x->life = CONTEXT_LIVE;
    else
        free_context(x);
}

static void torn_down(struct context *x, uint64_t at) {
    uint64_t now = device_enter(x->device, at);
    work_abort(x, KREX_SIM_ENDED, now, true);
    device_leave(x->device);
    answer(x, KREX_SIM_OK);
    free_context(x);
}

static void fire(struct timer *t, uint64_t at) {
    struct context *x = OWNER(t, struct context, timer);
    if (x->life == CONTEXT_MAKING)
        made(x, at);
    else
        torn_down(x, at);
}

static struct context *new_context(struct client *c, struct device *d, uint64_t now) {
    struct engine *e = c->engine;
    struct context *x = make(sizeof *x);
    x->client = c;
    x->device = d;
    x->asked = now;
    x->timer.fire = fire;
    while (!x->number || table_find(&e->contexts, x->number))
        x->number = ++e->last_context;
    link_init(&x->all);
    link_init(&x->ordered);
    link_init(&x->group.waits);
    x->legacy = make(sizeof *x->legacy);
    table_put(&x->streams, 1, x->legacy);
    table_put(&e->contexts, x->number, x);
    list_append(&c->contexts, &x->of_client);
    list_append(&d->contexts, &x->of_device);
    list_append(&e->making, &x->queued);
    return x;
}

void engine_context(struct client *c, uint32_t device, uint64_t now) {
    struct engine *e = c->engine;
    engine_run(e, now);
    struct device *d = device < e->device_count ? &e->devices[device] : NULL;
    if (!d || d->lost) {
        e->events.answer(c->owner, d ? KREX_SIM_LOST : KREX_SIM_INVALID, 0);
        return;
    }
    new_context(c, d, now);
    make_next(e, now);
}

void context_emptied(struct context *x, uint64_t now) {
    if (x->life == CONTEXT_ENDING && (!x->timer.place || x->timer.at > now))
        heap_set(&engine_of(x)->timers, &x->timer, now);
}

void engine_context_end(struct client *c, uint32_t context, uint64_t now) {
    engine_run(c->engine, now);
    struct context *x = context_of(c, context);
    if (!x) {
        c->engine->events.answer(c->owner, KREX_SIM_INVALID, 0);
        return;
    }
    x->life = CONTEXT_ENDING;
    if (list_empty(&x->all))
        torn_down(x, now);
}

static void client_left(struct context *x, uint64_t now) {
    struct device *d = x->device;
    if (x->life == CONTEXT_MAKING)
        return; /* that is not called off */
    link_drop(&x->queued);
    x->life = CONTEXT_ENDING;
    x->status = KREX_SIM_ENDED;
    uint64_t at = device_enter(d, now);
    heap_set(&d->engine->timers, &x->timer, at + d->engine->model.teardown_ns);
    work_abort(x, KREX_SIM_ENDED, at, false);
    device_leave(d);
    if (list_empty(&x->all))
        context_emptied(x, at);
}

void engine_client_gone(struct client *c, uint64_t now) {
    engine_run(c->engine, now);
    c->gone = true;
    for (struct link *l = c->contexts.next, *next; l != &c->contexts; l = next) {
        next = l->next;
        client_left(LISTED(l, struct context, of_client), now);
    }
    work_begin_ready(c->engine);
    free_client_if_done(c);
}

void context_failed(struct context *x, uint32_t status, uint64_t now) {
    if (x->status == KREX_SIM_OK)
        x->status = status;
    work_abort(x, status, now, true);
}

void device_lost(struct device *d, uint64_t now) {
    d->lost = true;
    for (struct link *l = d->contexts.next; l != &d->contexts; l = l->next)
        context_failed(LISTED(l, struct context, of_device), KREX_SIM_LOST, now);
}

void engine_load(struct client *c, uint32_t context, uint64_t bytes, uint64_t now) {
    struct engine *e = c->engine;
    engine_run(e, now);
    struct context *x = context_of(c, context);
    if (!x || x->status != KREX_SIM_OK) {
        e->events.answer(c->owner, x ? x->status : KREX_SIM_INVALID, context);
        return;
    }
    uint64_t ns = e->model.load_ns + model_bytes_ns(bytes, e->model.load_bytes_per_s);
    struct krex_sim_command load = {
        .kind = KIND_LOAD, .flags = KREX_SIM_ALL, .arrival_ns = now, .amount = ns};
    order_take(x, &load);
    work_begin_ready(e);
}

uint32_t engine_allocate(struct client *c, uint32_t context, uint64_t bytes) {
    struct context *x = context_of(c, context);
    uint64_t largest = c->engine->model.largest_bytes;
    if (!x)
        return KREX_SIM_INVALID;
    if (x->status != KREX_SIM_OK)
        return x->status;
    return largest && bytes > largest ? KREX_SIM_OUT_OF_MEMORY : charge(x, bytes);
}

uint32_t engine_release(struct client *c, uint32_t context, uint64_t bytes) {
    struct context *x = context_of(c, context);
    if (!x || bytes > x->memory - c->engine->model.context_bytes)
        return KREX_SIM_INVALID;
    x->memory -= bytes;
    x->device->memory_used -= bytes;
    return KREX_SIM_OK;
}
