/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream captures, for a face. What the driver's other files call stands in driver.h. These take
 * drv_lock.
 *
 * The rules are those of the vendor's header. Where it is silent: a call that a stream's capture forbids
 * invalidates the capture, a wait for an event of a capture that has ended is one across its boundary,
 * and an event stays captured until it is recorded anew.
 */
#ifndef KREX_SIM_DRIVER_CAPTURE_H
#define KREX_SIM_DRIVER_CAPTURE_H

#include "graph.h"

enum drv_capture_mode { DRV_CAPTURE_GLOBAL, DRV_CAPTURE_THREAD_LOCAL, DRV_CAPTURE_RELAXED };
enum drv_capture_status { DRV_CAPTURE_NONE, DRV_CAPTURE_ACTIVE, DRV_CAPTURE_INVALID };

struct drv_capture_info {
    enum drv_capture_status status;
    uint64_t id;
    struct drv_graph *graph;
    struct drv_node *const *needs; /* until the next call on the stream */
    size_t need_count;
};

/* Into a new graph, or (graph not NULL) a given one, behind `needs`. */
enum drv_result drv_capture_begin(struct drv_stream *stream, enum drv_capture_mode mode,
                                  struct drv_graph *graph, struct drv_node *const *needs,
                                  size_t need_count);
/* *graph is NULL unless DRV_OK. The stream captures no longer, but after CAPTURE_UNMATCHED and
 * CAPTURE_WRONG_THREAD. */
enum drv_result drv_capture_end(struct drv_stream *stream, struct drv_graph **graph);
/* DRV_CAPTURE_IMPLICIT of the legacy stream while a blocking one of its context captures. */
enum drv_result drv_capture_query(struct drv_stream *stream, struct drv_capture_info *info);
/* What the stream's next node comes after: these too, or only these. The stream captures. */
enum drv_result drv_capture_need(struct drv_stream *stream, struct drv_node *const *needs,
                                 size_t need_count, bool only);
/* Sets this thread's mode; what it was before. */
enum drv_capture_mode drv_capture_exchange_mode(enum drv_capture_mode mode);

#endif
