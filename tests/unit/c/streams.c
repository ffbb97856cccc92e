/* SPDX-License-Identifier: Apache-2.0
 *
 * What a stop event is behind, by launches, records and waits of one thread.
 */
#include "streams.h"

#include <stddef.h>

#include "check.h"

static const char a, b, c, joint, other_joint;
static uint64_t now; /* the number of the last timed record */

static void begin(void) { now++; }
static void launch(const void *stream) { krex_streams_launched(stream, now); }
static void order(const void *before, const void *event, const void *after) {
    krex_streams_recorded(before, event);
    krex_streams_joined(after, event);
}
/* Whether a stop on that stream would miss a launch that came after begin(). */
static bool misses(const void *stream) { return krex_streams_uncovered(stream, NULL) > now; }

static bool all_ordered(const void *stream, const void *other) {
    return (void)stream, (void)other, true;
}

static void directly(void) {
    begin();
    CHECK(!misses(&a));
    launch(&a);
    CHECK(!misses(&a) && misses(&b));
    CHECK(!krex_streams_uncovered(&b, all_ordered));
    begin();
    CHECK(!misses(&b)); /* it was before */
}

static void by_a_wait(void) {
    begin();
    launch(&b);
    order(&b, &joint, &a);
    CHECK(!misses(&a) && misses(&c));
    launch(&b); /* behind the event */
    CHECK(misses(&a) && !misses(&b));
    order(&b, &joint, &a);
    CHECK(!misses(&a));
}

static void by_way_of_another(void) {
    begin();
    launch(&b);
    order(&b, &joint, &c);
    CHECK(misses(&a));
    order(&c, &other_joint, &a);
    CHECK(!misses(&a));
}

/* The middle one was waited for before it waited itself. */
static void in_the_wrong_order(void) {
    begin();
    launch(&c);
    launch(&b);
    order(&c, &other_joint, &a);
    order(&b, &joint, &c);
    CHECK(misses(&a));
}

static void in_a_ring(void) {
    begin();
    launch(&a);
    order(&a, &joint, &b);
    order(&b, &other_joint, &a);
    CHECK(!misses(&a) && !misses(&b));
    CHECK(misses(&c));
}

/* One that was waited for, and then waits for something itself, as the next round does. */
static void joined_and_forked_again(void) {
    begin();
    launch(&b);
    order(&b, &joint, &a);
    order(&a, &other_joint, &b);
    CHECK(!misses(&a));
    order(&b, &joint, &c);
    CHECK(!misses(&a) && !misses(&c));
    launch(&b);
    CHECK(misses(&a));
}

/* More streams than are followed: what is forgotten is not invented. */
static void many(void) {
    static const char others[40];
    begin();
    for (int i = 0; i < 40; i++)
        launch(&others[i]);
    CHECK(misses(&a));
    for (int i = 0; i < 40; i++)
        order(&others[i], &joint, &a);
    CHECK(!misses(&a));
}

static const char nobody;
static const void *destroyed = &nobody;

/* The null stream and the blocking one, b, wait for each other. */
static bool ordered_by_kind(const void *stream, const void *other) {
    CHECK(stream != destroyed && other != destroyed);
    if (!stream == !other)
        return !stream;
    return (stream ? stream : other) == &b;
}

static bool misses_by_kind(const void *stream) {
    return krex_streams_uncovered(stream, ordered_by_kind) > now;
}

static void by_kind(void) {
    begin();
    CHECK(!misses_by_kind(NULL)); /* from the first record on it is known whom to ask */
    launch(&b);
    CHECK(!misses_by_kind(NULL) && misses_by_kind(&a));
    launch(&a); /* also where it was launched to before that */
    CHECK(misses_by_kind(NULL));
    begin();
    launch(NULL);
    CHECK(!misses_by_kind(&b) && misses_by_kind(&a));
}

/* What was said of it holds; a driver would crash on its handle. */
static void destroyed_meanwhile(void) {
    begin();
    CHECK(!misses_by_kind(NULL));
    launch(&b);
    destroyed = &b;
    CHECK(!misses_by_kind(NULL) && misses_by_kind(&a));
    begin();
    launch(&a);
    destroyed = &a;
    CHECK(misses_by_kind(NULL));
    destroyed = &nobody;
}

int main(void) {
    directly();
    by_a_wait();
    by_way_of_another();
    in_the_wrong_order();
    in_a_ring();
    joined_and_forked_again();
    many();
    by_kind();
    destroyed_meanwhile();
    return 0;
}
