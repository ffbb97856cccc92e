/* SPDX-License-Identifier: Apache-2.0 */
#include "streams.h"

#include <stddef.h>

/* More at a time are forgotten, the ones first that were launched to longest ago. */
enum { STREAMS = 8 };

struct lately {
    const void *stream;
    uint64_t
        number; /* the last launch came after the record of this number, plus one; 0: it is only
                          a way from one stream to another */
    const void *event; /* recorded behind all that is in it; NULL: none since the last of that */
    /* The streams that came to wait for such an event: since the last launch, the first one and the
     * last; and since anything else came into it, by a wait of its own. */
    const void *first, *last, *way;
    bool used, is_waited_for, is_way;
    bool is_asked, is_null, is_blocking; /* what was said of it, once */
};

static __thread struct lately streams[STREAMS];
/* Whom to ask, since the thread's first record. A stream is asked about only by who is using it: later
 * it may be destroyed, and a driver crashes on the handle. */
static __thread bool (*orders_of)(const void *, const void *);

/* The null stream alone is in front of itself by its kind, and it is in front of blocking ones. */
static void ask_about(struct lately *s) {
    s->is_asked = orders_of;
    s->is_null = orders_of && orders_of(s->stream, s->stream);
    s->is_blocking = orders_of && orders_of(NULL, s->stream);
}

static struct lately *find(const void *stream) {
    for (struct lately *s = streams; s < streams + STREAMS; s++)
        if (s->used && s->stream == stream)
            return s;
    return NULL;
}

static struct lately *find_or_make(const void *stream) {
    struct lately *s = find(stream);
    if (s)
        return s;
    s = streams;
    for (struct lately *other = streams; other < streams + STREAMS; other++)
        if (other->number < s->number || (s->used && !other->used))
            s = other;
    *s = (struct lately){.stream = stream, .used = true};
    ask_about(s);
    return s;
}

/* Something new is in the stream: who has waited for it is not behind that. */
static void renew(struct lately *s) {
    s->event = NULL;
    s->is_way = false;
}

void krex_streams_launched(const void *stream, uint64_t number) {
    struct lately *s = find_or_make(stream);
    if (!s->is_asked)
        ask_about(s);
    renew(s);
    s->is_waited_for = false;
    s->number = number + 1;
}

/* An event that was recorded elsewhere before is behind that no more. */
void krex_streams_recorded(const void *stream, const void *event) {
    for (struct lately *s = streams; s < streams + STREAMS; s++)
        if (s->used && s->stream == stream)
            s->event = event;
        else if (s->event == event)
            s->event = NULL;
}

void krex_streams_joined(const void *stream, const void *event) {
    for (struct lately *s = streams; s < streams + STREAMS; s++) {
        if (!s->used || s->event != event || s->stream == stream)
            continue;
        if (!s->is_waited_for)
            s->first = stream;
        s->last = s->way = stream;
        s->is_waited_for = s->is_way = true;
        renew(find_or_make(stream));
        return;
    }
}

/* Where an event is recorded, and what that stream is like. */
struct stop {
    const void *stream;
    bool (*orders)(const void *, const void *);
    bool is_null;
};

/* Whether the stop is behind a stream without anybody saying so; who could not be asked is let off. */
static bool is_ordered(const struct stop *stop, const struct lately *s) {
    if (!stop->orders || !s)
        return false;
    if (!s->is_asked || (stop->is_null && s->is_blocking))
        return true;
    return s->is_null && stop->orders(NULL, stop->stream);
}

/* Whether the stop is behind a stream, by way of several if need be: each waits for the one before. */
static bool is_behind(const struct stop *stop, const void *at) {
    for (int steps = 0; steps <= STREAMS; steps++) {
        const struct lately *s = find(at);
        if (at == stop->stream || is_ordered(stop, s))
            return true;
        if (!s || !s->is_way)
            return false;
        at = s->way;
    }
    return false;
}

static bool is_covered(const struct lately *s, const struct stop *stop) {
    if (s->stream == stop->stream || is_ordered(stop, s))
        return true;
    return s->is_waited_for && (is_behind(stop, s->first) || is_behind(stop, s->last));
}

uint64_t krex_streams_uncovered(const void *stream, bool (*orders)(const void *, const void *)) {
    struct stop stop = {stream, orders, orders && orders(stream, stream)};
    uint64_t last = 0;
    orders_of = orders;
    for (struct lately *s = streams; s < streams + STREAMS; s++)
        if (s->used && s->number > last && !is_covered(s, &stop))
            last = s->number;
    return last;
}
