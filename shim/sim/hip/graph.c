/* SPDX-License-Identifier: Apache-2.0
 *
 * hipGraph*: making graphs, and looking at them.
 */
#include "nodes.h"

static hipError_t is(enum drv_type type, const void *handle) {
    hipError_t r = hip_ready();
    return r ? r : hip_result(drv_handle_is(type, handle) ? DRV_OK : DRV_INVALID_VALUE);
}

hipError_t hip_graph(hipGraph_t handle, struct drv_graph **graph) {
    *graph = (struct drv_graph *)handle;
    return is(DRV_GRAPH, handle);
}

hipError_t hip_node(hipGraphNode_t handle, struct drv_node **node) {
    *node = (struct drv_node *)handle;
    return is(DRV_GRAPH_NODE, handle);
}

hipError_t hip_exec(hipGraphExec_t handle, struct drv_exec **exec) {
    *exec = (struct drv_exec *)handle;
    return is(DRV_GRAPH_EXEC, handle);
}

hipError_t hip_check_needs(hipGraph_t handle, const hipGraphNode_t *needs, size_t count) {
    struct drv_graph *graph;
    struct drv_node *node;
    hipError_t r = hip_graph(handle, &graph);
    if (!r && count && !needs)
        r = hip_error(HIP_INVALID_VALUE);
    for (size_t i = 0; i < count && !r; i++) {
        r = hip_node(needs[i], &node);
        if (!r && node->graph != graph)
            r = hip_error(HIP_INVALID_VALUE);
    }
    return r;
}

hipError_t hipGraphCreate(hipGraph_t *pGraph, unsigned int flags) {
    hipError_t r = hip_ready();
    if (r || !pGraph || flags)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_lock();
    struct drv_graph *graph = drv_graph_create();
    drv_unlock();
    *pGraph = (hipGraph_t)graph;
    return hip_result(graph ? DRV_OK : DRV_OUT_OF_MEMORY);
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
    struct drv_graph *g;
    hipError_t r = hip_graph(graph, &g);
    if (!r && g->capture)
        r = hip_error(HIP_INVALID_VALUE);
    if (r)
        return r;
    drv_lock();
    drv_graph_destroy(g);
    drv_unlock();
    return r;
}

hipError_t hipGraphClone(hipGraph_t *pGraphClone, hipGraph_t originalGraph) {
    struct drv_graph *graph;
    hipError_t r = hip_graph(originalGraph, &graph);
    if (r || !pGraphClone)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_lock();
    struct drv_graph *clone = drv_graph_clone(graph);
    drv_unlock();
    *pGraphClone = (hipGraph_t)clone;
    return hip_result(clone ? DRV_OK : DRV_OUT_OF_MEMORY);
}

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *numNodes) {
    struct drv_graph *g;
    hipError_t r = hip_graph(graph, &g);
    if (r || !numNodes)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_list_nodes(g, false, (struct drv_node **)nodes, numNodes);
    return r;
}

hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t *pRootNodes,
                                size_t *pNumRootNodes) {
    struct drv_graph *g;
    hipError_t r = hip_graph(graph, &g);
    if (r || !pNumRootNodes)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_list_nodes(g, true, (struct drv_node **)pRootNodes, pNumRootNodes);
    return r;
}

hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t *from, hipGraphNode_t *to,
                            size_t *numEdges) {
    struct drv_graph *g;
    hipError_t r = hip_graph(graph, &g);
    if (r || !numEdges || !from != !to)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_list_edges(g, (struct drv_node **)from, (struct drv_node **)to, numEdges);
    return r;
}

static hipError_t check_edges(hipGraph_t graph, const hipGraphNode_t *from,
                              const hipGraphNode_t *to, size_t count) {
    hipError_t r = hip_check_needs(graph, from, count);
    return r ? r : hip_check_needs(graph, to, count);
}

hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t *from,
                                   const hipGraphNode_t *to, size_t numDependencies) {
    hipError_t r = check_edges(graph, from, to, numDependencies);
    drv_lock();
    for (size_t i = 0; i < numDependencies && !r; i++)
        if (from[i] == to[i])
            r = hip_error(HIP_INVALID_VALUE);
        else if (!drv_node_depend((struct drv_node *)to[i], (struct drv_node *)from[i]))
            r = hip_result(DRV_OUT_OF_MEMORY);
    drv_unlock();
    return r;
}

hipError_t hipGraphRemoveDependencies(hipGraph_t graph, const hipGraphNode_t *from,
                                      const hipGraphNode_t *to, size_t numDependencies) {
    hipError_t r = check_edges(graph, from, to, numDependencies);
    drv_lock();
    for (size_t i = 0; i < numDependencies && !r; i++)
        drv_node_independ((struct drv_node *)to[i], (struct drv_node *)from[i]);
    drv_unlock();
    return r;
}

hipError_t hipGraphDestroyNode(hipGraphNode_t node) {
    struct drv_node *n;
    hipError_t r = hip_node(node, &n);
    if (!r && n->graph->capture)
        r = hip_error(HIP_INVALID_VALUE);
    if (r)
        return r;
    drv_lock();
    drv_node_destroy(n);
    drv_unlock();
    return r;
}

hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *pType) {
    struct drv_node *n;
    hipError_t r = hip_node(node, &n);
    if (r || !pType)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *pType = n->type;
    return r;
}

hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t *pDependencies,
                                       size_t *pNumDependencies) {
    struct drv_node *n;
    hipError_t r = hip_node(node, &n);
    if (r || !pNumDependencies)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_list_needs(n, (struct drv_node **)pDependencies, pNumDependencies);
    return r;
}

hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t *pDependentNodes,
                                         size_t *pNumDependentNodes) {
    struct drv_node *n;
    hipError_t r = hip_node(node, &n);
    if (r || !pNumDependentNodes)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    drv_list_dependents(n, (struct drv_node **)pDependentNodes, pNumDependentNodes);
    return r;
}

hipError_t hipGraphNodeFindInClone(hipGraphNode_t *pNode, hipGraphNode_t originalNode,
                                   hipGraph_t clonedGraph) {
    struct drv_graph *graph;
    struct drv_node *node;
    hipError_t r = hip_graph(clonedGraph, &graph);
    if (!r)
        r = hip_node(originalNode, &node);
    if (r || !pNode)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    struct drv_node *found = drv_node_in(graph, node);
    *pNode = (hipGraphNode_t)found;
    return hip_result(found ? DRV_OK : DRV_INVALID_VALUE);
}

hipError_t hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t *pGraph) {
    struct drv_node *n;
    hipError_t r = hip_node(node, &n);
    if (r || !pGraph || !n->child)
        return r ? r : hip_error(HIP_INVALID_VALUE);
    *pGraph = (hipGraph_t)n->child;
    return r;
}
