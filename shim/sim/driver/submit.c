/* SPDX-License-Identifier: Apache-2.0
 *
 * Into the ring. A command that is under way is in the table, by its sequence number, and in its
 * context's list, as submitted. HOST_DONE is neither: it has no result, and needs only a place in the
 * ring, which the device empties at once; so it can't be stuck behind a full launch queue.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomic.h"
#include "channel.h"
#include "futex.h"
#include "module.h"
#include "worker.h"

enum {
    BUCKETS = 1024,
    FULL_US = 20 /* between two looks at a ring that the device has not emptied */
};

static struct drv_command *table[BUCKETS];
static struct drv_command *spare;
static uint64_t last_seq;
static unsigned under_way;

struct drv_command *drv_command_find(uint64_t seq) {
    struct drv_command *c = table[seq % BUCKETS];
    while (c && c->seq != seq)
        c = c->chain;
    return c;
}

bool drv_under_way(uint64_t seq) { return drv_command_find(seq) != NULL; }

struct drv_command *drv_command_any(void) {
    for (unsigned i = 0; under_way && i < BUCKETS; i++)
        if (table[i])
            return table[i];
    return NULL;
}

static struct drv_command *make(struct drv_stream *stream, const struct drv_work *work) {
    struct drv_command *c = spare;
    if (c)
        spare = c->chain;
    else if (!(c = malloc(sizeof *c)))
        return NULL;
    *c = (struct drv_command){.stream = stream, .references = 1, .work = *work};
    return c;
}

static void list(struct drv_command *c) {
    struct drv_context *context = c->stream->context;
    c->seq = ++last_seq;
    c->chain = table[c->seq % BUCKETS];
    table[c->seq % BUCKETS] = c;
    c->older = context->newest;
    if (c->older)
        c->older->younger = c;
    else
        context->oldest = c;
    context->newest = c;
    c->stream->references++;
    c->stream->submitted++;
    c->stream->last = c->seq;
    if (c->work.event)
        c->work.event->pending = c->seq;
    under_way++;
}

void drv_command_unlist(struct drv_command *c) {
    struct drv_context *context = c->stream->context;
    struct drv_command **place = &table[c->seq % BUCKETS];
    while (*place != c)
        place = &(*place)->chain;
    *place = c->chain;
    *(c->older ? &c->older->younger : &context->oldest) = c->younger;
    *(c->younger ? &c->younger->older : &context->newest) = c->older;
    c->stream->done++;
    under_way--;
    drv_stream_release(c->stream);
    drv_command_release(c);
}

void drv_command_release(struct drv_command *c) {
    if (--c->references)
        return;
    drv_work_drop(&c->work);
    c->chain = spare;
    spare = c;
}

static bool publish(struct krex_sim_command *command) {
    struct krex_sim_channel *channel = drv_channel();
    uint64_t at = channel->submitted;
    while (at - krex_load_acquire(&channel->taken) >= KREX_SIM_RING && !drv_lost())
        usleep(FULL_US);
    if (drv_lost())
        return false;
    command->arrival_ns = krex_now_ns();
    channel->command[at % KREX_SIM_RING] = *command;
    krex_store_release(&channel->submitted,
                       at + 1); /* the device's acquire makes the command seen */
    drv_channel_ring();
    return true;
}

void drv_submit_done(uint64_t seq) {
    drv_lock();
    struct krex_sim_command done = {.seq = ++last_seq, .kind = KREX_SIM_HOST_DONE, .amount = seq};
    publish(&done);
    drv_unlock();
}

static struct krex_sim_command as_wired(const struct drv_command *c, const uint64_t *after,
                                        unsigned count) {
    const struct drv_work *w = &c->work;
    struct krex_sim_command wired = {
        .seq = c->seq,
        .kind = w->kind,
        .flags = w->flags | (c->stream->blocking ? KREX_SIM_BLOCKING : 0),
        .context = c->stream->context->wire,
        .stream = c->stream->number,
        .amount = w->amount,
        .blocks = w->blocks,
        .threads = w->threads,
        .kernel = w->kernel,
    };
    for (unsigned i = 0; i < count && i < KREX_SIM_AFTER; i++)
        wired.after[i] = after[i];
    return wired;
}

/* Locked. What stands against submitting to it now. */
static enum drv_result check(const struct drv_stream *stream) {
    const struct drv_context *context = stream->context;
    if (drv_lost())
        return DRV_LOST;
    if (!context->live)
        return DRV_CONTEXT_DESTROYED;
    return context->error;
}

static enum drv_result start(struct drv_stream *stream, struct drv_work *work,
                             const uint64_t *after, unsigned count, uint64_t *seq) {
    struct drv_command *c = make(stream, work);
    if (!c)
        return DRV_OUT_OF_MEMORY;
    *work = (struct drv_work){0};
    list(c);
    if (seq)
        *seq = c->seq;
    struct krex_sim_command wired = as_wired(c, after, count);
    if (publish(&wired))
        return DRV_OK;
    drv_command_unlist(c);
    return DRV_LOST;
}

enum drv_result drv_submit(struct drv_stream *stream, struct drv_work *work, const uint64_t *after,
                           unsigned count, uint64_t *seq) {
    drv_loading_wait(stream->context);
    drv_lock();
    if (seq)
        *seq = 0;
    enum drv_result r = check(stream);
    while (!r && !stream->capture && under_way >= KREX_SIM_RING) {
        drv_wait_change();
        r = check(stream);
    }
    if (!r && stream->capture)
        r = drv_capture_append(stream, work);
    else if (!r && !(r = drv_capture_check_submit(stream)))
        r = start(stream, work, after, count, seq);
    drv_work_drop(work);
    drv_unlock();
    return r;
}

enum drv_result drv_wait_seq(struct drv_context *context, uint64_t seq) {
    drv_lock();
    while (drv_under_way(seq) && !drv_lost())
        drv_wait_change();
    enum drv_result r = drv_lost() ? DRV_LOST : context->error;
    drv_unlock();
    return r;
}

bool drv_work_copy(struct drv_work *to, const struct drv_work *from) {
    *to = *from;
    if (from->owned) {
        to->owned = malloc(from->owned_bytes ? from->owned_bytes : 1);
        if (!to->owned) {
            *to = (struct drv_work){0};
            return false;
        }
        memcpy(to->owned, from->owned, from->owned_bytes);
        if (to->kind == KREX_SIM_RUN)
            to->launch.parameters = to->owned;
        else
            to->copy.from = (uintptr_t)to->owned;
    }
    if (to->event)
        to->event->references++;
    return true;
}

void drv_work_drop(struct drv_work *work) {
    free(work->owned);
    if (work->event)
        drv_event_release(work->event);
    *work = (struct drv_work){0};
}
