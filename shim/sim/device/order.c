/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command waits for: the one before it in its stream; the legacy stream's last one, if its
 * stream is one that synchronises with that; those that it names. A command of the legacy stream, and
 * one behind everything, wait to be the first in a list of all that came before: that takes no search
 * however many streams there are.
 */
#include <stdlib.h>

#include "grow.h"
#include "inside.h"

enum { STREAMS_KEPT = 1024 };

/* Streams end without a word: those with nothing under way go when there are many, unless a gap has
 * still to be kept behind their last one. */
static void forget_idle_streams(struct context *x) {
    struct table old = x->streams;
    x->streams = (struct table){0};
    for (size_t i = 0; i < old.size; i++) {
        struct stream *s = old.places[i].thing;
        if (!s)
            continue;
        if (s->under_way || s == x->legacy ||
            s->end + x->device->engine->model.gap_ns > x->device->now)
            table_put(&x->streams, old.places[i].key, s);
        else
            free(s);
    }
    table_free(&old);
}

static struct stream *stream_of(struct context *x, uint32_t number) {
    struct stream *s = table_find(&x->streams, (uint64_t)number + 1);
    if (s)
        return s;
    if (x->streams.count >= STREAMS_KEPT && 2 * (x->streams.count + 1) > x->streams.size)
        forget_idle_streams(x);
    s = make(sizeof *s);
    table_put(&x->streams, (uint64_t)number + 1, s);
    return s;
}

static void wait_for(struct command *c, struct edge **free_edge, struct command *before) {
    if (!before || before == c)
        return;
    struct edge *e = (*free_edge)++;
    e->waiter = c;
    e->next = before->waiters;
    e->link = &before->waiters;
    if (e->next)
        e->next->link = &e->next;
    before->waiters = e;
    c->pending++;
}

static void unhook(struct edge *e) {
    if (!e->link)
        return;
    *e->link = e->next;
    if (e->next)
        e->next->link = e->link;
    e->link = NULL;
}

static void satisfied(struct command *c, uint64_t end) {
    c->behind = later(c->behind, end);
    if (--c->pending)
        return;
    c->state = READY;
    list_append(&c->context->device->engine->ready, &c->listed);
}

static struct command *new_command(struct context *x, const struct krex_sim_command *said) {
    struct engine *e = x->device->engine;
    struct command *c = e->spare;
    if (c)
        e->spare = c->next_spare;
    else
        c = make(sizeof *c);
    *c = (struct command){.said = *said, .context = x};
    link_init(&c->listed);
    link_init(&c->in_all);
    link_init(&c->in_ordered);
    return c;
}

static void join_ordered(struct command *c, struct edge **edge) {
    struct context *x = c->context;
    bool legacy = c->stream == x->legacy;
    if (!legacy && !(c->said.flags & KREX_SIM_BLOCKING))
        return;
    c->waits_ordered = legacy && !list_empty(&x->ordered);
    c->pending += c->waits_ordered;
    c->behind = later(c->behind, legacy ? x->ordered_end : x->legacy->end);
    if (!legacy)
        wait_for(c, edge, x->legacy->tail);
    list_append(&x->ordered, &c->in_ordered);
}

static void join_all(struct command *c) {
    struct context *x = c->context;
    bool everything = c->said.flags & KREX_SIM_ALL;
    c->waits_all = everything && !list_empty(&x->all);
    c->pending += c->waits_all;
    if (everything)
        c->behind = later(c->behind, x->end);
    list_append(&x->all, &c->in_all);
}

static void join_stream(struct command *c, struct edge **edge) {
    struct stream *s = c->stream = stream_of(c->context, c->said.stream);
    c->behind = s->end;
    wait_for(c, edge, s->tail);
    s->tail = c;
    s->under_way++;
    join_ordered(c, edge);
}

struct command *order_take(struct context *x, const struct krex_sim_command *said) {
    struct client *owner = x->client;
    struct command *c = new_command(x, said);
    struct edge *edge = c->edges;
    c->pending = 1; /* until all is known that it waits for */
    if (said->kind != KIND_LOAD) {
        join_stream(c, &edge);
        for (int i = 0; i < KREX_SIM_AFTER; i++)
            wait_for(c, &edge, table_find(&owner->commands, said->after[i]));
        table_put(&owner->commands, said->seq, c);
        owner->under_way++;
    }
    join_all(c);
    satisfied(c, 0);
    return c;
}

/* Whoever waited to be the first in a list, and is now. */
static void leave_all(struct context *x, struct command *c) {
    link_drop(&c->in_all);
    struct command *first = LIST_FIRST(&x->all, struct command, in_all);
    if (first && first->waits_all) {
        first->waits_all = false;
        satisfied(first, x->end);
    }
}

static void leave_ordered(struct context *x, struct command *c) {
    if (list_empty(&c->in_ordered))
        return;
    link_drop(&c->in_ordered);
    struct command *first = LIST_FIRST(&x->ordered, struct command, in_ordered);
    if (first && first->waits_ordered) {
        first->waits_ordered = false;
        satisfied(first, x->ordered_end);
    }
}

static void leave_stream(struct command *c, uint64_t end) {
    struct stream *s = c->stream;
    if (!s)
        return;
    s->end = later(s->end, end);
    s->under_way--;
    if (s->tail == c)
        s->tail = NULL;
    table_drop(&c->context->client->commands, c->said.seq);
    c->context->client->under_way--;
}

void order_drop(struct command *c, uint64_t end) {
    struct context *x = c->context;
    struct engine *e = x->device->engine;
    x->end = later(x->end, end);
    if (!list_empty(&c->in_ordered))
        x->ordered_end = later(x->ordered_end, end);
    for (int i = 0; i < EDGES; i++)
        unhook(&c->edges[i]);
    leave_stream(c, end);
    while (c->waiters) {
        struct edge *edge = c->waiters;
        unhook(edge);
        satisfied(edge->waiter, end);
    }
    leave_ordered(x, c);
    leave_all(x, c);
    c->next_spare = e->spare;
    e->spare = c;
    if (list_empty(&x->all))
        context_emptied(x, end);
}
