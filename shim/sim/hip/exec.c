/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that can be launched.
 */
#include "nodes.h"

enum { UPDATE_ERROR = 1, TOPOLOGY_CHANGED = 2, NODE_TYPE_CHANGED = 3 };

static hipError_t instantiate(hipGraphExec_t *to, hipGraph_t handle, uint64_t flags) {
    struct drv_graph *graph;
    struct drv_exec *exec;
    hipError_t r = hip_graph(handle, &graph);
    if (r || !to || graph->capture)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_lock();
    r = hip_result(drv_exec_make(graph, &exec));
    drv_unlock();
    if (r)
        return r;
    exec->flags = flags;
    *to = (hipGraphExec_t)exec;
    return r;
}

/* The error log stays empty: what can be wrong with a graph needs no explanation. */
hipError_t hipGraphInstantiate(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                               hipGraphNode_t *pErrorNode, char *pLogBuffer, size_t bufferSize) {
    if (pErrorNode)
        *pErrorNode = NULL;
    if (pLogBuffer && bufferSize)
        *pLogBuffer = 0;
    return instantiate(pGraphExec, graph, 0);
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                                        unsigned long long flags) {
    return instantiate(pGraphExec, graph, flags);
}

hipError_t hipGraphInstantiateWithParams(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                                         hipGraphInstantiateParams *instantiateParams) {
    if (!instantiateParams)
        return hip_error(HIP_INVALID_VALUE);
    hipError_t r = instantiate(pGraphExec, graph, instantiateParams->flags);
    instantiateParams->error_node = NULL;
    instantiateParams->result = r != hipSuccess;
    return r;
}

hipError_t hipGraphExecDestroy(hipGraphExec_t graphExec) {
    struct drv_exec *exec;
    hipError_t r = hip_exec(graphExec, &exec);
    if (r)
        return r;
    drv_lock();
    drv_exec_destroy(exec);
    drv_unlock();
    return r;
}

hipError_t hipGraphExecGetFlags(hipGraphExec_t graphExec, unsigned long long *flags) {
    struct drv_exec *exec;
    hipError_t r = flags ? hip_exec(graphExec, &exec) : hip_error(HIP_INVALID_VALUE);
    if (!r)
        *flags = exec->flags;
    return r;
}

hipError_t hipGraphLaunch(hipGraphExec_t graphExec, hipStream_t stream) {
    struct drv_exec *exec;
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    if (!r)
        r = hip_exec(graphExec, &exec);
    return r ? r : hip_result(drv_exec_launch(exec, s));
}

/* There is nothing to upload; it is ordered with the stream all the same. */
hipError_t hipGraphUpload(hipGraphExec_t graphExec, hipStream_t stream) {
    struct drv_exec *exec;
    struct drv_stream *s;
    hipError_t r = hip_stream(stream, &s);
    if (!r)
        r = hip_exec(graphExec, &exec);
    struct drv_work nothing = drv_nothing_work();
    return r ? r : hip_result(drv_submit(s, &nothing, NULL, 0, NULL));
}

hipError_t hipGraphExecUpdate(hipGraphExec_t hGraphExec, hipGraph_t hGraph,
                              hipGraphNode_t *hErrorNode_out,
                              hipGraphExecUpdateResult *updateResult_out) {
    static const hipGraphExecUpdateResult results[] = {
        [DRV_UPDATED] = 0,
        [DRV_TOPOLOGY_CHANGED] = TOPOLOGY_CHANGED,
        [DRV_NODE_TYPE_CHANGED] = NODE_TYPE_CHANGED,
        [DRV_UPDATE_NO_MEMORY] = UPDATE_ERROR,
    };
    struct drv_exec *exec;
    struct drv_graph *graph;
    const struct drv_node *differs;
    hipError_t r = hip_exec(hGraphExec, &exec);
    if (!r)
        r = hip_graph(hGraph, &graph);
    if (r || !updateResult_out)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_lock();
    *updateResult_out = results[drv_exec_update(exec, graph, &differs)];
    drv_unlock();
    if (hErrorNode_out)
        *hErrorNode_out = (hipGraphNode_t)(void *)differs;
    return hip_result(*updateResult_out ? DRV_GRAPH_UPDATE_FAILURE : DRV_OK);
}
