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
};

static __thread struct lately streams[STREAMS];

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
    return s;
}

/* Something new is in the stream: who has waited for it is not behind that. */
static void renew(struct lately *s) {
    s->event = NULL;
    s->is_way = false;
}

void krex_streams_launched(const void *stream, uint64_t number) {
    struct lately *s = find_or_make(stream);
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

/* Whether a stream is behind another, by way of several if need be: each waits for the one before. */
static bool is_behind(const void *stream, const void *at,
                      bool (*orders)(const void *, const void *)) {
    for (int steps = 0; steps <= STREAMS; steps++) {
        if (at == stream || (orders && orders(stream, at)))
            return true;
        const struct lately *s = find(at);
        if (!s || !s->is_way)
            return false;
        at = s->way;
    }
    return false;
}

static bool is_covered(const struct lately *s, const void *stream,
                       bool (*orders)(const void *, const void *)) {
    if (s->stream == stream || (orders && orders(stream, s->stream)))
        return true;
    return s->is_waited_for &&
           (is_behind(stream, s->first, orders) || is_behind(stream, s->last, orders));
}

uint64_t krex_streams_uncovered(const void *stream, bool (*orders)(const void *, const void *)) {
    uint64_t last = 0;
    for (struct lately *s = streams; s < streams + STREAMS; s++)
        if (s->used && s->number > last && !is_covered(s, stream, orders))
            last = s->number;
    return last;
}
