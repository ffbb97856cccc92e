/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of graphs: adding them, and changing what they do.
 */
#include "nodes.h"
#include "sim/driver/module.h"

/* In the order of the vendor's numbers, as drv_node_type is. */
_Static_assert(DRV_NODE_RECORD_EVENT == 7, "the vendor's number of an event record node");

/* From what the vendor says to what is submitted. */

static CUresult kernel_work(const void *handle, struct drv_context *context,
                            const CUDA_KERNEL_NODE_PARAMS_v1 *p, struct drv_work *work) {
    struct drv_packed packed;
    const struct drv_function *function;
    CUresult r = cu_result(drv_function_of(context, handle, &function));
    if (r || !drv_read_extra(p->extra, &packed) || (p->parameters && packed.bytes))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_shape shape = {{p->grid[0], p->grid[1], p->grid[2]},
                              {p->block[0], p->block[1], p->block[2]},
                              p->shared,
                              false};
    return cu_result(drv_launch_work(context->device, function, &shape, p->parameters, packed.bytes,
                                     packed.size, work));
}

/* For a context, or (NULL) the current one. */
static CUresult choose(CUcontext handle, struct drv_context **context) {
    return handle ? cu_context(handle, context) : cu_enter(context);
}

/* A function is of a context, which need not be current. */
static CUresult context_of(const CUDA_KERNEL_NODE_PARAMS *p, struct drv_context **context) {
    if (!p->v1.function)
        return choose(p->context, context);
    CUresult r = cu_enter(context);
    if (!r && drv_handle_is(DRV_FUNCTION, p->v1.function))
        *context = drv_function_context((const struct drv_function *)p->v1.function);
    return r;
}

static CUresult kernel_of(const CUDA_KERNEL_NODE_PARAMS *p, struct drv_work *work) {
    struct drv_context *context;
    CUresult r = p ? context_of(p, &context) : CUDA_ERROR_INVALID_VALUE;
    const void *handle = !p ? NULL : p->v1.function ? (void *)p->v1.function : (void *)p->kernel;
    return r ? r : kernel_work(handle, context, &p->v1, work);
}

static CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
    return p ? (CUDA_KERNEL_NODE_PARAMS){.v1 = *p} : (CUDA_KERNEL_NODE_PARAMS){0};
}

/* One end of a copy: where it begins, and the bytes from row to row and plane to plane. */
static uint64_t end_of(unsigned type, const void *host, CUdeviceptr device) {
    return type == CU_SIM_HOST ? (uintptr_t)host : device;
}

static CUresult shape_copy(const CUDA_MEMCPY3D *p, struct drv_copy *c) {
    if (p->src_type == CU_SIM_ARRAY || p->dst_type == CU_SIM_ARRAY)
        return cu_result(DRV_NOT_SUPPORTED);
    *c = (struct drv_copy){.width = p->width, .rows = p->height, .planes = p->depth};
    c->from_pitch = p->src_pitch ? p->src_pitch : p->width;
    c->to_pitch = p->dst_pitch ? p->dst_pitch : p->width;
    if (c->from_pitch < p->src_x + p->width || c->to_pitch < p->dst_x + p->width)
        return CUDA_ERROR_INVALID_VALUE;
    c->from_slice = c->from_pitch * (p->src_height ? p->src_height : p->height);
    c->to_slice = c->to_pitch * (p->dst_height ? p->dst_height : p->height);
    c->from = end_of(p->src_type, p->src_host, p->src_device) + p->src_x;
    c->from += p->src_z * c->from_slice + p->src_y * c->from_pitch;
    c->to = end_of(p->dst_type, p->dst_host, p->dst_device) + p->dst_x;
    c->to += p->dst_z * c->to_slice + p->dst_y * c->to_pitch;
    return CUDA_SUCCESS;
}

static CUresult copy_of(const CUDA_MEMCPY3D *p, CUcontext handle, struct drv_work *work) {
    struct drv_context *context;
    struct drv_copy copy;
    CUresult r = p ? choose(handle, &context) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = shape_copy(p, &copy);
    return r ? r : cu_result(drv_copy_work(&copy, work));
}

