/* SPDX-License-Identifier: Apache-2.0
 *
 * cuGraph*: making graphs, and looking at them.
 */
#include "nodes.h"

enum { PLAIN_EDGES = 4096 };

CUresult cu_graph(CUgraph handle, struct drv_graph **graph) {
    enum drv_result r = drv_ready();
    *graph = (struct drv_graph *)handle;
    return cu_result(r ? r : drv_handle_is(DRV_GRAPH, handle) ? DRV_OK : DRV_INVALID_VALUE);
}

CUresult cu_node(CUgraphNode handle, struct drv_node **node) {
    enum drv_result r = drv_ready();
    *node = (struct drv_node *)handle;
    return cu_result(r ? r : drv_handle_is(DRV_GRAPH_NODE, handle) ? DRV_OK : DRV_INVALID_VALUE);
}

CUresult cu_exec(CUgraphExec handle, struct drv_exec **exec) {
    enum drv_result r = drv_ready();
    *exec = (struct drv_exec *)handle;
    return cu_result(r ? r : drv_handle_is(DRV_GRAPH_EXEC, handle) ? DRV_OK : DRV_INVALID_VALUE);
}

CUresult cu_check_needs(CUgraph handle, const CUgraphNode *needs, size_t count) {
    struct drv_graph *graph;
    struct drv_node *node;
    CUresult r = cu_graph(handle, &graph);
    if (!r && count && !needs)
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !r; i++) {
        r = cu_node(needs[i], &node);
        if (!r && node->graph != graph)
            r = CUDA_ERROR_INVALID_VALUE;
    }
    return r;
}

const CUgraphEdgeData *cu_plain_edges(size_t count) {
    static const CUgraphEdgeData edges[PLAIN_EDGES];
    return count <= PLAIN_EDGES ? edges : NULL;
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    CUresult r = cu_result(drv_ready());
    if (r || !phGraph || flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_lock();
    struct drv_graph *graph = drv_graph_create();
    drv_unlock();
    *phGraph = (CUgraph)graph;
    return cu_result(graph ? DRV_OK : DRV_OUT_OF_MEMORY);
}

CUresult cuGraphDestroy(CUgraph hGraph) {
    struct drv_graph *graph;
    CUresult r = cu_graph(hGraph, &graph);
    if (!r && graph->capture)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    drv_lock();
    drv_graph_destroy(graph);
    drv_unlock();
    return r;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
    struct drv_graph *graph;
    CUresult r = cu_graph(originalGraph, &graph);
    if (r || !phGraphClone)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_lock();
    struct drv_graph *clone = drv_graph_clone(graph);
    drv_unlock();
    *phGraphClone = (CUgraph)clone;
    return cu_result(clone ? DRV_OK : DRV_OUT_OF_MEMORY);
}

CUresult cuGraphGetId(CUgraph hGraph, unsigned int *graphId) {
    struct drv_graph *graph;
    CUresult r = graphId ? cu_graph(hGraph, &graph) : CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *graphId = graph->id;
    return r;
}

static CUresult give_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots_only) {
    struct drv_graph *graph;
    CUresult r = cu_graph(handle, &graph);
    if (r || !count)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_list_nodes(graph, roots_only, (struct drv_node **)nodes, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
    return give_nodes(hGraph, nodes, numNodes, false);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes) {
    return give_nodes(hGraph, rootNodes, numRootNodes, true);
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges) {
    struct drv_graph *graph;
    CUresult r = cu_graph(hGraph, &graph);
    if (r || !numEdges || !from != !to)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_list_edges(graph, (struct drv_node **)from, (struct drv_node **)to, numEdges);
    return CUDA_SUCCESS;
}

static void give_plain_edges(CUgraphEdgeData *edges, const size_t *count) {
    for (size_t i = 0; edges && i < *count; i++)
        edges[i] = (CUgraphEdgeData){0};
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                            CUgraphEdgeData *edgeData, size_t *numEdges) {
    CUresult r = cuGraphGetEdges(hGraph, from, to, numEdges);
    if (!r && from)
        give_plain_edges(edgeData, numEdges);
    return r;
}

static CUresult check_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                            size_t count) {
    CUresult r = cu_check_needs(handle, from, count);
    return r ? r : cu_check_needs(handle, to, count);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t numDependencies) {
    CUresult r = check_edges(hGraph, from, to, numDependencies);
    drv_lock();
    for (size_t i = 0; i < numDependencies && !r; i++)
        if (from[i] == to[i])
            r = CUDA_ERROR_INVALID_VALUE;
        else if (!drv_node_depend((struct drv_node *)to[i], (struct drv_node *)from[i]))
            r = cu_result(DRV_OUT_OF_MEMORY);
    drv_unlock();
    return r;
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edgeData, size_t numDependencies) {
    (void)edgeData;
    return cuGraphAddDependencies(hGraph, from, to, numDependencies);
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t numDependencies) {
    CUresult r = check_edges(hGraph, from, to, numDependencies);
    drv_lock();
    for (size_t i = 0; i < numDependencies && !r; i++)
        drv_node_independ((struct drv_node *)to[i], (struct drv_node *)from[i]);
    drv_unlock();
    return r;
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                      const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                      size_t numDependencies) {
    (void)edgeData;
    return cuGraphRemoveDependencies(hGraph, from, to, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
    struct drv_node *node;
    CUresult r = cu_node(hNode, &node);
    if (!r && node->graph->capture)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    drv_lock();
    drv_node_destroy(node);
    drv_unlock();
    return r;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
    struct drv_node *node;
    CUresult r = cu_node(hNode, &node);
    if (r || !type)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                    size_t *numDependencies) {
    struct drv_node *node;
    CUresult r = cu_node(hNode, &node);
    if (r || !numDependencies)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_list_needs(node, (struct drv_node **)dependencies, numDependencies);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                       CUgraphEdgeData *edgeData, size_t *numDependencies) {
    CUresult r = cuGraphNodeGetDependencies(hNode, dependencies, numDependencies);
    if (!r && dependencies)
        give_plain_edges(edgeData, numDependencies);
    return r;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                      size_t *numDependentNodes) {
    struct drv_node *node;
    CUresult r = cu_node(hNode, &node);
    if (r || !numDependentNodes)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    drv_list_dependents(node, (struct drv_node **)dependentNodes, numDependentNodes);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                         CUgraphEdgeData *edgeData, size_t *numDependentNodes) {
    CUresult r = cuGraphNodeGetDependentNodes(hNode, dependentNodes, numDependentNodes);
    if (!r && dependentNodes)
        give_plain_edges(edgeData, numDependentNodes);
    return r;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                CUgraph hClonedGraph) {
    struct drv_graph *graph;
    struct drv_node *node;
    CUresult r = cu_graph(hClonedGraph, &graph);
    if (!r)
        r = cu_node(hOriginalNode, &node);
    if (r || !phNode)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    struct drv_node *found = drv_node_in(graph, node);
    *phNode = (CUgraphNode)found;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) {
    struct drv_node *node;
    CUresult r = cu_node(hNode, &node);
    if (r || !phGraph || !node->child)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *phGraph = (CUgraph)node->child;
    return CUDA_SUCCESS;
}
