/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that can be launched.
 */
#include "nodes.h"

enum { UPDATE_ERROR = 1 };

static CUresult instantiate(CUgraphExec *to, CUgraph handle, uint64_t flags) {
    struct drv_context *context;
    struct drv_graph *graph;
    struct drv_exec *exec;
    CUresult r = cu_enter(&context);
    if (!r)
        r = cu_graph(handle, &graph);
    if (r || !to || graph->capture)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_lock();
    r = cu_result(drv_exec_make(graph, &exec));
    drv_unlock();
    if (r)
        return r;
    exec->flags = flags;
    *to = (CUgraphExec)exec;
    return r;
}

/* The error log stays empty: what can be wrong with a graph needs no explanation. */
CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                               char *logBuffer, size_t bufferSize) {
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        *logBuffer = 0;
    return instantiate(phGraphExec, hGraph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                            char *logBuffer, size_t bufferSize) {
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                     unsigned long long flags) {
    return instantiate(phGraphExec, hGraph, flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = instantiate(phGraphExec, hGraph, instantiateParams->flags);
    instantiateParams->error_node = NULL;
    instantiateParams->result = r != CUDA_SUCCESS;
    return r;
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
    struct drv_exec *exec;
    CUresult r = cu_exec(hGraphExec, &exec);
    if (r)
        return r;
    drv_lock();
    drv_exec_destroy(exec);
    drv_unlock();
    return r;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
    struct drv_exec *exec;
    CUresult r = flags ? cu_exec(hGraphExec, &exec) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *flags = exec->flags;
    return r;
}

CUresult cuGraphExecGetId(CUgraphExec hGraphExec, unsigned int *graphId) {
    struct drv_exec *exec;
    CUresult r = graphId ? cu_exec(hGraphExec, &exec) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *graphId = exec->id;
    return r;
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
    struct drv_exec *exec;
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (!r)
        r = cu_exec(hGraph, &exec);
    return r ? r : cu_result(drv_exec_launch(exec, stream));
}

/* There is nothing to upload; it is ordered with the stream all the same. */
CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream) {
    struct drv_exec *exec;
    struct drv_stream *stream;
    CUresult r = cu_stream(hStream, &stream);
    if (!r)
        r = cu_exec(hGraph, &exec);
    struct drv_work nothing = drv_nothing_work();
    return r ? r : cu_result(drv_submit(stream, &nothing, NULL, 0, NULL));
}

static CUresult update(CUgraphExec exec_handle, CUgraph graph_handle,
                       CUgraphExecUpdateResultInfo *info) {
    static const CUgraphExecUpdateResult results[] = {
        [DRV_UPDATED] = 0,
        [DRV_TOPOLOGY_CHANGED] = 2,
        [DRV_NODE_TYPE_CHANGED] = 3,
        [DRV_UPDATE_NO_MEMORY] = UPDATE_ERROR,
    };
    struct drv_exec *exec;
    struct drv_graph *graph;
    const struct drv_node *differs;
    *info = (CUgraphExecUpdateResultInfo){.result = UPDATE_ERROR};
    CUresult r = cu_exec(exec_handle, &exec);
    if (!r)
        r = cu_graph(graph_handle, &graph);
    if (r)
        return r;
    drv_lock();
    info->result = results[drv_exec_update(exec, graph, &differs)];
    drv_unlock();
    info->node = (CUgraphNode)differs;
    return cu_result(info->result ? DRV_GRAPH_UPDATE_FAILURE : DRV_OK);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo *resultInfo) {
    return resultInfo ? update(hGraphExec, hGraph, resultInfo) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                           CUgraphExecUpdateResult *updateResult_out) {
    CUgraphExecUpdateResultInfo info;
    if (!updateResult_out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = update(hGraphExec, hGraph, &info);
    *updateResult_out = info.result;
    if (hErrorNode_out)
        *hErrorNode_out = info.node;
    return r;
}