static CUresult fill_of(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext handle, struct drv_work *work) {
    struct drv_context *context;
    CUresult r = p ? choose(handle, &context) : CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    struct drv_fill fill = {p->to, p->width, p->height, p->pitch, p->value, p->element};
    return cu_result(drv_fill_work(&fill, work));
}

static CUresult host_of(const CUDA_HOST_NODE_PARAMS *p, struct drv_work *work) {
    CUresult r = cu_result(drv_ready());
    if (r || !p || !p->function)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_callback callback = {.function = p->function, .argument = p->argument};
    *work = drv_callback_work(&callback);
    return CUDA_SUCCESS;
}

/* A launch records it, as the stream would. */
static CUresult event_of(CUevent handle, struct drv_work *work) {
    struct drv_event *event;
    CUresult r = cu_event(handle, &event);
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
static CUresult add(CUgraphNode *to, CUgraph graph, const CUgraphNode *needs, size_t count,
                    enum drv_node_type type, CUresult made, struct drv_work *work) {
    CUresult r = made;
    if (!r && !to)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = cu_check_needs(graph, needs, count);
    drv_lock();
    struct drv_node *node = r ? NULL
                              : drv_node_add((struct drv_graph *)graph, type, work,
                                             (struct drv_node *const *)needs, count);
    if (r && !made && work)
        drv_work_drop(work);
    drv_unlock();
    if (!r && !node)
        r = cu_result(DRV_OUT_OF_MEMORY);
    if (!r)
        *to = (CUgraphNode)node;
    return r;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    struct drv_work work;
    CUresult r = kernel_of(nodeParams, &work);
    return add(phGraphNode, hGraph, dependencies, numDependencies, DRV_NODE_KERNEL, r, &work);
}

CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                              const CUgraphNode *dependencies, size_t numDependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    CUDA_KERNEL_NODE_PARAMS wide = widen(nodeParams);
    return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies,
                                   nodeParams ? &wide : NULL);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                              const CUgraphNode *dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    struct drv_work work;
    CUresult r = copy_of(copyParams, ctx, &work);
    return add(phGraphNode, hGraph, dependencies, numDependencies, DRV_NODE_COPY, r, &work);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                              const CUgraphNode *dependencies, size_t numDependencies,
                              const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
    struct drv_work work;
    CUresult r = fill_of(memsetParams, ctx, &work);
    return add(phGraphNode, hGraph, dependencies, numDependencies, DRV_NODE_FILL, r, &work);
}

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                            const CUgraphNode *dependencies, size_t numDependencies,
                            const CUDA_HOST_NODE_PARAMS *nodeParams) {
    struct drv_work work;
    CUresult r = host_of(nodeParams, &work);
    return add(phGraphNode, hGraph, dependencies, numDependencies, DRV_NODE_HOST, r, &work);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies, size_t numDependencies,
                                   CUevent event) {
    struct drv_work work;
    CUresult r = event_of(event, &work);
    return add(phGraphNode, hGraph, dependencies, numDependencies, DRV_NODE_RECORD_EVENT, r, &work);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                             const CUgraphNode *dependencies, size_t numDependencies) {
    return add(phGraphNode, hGraph, dependencies, numDependencies, DRV_NODE_EMPTY, CUDA_SUCCESS,
               NULL);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  CUgraph childGraph) {
    struct drv_graph *child;
    CUresult r = cu_check_needs(hGraph, dependencies, numDependencies);
    if (!r)
        r = cu_graph(childGraph, &child);
    if (r || !phGraphNode || child->capture)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_lock();
    struct drv_node *node = drv_node_add_child(
        (struct drv_graph *)hGraph, child, (struct drv_node *const *)dependencies, numDependencies);
    drv_unlock();
    *phGraphNode = (CUgraphNode)node;
    return cu_result(node ? DRV_OK : DRV_OUT_OF_MEMORY);
}

