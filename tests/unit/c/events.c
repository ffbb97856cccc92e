/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of events keeps what it was given, whatever goes and comes: held against a plain array.
 */
#include "events.h"

#include <stdlib.h>

#include "check.h"

enum { HANDLES = 700, STEPS = 200000 };

static uint64_t expected[HANDLES]; /* the number given to the handle's event; 0: it has none */

/* Spread as a driver's are: heap addresses, in steps of a size class. */
static const void *event(int i) {
    return (const void *)(UINT64_C(0x7f0000000000) + UINT64_C(96) * (uint64_t)i);
}

static void step(uint64_t number) {
    int i = rand() % HANDLES;
    if (rand() % 3 == 0) {
        krex_event_drop(event(i));
        expected[i] = 0;
        return;
    }
    struct krex_event *e = krex_event_put(event(i));
    CHECK(e && !e->timing && !e->unread && !e->stamp.number);
    e->stamp.number = expected[i] = number;
}

static void compare(int i) {
    struct krex_event *e = krex_event_find(event(i));
    CHECK((e ? e->stamp.number : 0) == expected[i]);
    CHECK(!e || e->handle == event(i));
}

int main(void) {
    CHECK(!krex_event_find(event(0)) && !krex_event_find(NULL));
    krex_event_drop(event(0));
    for (uint64_t number = 1; number <= STEPS; number++) {
        step(number);
        compare(rand() % HANDLES);
    }
    for (int i = 0; i < HANDLES; i++)
        compare(i);
    krex_events_start_over();
    for (int i = 0; i < HANDLES; i++)
        CHECK(!krex_event_find(event(i)));
    return 0;
}
