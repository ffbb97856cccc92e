/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream captures.
 */
#include "sim/driver/capture.h"

#include "face.h"
#include "nodes.h"

enum { ILLEGAL_STATE = 401, ONLY_THESE = 1 };

/* Whether the stream may begin one. */
static CUresult can_begin(CUstream handle, CUstreamCaptureMode mode, struct drv_stream **stream) {
    struct drv_capture_info info;
    CUresult r = cu_stream(handle, stream);
    if (!r && mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r || !(*stream)->number)
        return r ? r : cu_result(DRV_CAPTURE_UNSUPPORTED);
    drv_capture_query(*stream, &info);
    if (info.status == DRV_CAPTURE_INVALID)
        return cu_result(DRV_CAPTURE_INVALIDATED);
    return info.status == DRV_CAPTURE_ACTIVE ? ILLEGAL_STATE : CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
    struct drv_stream *stream;
    CUresult r = can_begin(hStream, mode, &stream);
    return r ? r : cu_result(drv_capture_begin(stream, mode, NULL, NULL, 0));
}

/* Of CUDA 10.0, which had one mode. */
CUresult cuStreamBeginCapture(CUstream hStream) { return cuStreamBeginCapture_v2(hStream, 0); }

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
    struct drv_stream *stream;
    (void)dependencyData;
    CUresult r = can_begin(hStream, mode, &stream);
    if (!r)
        r = cu_check_needs(hGraph, dependencies, numDependencies);
    return r ? r
             : cu_result(drv_capture_begin(stream, mode, (struct drv_graph *)hGraph,
                                           (struct drv_node *const *)dependencies,
                                           numDependencies));
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
    struct drv_stream *stream;
    struct drv_graph *graph;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !phGraph)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *phGraph = NULL;
    if (!stream->capture)
        return ILLEGAL_STATE;
    r = cu_result(drv_capture_end(stream, &graph));
    if (!r)
        *phGraph = (CUgraph)graph;
    return r;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus) {
    struct drv_stream *stream;
    struct drv_capture_info info;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !captureStatus)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_capture_query(stream, &info));
    if (!r)
        *captureStatus = info.status;
    return r;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                   cuuint64_t *id_out, CUgraph *graph_out,
                                   const CUgraphNode **dependencies_out,
                                   const CUgraphEdgeData **edgeData_out,
                                   size_t *numDependencies_out) {
    struct drv_stream *stream;
    struct drv_capture_info info;
    CUresult r = cu_stream(hStream, &stream);
    if (r || !captureStatus_out || (edgeData_out && !dependencies_out))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = cu_result(drv_capture_query(stream, &info));
    if (r)
        return r;
    *captureStatus_out = info.status;
    if (id_out)
        *id_out = info.id;
    if (graph_out)
        *graph_out = (CUgraph)info.graph;
    if (dependencies_out)
        *dependencies_out = (const CUgraphNode *)info.needs;
    if (edgeData_out)
        *edgeData_out = cu_plain_edges(info.need_count);
    if (numDependencies_out)
        *numDependencies_out = info.need_count;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                   cuuint64_t *id_out, CUgraph *graph_out,
                                   const CUgraphNode **dependencies_out,
                                   size_t *numDependencies_out) {
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                     dependencies_out, NULL, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                cuuint64_t *id_out) {
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                           size_t numDependencies, unsigned int flags) {
    struct drv_stream *stream;
    struct drv_capture_info info;
    CUresult r = cu_stream(hStream, &stream);
    if (!r)
        r = cu_result(drv_capture_query(stream, &info));
    if (r || flags > ONLY_THESE)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (info.status == DRV_CAPTURE_NONE)
        return ILLEGAL_STATE;
    r = cu_check_needs((CUgraph)info.graph, dependencies, numDependencies);
    return r ? r
             : cu_result(drv_capture_need(stream, (struct drv_node *const *)dependencies,
                                          numDependencies, flags == ONLY_THESE));
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                              const CUgraphEdgeData *dependencyData,
                                              size_t numDependencies, unsigned int flags) {
    (void)dependencyData;
    return cuStreamUpdateCaptureDependencies(hStream, dependencies, numDependencies, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CUresult r = cu_result(drv_ready());
    if (r || !mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *mode = drv_capture_exchange_mode(*mode);
    return CUDA_SUCCESS;
}