/* What a node of the generic form does. NOT_SUPPORTED: of another type. */
static CUresult work_of(const CUgraphNodeParams *p, struct drv_work *work) {
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case DRV_NODE_KERNEL:
        return kernel_of(&p->kernel, work);
    case DRV_NODE_COPY:
        return copy_of(&p->copy.copy, p->copy.context, work);
    case DRV_NODE_FILL:
        return fill_of(&p->fill, NULL, work);
    case DRV_NODE_HOST:
        return host_of(&p->host, work);
    case DRV_NODE_RECORD_EVENT:
        return event_of(p->event, work);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                        size_t numDependencies, CUgraphNodeParams *nodeParams) {
    if (nodeParams && nodeParams->type == DRV_NODE_EMPTY)
        return cuGraphAddEmptyNode(phGraphNode, hGraph, dependencies, numDependencies);
    if (nodeParams && nodeParams->type == DRV_NODE_GRAPH)
        return cuGraphAddChildGraphNode(phGraphNode, hGraph, dependencies, numDependencies,
                                        nodeParams->child);
    struct drv_work work;
    CUresult r = work_of(nodeParams, &work);
    return add(phGraphNode, hGraph, dependencies, numDependencies,
               r ? DRV_NODE_EMPTY : nodeParams->type, r, &work);
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                           const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
                           size_t numDependencies, CUgraphNodeParams *nodeParams) {
    (void)dependencyData;
    return cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph,
                           const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
                           size_t numDependencies, CUgraphNodeParams *nodeParams) {
    return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
                             nodeParams);
}

/* Changing. In a graph that can be launched, or (exec NULL) in one that can't. */
static CUresult set(CUgraphExec exec_handle, CUgraphNode handle, enum drv_node_type type,
                    CUresult made, struct drv_work *work) {
    struct drv_exec *exec = NULL;
    struct drv_node *node;
    CUresult r = made ? made : cu_node(handle, &node);
    if (!r && exec_handle)
        r = cu_exec(exec_handle, &exec);
    drv_lock();
    if (exec && !r)
        node = drv_node_in(exec->graph, node);
    if (!r && (!node || node->type != type))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        drv_node_set_work(node, work);
    else if (!made)
        drv_work_drop(work);
    drv_unlock();
    return r;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    struct drv_work work;
    CUresult r = hGraphExec ? kernel_of(nodeParams, &work) : CUDA_ERROR_INVALID_VALUE;
    return set(hGraphExec, hNode, DRV_NODE_KERNEL, r, &work);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    CUDA_KERNEL_NODE_PARAMS wide = widen(nodeParams);
    return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, nodeParams ? &wide : NULL);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
    struct drv_work work;
    CUresult r = kernel_of(nodeParams, &work);
    return set(NULL, hNode, DRV_NODE_KERNEL, r, &work);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                    const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams) {
    CUDA_KERNEL_NODE_PARAMS wide = widen(nodeParams);
    return cuGraphKernelNodeSetParams_v2(hNode, nodeParams ? &wide : NULL);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
    struct drv_work work;
    CUresult r = hGraphExec ? copy_of(copyParams, ctx, &work) : CUDA_ERROR_INVALID_VALUE;
    return set(hGraphExec, hNode, DRV_NODE_COPY, r, &work);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                        CUcontext ctx) {
    struct drv_work work;
    CUresult r = hGraphExec ? fill_of(memsetParams, ctx, &work) : CUDA_ERROR_INVALID_VALUE;
    return set(hGraphExec, hNode, DRV_NODE_FILL, r, &work);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS *nodeParams) {
    struct drv_work work;
    CUresult r = hGraphExec ? host_of(nodeParams, &work) : CUDA_ERROR_INVALID_VALUE;
    return set(hGraphExec, hNode, DRV_NODE_HOST, r, &work);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  CUgraphNodeParams *nodeParams) {
    struct drv_work work;
    CUresult r = hGraphExec ? work_of(nodeParams, &work) : CUDA_ERROR_INVALID_VALUE;
    return set(hGraphExec, hNode, r ? DRV_NODE_EMPTY : nodeParams->type, r, &work);
}
