/* SPDX-License-Identifier: Apache-2.0
 *
 * To which streams a thread has launched lately, and which of them stand behind which by events: so
 * much that a stop event's coverage can be told. A thread's own; what it does not do itself, it does
 * not see.
 */
#ifndef KREX_STREAMS_H
#define KREX_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

/* A launch, the first since the stream changed or an event was recorded; `number` is that of the last
 * record. */
void krex_streams_launched(const void *stream, uint64_t number);
/* All launched to it so far is in front of the event. */
void krex_streams_recorded(const void *stream, const void *event);
/* What comes to `stream` is behind what `event` is behind. */
void krex_streams_joined(const void *stream, const void *event);
/* The number that the last launch had which what is recorded on `stream` now is not behind; 0: none.
 * `orders` is asked of streams only while they are in use: here, and when they are launched to. */
uint64_t krex_streams_uncovered(const void *stream,
                                bool (*orders)(const void *stream, const void *other));

#endif
