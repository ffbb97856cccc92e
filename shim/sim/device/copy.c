/* SPDX-License-Identifier: Apache-2.0
 *
 * The copy engines, one each way: all contexts queue at the same two, first come first served.
 */
#include "inside.h"

bool copy_is_busy(const struct device *d) {
    return !list_empty(&d->copies[ENGINE_TO].queue) || !list_empty(&d->copies[ENGINE_FROM].queue);
}

void copy_settle(struct device *d) {
    for (int i = 0; i < ENGINES; i++)
        pace_settle(&d->copies[i].pace, d->now);
}

static uint64_t copy_ns(const struct command *c) {
    const struct model *m = &c->context->device->engine->model;
    bool to = c->said.kind == KREX_SIM_COPY_TO;
    return m->copy_ns +
           model_bytes_ns(c->said.amount, to ? m->to_bytes_per_s : m->from_bytes_per_s);
}

/* The first one in the queue, if there is one, goes on the engine. */
static void begin_first(struct device *d, struct copies *k) {
    struct command *c = LIST_FIRST(&k->queue, struct command, listed);
    if (!c)
        return;
    c->state = COPYING;
    c->start = d->now;
    k->end = k->pace.work + copy_ns(c) * WORK;
    d->engine->occupied++;
}

static struct copies *engine_for(const struct command *c) {
    return &c->context->device->copies[c->said.kind == KREX_SIM_COPY_TO ? ENGINE_TO : ENGINE_FROM];
}

void copy_queue(struct command *c) {
    struct copies *k = engine_for(c);
    bool first = list_empty(&k->queue);
    c->state = QUEUED;
    list_append(&k->queue, &c->listed);
    if (first)
        begin_first(c->context->device, k);
}

void copy_remove(struct command *c) {
    struct device *d = c->context->device;
    bool first = c->state == COPYING;
    link_drop(&c->listed);
    if (!first)
        return;
    d->engine->occupied--;
    begin_first(d, engine_for(c));
}

void copy_plan(struct device *d) {
    const struct model *m = &d->engine->model;
    for (int i = 0; i < ENGINES; i++) {
        struct copies *k = &d->copies[i];
        uint64_t beside = compute_is_busy(d) ? m->copy_beside_kernel_ppm : 0;
        k->pace.slow_ppm = list_empty(&k->queue) ? 0 : PPM + beside;
        if (k->pace.slow_ppm)
            heap_set(&d->engine->timers, &k->timer, pace_when(&k->pace, k->end));
        else
            heap_drop(&d->engine->timers, &k->timer);
    }
}

/* Set anew with each change: so it fires when the first one is at its end. */
static void fire(struct timer *t, uint64_t at) {
    struct copies *k = OWNER(t, struct copies, timer);
    struct command *c = LIST_FIRST(&k->queue, struct command, listed);
    struct device *d = c->context->device;
    uint64_t now = device_enter(d, at);
    k->pace.work = k->end;
    work_complete(c, now, KREX_SIM_OK);
    device_leave(d);
}

void copy_init(struct device *d) {
    for (int i = 0; i < ENGINES; i++) {
        link_init(&d->copies[i].queue);
        d->copies[i].timer.fire = fire;
    }
}
