/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of timed pairs by the driver's own calls, for the record and for `krex audit`; and
 * where they tell the automatic mark to begin and to rest. A vendor's hooks say what happens; nothing
 * here knows a vendor. Streams and events are named by their handles.
 *
 * A launch costs a compare (krex_audit_launch). All else happens in calls that make, record, wait for
 * or read events, and in those that allocate or load.
 */
#ifndef KREX_AUDIT_H
#define KREX_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "arm.h"
#include "atomic.h"

void krex_audit_event_made(const void *event, bool timing);
void krex_audit_event_gone(const void *event);
/* Whether it was made with timing. */
bool krex_audit_is_timed(const void *event);

/* An event was recorded on a stream. `orders(stream, other)`: work in `other` is in front of what comes
 * to `stream` without anybody saying so; NULL: never. */
void krex_audit_recorded(const void *event, const void *stream,
                         bool (*orders)(const void *stream, const void *other));
/* A stream was made to wait for an event. */
void krex_audit_joined(const void *stream, const void *event);
/* A call that passes the gate and is no work: an event's record, or a wait for one. */
void krex_audit_no_work(void);
/* The distance of two events was read. For one that is both, the end of a command: twice the same. */
void krex_audit_read(const void *start, const void *stop, uint64_t ns);
/* How many timed events were recorded and not read since. */
uint32_t krex_audit_unread(void);
void krex_audit_synchronised_slow(const void *stream, const void *event);
/* The program waited for a stream, for an event, or (both NULL) for all. */
static inline void krex_audit_synchronised(const void *stream, const void *event) {
    if (krex_arm_wants_timed())
        krex_audit_synchronised_slow(stream, event);
}
/* Memory was allocated, or code loaded. */
void krex_audit_disturbed(void);

/* A command that is a timed pair by itself was submitted: what krex_audit_event_made and
 * krex_audit_recorded are for two events. */
void krex_audit_command(const void *event, const void *stream);

/* What all hooks call the stream of a call that has none: no driver may be asked about it. */
#define KREX_AUDIT_NO_STREAM ((const void *)UINTPTR_MAX)

/* The stream of this thread's last launch, so that a change is seen. */
extern __thread const void *krex_audit_stream;
void krex_audit_stream_changed(const void *stream);

static inline __attribute__((always_inline)) void krex_audit_launch(const void *stream) {
    if (__builtin_expect(stream != krex_load_relaxed(&krex_audit_stream), 0))
        krex_audit_stream_changed(stream);
}

#endif
