/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream captures.
 */
#include "sim/driver/capture.h"

#include "nodes.h"

enum { ONLY_THESE = 1 };

/* Whether the stream may begin one. */
static hipError_t can_begin(hipStream_t handle, hipStreamCaptureMode mode,
                            struct drv_stream **stream) {
    struct drv_capture_info info;
    hipError_t r = hip_stream(handle, stream);
    if (!r && mode > hipStreamCaptureModeRelaxed)
        r = hip_error(HIP_INVALID_VALUE);
    if (r || !(*stream)->number)
        return r ? r : hip_result(DRV_CAPTURE_UNSUPPORTED);
    drv_capture_query(*stream, &info);
    if (info.status == DRV_CAPTURE_INVALID)
        return hip_result(DRV_CAPTURE_INVALIDATED);
    return info.status == DRV_CAPTURE_ACTIVE ? hip_error(HIP_ILLEGAL_STATE) : hipSuccess;
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
    struct drv_stream *s;
    hipError_t r = can_begin(stream, mode, &s);
    return r ? r : hip_result(drv_capture_begin(s, mode, NULL, NULL, 0));
}

hipError_t hipStreamBeginCaptureToGraph(hipStream_t stream, hipGraph_t graph,
                                        const hipGraphNode_t *dependencies,
                                        const hipGraphEdgeData *dependencyData,
                                        size_t numDependencies, hipStreamCaptureMode mode) {
    struct drv_stream *s;
    (void)dependencyData;
    hipError_t r = can_begin(stream, mode, &s);
    if (!r)
        r = hip_check_needs(graph, dependencies, numDependencies);
    return r ? r
             : hip_result(drv_capture_begin(s, mode, (struct drv_graph *)graph,
                                            (struct drv_node *const *)dependencies,
                                            numDependencies));
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *pGraph) {
    struct drv_stream *s;
    struct drv_graph *graph;
    hipError_t r = hip_stream(stream, &s);
    if (r || !pGraph)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *pGraph = NULL;
    if (!s->capture)
        return hip_error(HIP_ILLEGAL_STATE);
    r = hip_result(drv_capture_end(s, &graph));
    if (!r)
        *pGraph = (hipGraph_t)graph;
    return r;
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus *captureStatus_out,
                                      unsigned long long *id_out, hipGraph_t *graph_out,
                                      const hipGraphNode_t **dependencies_out,
                                      size_t *numDependencies_out) {
    struct drv_stream *s;
    struct drv_capture_info info;
    hipError_t r = hip_stream(stream, &s);
    if (r || !captureStatus_out)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    r = hip_result(drv_capture_query(s, &info));
    if (r)
        return r;
    *captureStatus_out = info.status;
    if (id_out)
        *id_out = info.id;
    if (graph_out)
        *graph_out = (hipGraph_t)info.graph;
    if (dependencies_out)
        *dependencies_out = (const hipGraphNode_t *)info.needs;
    if (numDependencies_out)
        *numDependencies_out = info.need_count;
    return r;
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus,
                                   unsigned long long *pId) {
    return hipStreamGetCaptureInfo_v2(stream, pCaptureStatus, pId, NULL, NULL, NULL);
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus) {
    return hipStreamGetCaptureInfo_v2(stream, pCaptureStatus, NULL, NULL, NULL, NULL);
}

hipError_t hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t *dependencies,
                                              size_t numDependencies, unsigned int flags) {
    struct drv_stream *s;
    struct drv_capture_info info;
    hipError_t r = hip_stream(stream, &s);
    if (!r)
        r = hip_result(drv_capture_query(s, &info));
    if (r || flags > ONLY_THESE)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    if (info.status == DRV_CAPTURE_NONE)
        return hip_error(HIP_ILLEGAL_STATE);
    r = hip_check_needs((hipGraph_t)info.graph, dependencies, numDependencies);
    return r ? r
             : hip_result(drv_capture_need(s, (struct drv_node *const *)dependencies,
                                           numDependencies, flags == ONLY_THESE));
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
    hipError_t r = hip_ready();
    if (r || !mode || *mode > hipStreamCaptureModeRelaxed)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *mode = drv_capture_exchange_mode(*mode);
    return r;
}
