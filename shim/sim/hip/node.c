/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of graphs: adding them, and changing what they do.
 */
#include "load.h"
#include "nodes.h"

/* In the order of the vendor's numbers since ROCm 6, as drv_node_type is. */
_Static_assert(DRV_NODE_RECORD_EVENT == 7, "the vendor's number of an event record node");

/* From what the vendor says to what is submitted. */

static hipError_t kernel_of(const hipKernelNodeParams *p, struct drv_work *work) {
    struct drv_context *context;
    hipError_t r = hip_enter(&context);
    if (r || !p)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    struct drv_shape shape = {
        {p->grid.x, p->grid.y, p->grid.z}, {p->block.x, p->block.y, p->block.z}, p->shared, false};
    return hip_launch_work(context, p->function, &shape, p->parameters, p->extra, work);
}

static hipError_t copy_of(const hipMemcpy3DParms *p, struct drv_work *work) {
    struct drv_copy copy;
    hipError_t r = hip_ready();
    if (!r)
        r = hip_copy_of_parms(p, &copy);
    return r ? r : hip_result(drv_copy_work(&copy, work));
}

static hipError_t plain_copy_of(void *to, const void *from, size_t bytes, struct drv_work *work) {
    struct drv_copy copy = {(uintptr_t)to, (uintptr_t)from, bytes, 1, 1, 0, 0, 0, 0};
    hipError_t r = hip_ready();
    return r ? r : hip_result(drv_copy_work(&copy, work));
}

static hipError_t fill_of(const hipMemsetParams *p, struct drv_work *work) {
    hipError_t r = p ? hip_ready() : hip_error(HIP_INVALID_VALUE);
    if (r)
        return r;
    struct drv_fill fill = {(uintptr_t)p->to, p->width, p->height, p->pitch, p->value, p->element};
    return hip_result(drv_fill_work(&fill, work));
}

static hipError_t host_of(const hipHostNodeParams *p, struct drv_work *work) {
    hipError_t r = hip_ready();
    if (r || !p || !p->function)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    struct drv_callback callback = {.function = p->function, .argument = p->argument};
    *work = drv_callback_work(&callback);
    return r;
}

/* A launch records it, as the stream would. */
static hipError_t event_of(hipEvent_t handle, struct drv_work *work) {
    struct drv_event *event;
    hipError_t r = hip_event(handle, &event);
    if (r)
        return r;
    drv_lock();
    event->recorded = true;
    *work = drv_event_work(event);
    drv_unlock();
    return r;
}

/* Adding. */

/* `made`: what came of making the work; work is NULL where a type has none. */
static hipError_t add(hipGraphNode_t *to, hipGraph_t graph, const hipGraphNode_t *needs,
                      size_t count, enum drv_node_type type, hipError_t made,
                      struct drv_work *work) {
    hipError_t r = made;
    if (!r && !to)
        r = hip_error(HIP_INVALID_VALUE);
    if (!r)
        r = hip_check_needs(graph, needs, count);
    drv_lock();
    struct drv_node *node = r ? NULL
                              : drv_node_add((struct drv_graph *)graph, type, work,
                                             (struct drv_node *const *)needs, count);
    if (r && !made && work)
        drv_work_drop(work);
    drv_unlock();
    if (!r && !node)
        r = hip_result(DRV_OUT_OF_MEMORY);
    if (!r)
        *to = (hipGraphNode_t)node;
    return r;
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                 const hipGraphNode_t *pDependencies, size_t numDependencies,
                                 const hipKernelNodeParams *pNodeParams) {
    struct drv_work work;
    hipError_t r = kernel_of(pNodeParams, &work);
    return add(pGraphNode, graph, pDependencies, numDependencies, DRV_NODE_KERNEL, r, &work);
}

hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                 const hipGraphNode_t *pDependencies, size_t numDependencies,
                                 const hipMemcpy3DParms *pCopyParams) {
    struct drv_work work;
    hipError_t r = copy_of(pCopyParams, &work);
    return add(pGraphNode, graph, pDependencies, numDependencies, DRV_NODE_COPY, r, &work);
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                   const hipGraphNode_t *pDependencies, size_t numDependencies,
                                   void *dst, const void *src, size_t count, hipMemcpyKind kind) {
    struct drv_work work;
    (void)kind;
    hipError_t r = plain_copy_of(dst, src, count, &work);
    return add(pGraphNode, graph, pDependencies, numDependencies, DRV_NODE_COPY, r, &work);
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                 const hipGraphNode_t *pDependencies, size_t numDependencies,
                                 const hipMemsetParams *pMemsetParams) {
    struct drv_work work;
    hipError_t r = fill_of(pMemsetParams, &work);
    return add(pGraphNode, graph, pDependencies, numDependencies, DRV_NODE_FILL, r, &work);
}

hipError_t hipGraphAddHostNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                               const hipGraphNode_t *pDependencies, size_t numDependencies,
                               const hipHostNodeParams *pNodeParams) {
    struct drv_work work;
    hipError_t r = host_of(pNodeParams, &work);
    return add(pGraphNode, graph, pDependencies, numDependencies, DRV_NODE_HOST, r, &work);
}

hipError_t hipGraphAddEventRecordNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                      const hipGraphNode_t *pDependencies, size_t numDependencies,
                                      hipEvent_t event) {
    struct drv_work work;
    hipError_t r = event_of(event, &work);
    return add(pGraphNode, graph, pDependencies, numDependencies, DRV_NODE_RECORD_EVENT, r, &work);
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                const hipGraphNode_t *pDependencies, size_t numDependencies) {
    return add(pGraphNode, graph, pDependencies, numDependencies, DRV_NODE_EMPTY, hipSuccess, NULL);
}

hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                     const hipGraphNode_t *pDependencies, size_t numDependencies,
                                     hipGraph_t childGraph) {
    struct drv_graph *child;
    hipError_t r = hip_check_needs(graph, pDependencies, numDependencies);
    if (!r)
        r = hip_graph(childGraph, &child);
    if (r || !pGraphNode || child->capture)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_lock();
    struct drv_node *node = drv_node_add_child(
        (struct drv_graph *)graph, child, (struct drv_node *const *)pDependencies, numDependencies);
    drv_unlock();
    *pGraphNode = (hipGraphNode_t)node;
    return hip_result(node ? DRV_OK : DRV_OUT_OF_MEMORY);
}

/* What a node of the generic form does. NOT_SUPPORTED: of another type. */
static hipError_t work_of(const hipGraphNodeParams *p, struct drv_work *work) {
    if (!p)
        return hip_error(HIP_INVALID_VALUE);
    switch (p->type) {
    case DRV_NODE_KERNEL:
        return kernel_of(&p->kernel, work);
    case DRV_NODE_COPY:
        return copy_of(&p->copy.copy, work);
    case DRV_NODE_FILL:
        return fill_of(&p->fill, work);
    case DRV_NODE_HOST:
        return host_of(&p->host, work);
    case DRV_NODE_RECORD_EVENT:
        return event_of(p->event, work);
    default:
        return hip_error(HIP_NOT_SUPPORTED);
    }
}

hipError_t hipGraphAddNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                           const hipGraphNode_t *pDependencies, size_t numDependencies,
                           hipGraphNodeParams *nodeParams) {
    if (nodeParams && nodeParams->type == DRV_NODE_EMPTY)
        return hipGraphAddEmptyNode(pGraphNode, graph, pDependencies, numDependencies);
    if (nodeParams && nodeParams->type == DRV_NODE_GRAPH)
        return hipGraphAddChildGraphNode(pGraphNode, graph, pDependencies, numDependencies,
                                         nodeParams->child);
    struct drv_work work;
    hipError_t r = work_of(nodeParams, &work);
    return add(pGraphNode, graph, pDependencies, numDependencies,
               r ? DRV_NODE_EMPTY : nodeParams->type, r, &work);
}

/* Changing. In a graph that can be launched, or (exec NULL) in one that can't. */
static hipError_t set(hipGraphExec_t exec_handle, hipGraphNode_t handle, enum drv_node_type type,
                      hipError_t made, struct drv_work *work) {
    struct drv_exec *exec = NULL;
    struct drv_node *node;
    hipError_t r = made ? made : hip_node(handle, &node);
    if (!r && exec_handle)
        r = hip_exec(exec_handle, &exec);
    drv_lock();
    if (exec && !r)
        node = drv_node_in(exec->graph, node);
    if (!r && (!node || node->type != type))
        r = hip_error(HIP_INVALID_VALUE);
    if (!r)
        drv_node_set_work(node, work);
    else if (!made)
        drv_work_drop(work);
    drv_unlock();
    return r;
}

hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node,
                                       const hipKernelNodeParams *pNodeParams) {
    struct drv_work work;
    hipError_t r = kernel_of(pNodeParams, &work);
    return set(NULL, node, DRV_NODE_KERNEL, r, &work);
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                           const hipKernelNodeParams *pNodeParams) {
    struct drv_work work;
    hipError_t r = hGraphExec ? kernel_of(pNodeParams, &work) : hip_error(HIP_INVALID_VALUE);
    return set(hGraphExec, node, DRV_NODE_KERNEL, r, &work);
}

hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                           hipMemcpy3DParms *pNodeParams) {
    struct drv_work work;
    hipError_t r = hGraphExec ? copy_of(pNodeParams, &work) : hip_error(HIP_INVALID_VALUE);
    return set(hGraphExec, node, DRV_NODE_COPY, r, &work);
}

hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                             void *dst, const void *src, size_t count,
                                             hipMemcpyKind kind) {
    struct drv_work work;
    (void)kind;
    hipError_t r =
        hGraphExec ? plain_copy_of(dst, src, count, &work) : hip_error(HIP_INVALID_VALUE);
    return set(hGraphExec, node, DRV_NODE_COPY, r, &work);
}

hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                           const hipMemsetParams *pNodeParams) {
    struct drv_work work;
    hipError_t r = hGraphExec ? fill_of(pNodeParams, &work) : hip_error(HIP_INVALID_VALUE);
    return set(hGraphExec, node, DRV_NODE_FILL, r, &work);
}

hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                         const hipHostNodeParams *pNodeParams) {
    struct drv_work work;
    hipError_t r = hGraphExec ? host_of(pNodeParams, &work) : hip_error(HIP_INVALID_VALUE);
    return set(hGraphExec, node, DRV_NODE_HOST, r, &work);
}

hipError_t hipGraphExecNodeSetParams(hipGraphExec_t graphExec, hipGraphNode_t node,
                                     hipGraphNodeParams *nodeParams) {
    struct drv_work work;
    hipError_t r = graphExec ? work_of(nodeParams, &work) : hip_error(HIP_INVALID_VALUE);
    return set(graphExec, node, r ? DRV_NODE_EMPTY : nodeParams->type, r, &work);
}
