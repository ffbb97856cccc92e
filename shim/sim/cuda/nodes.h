/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs in this face: the vendor's structures of nodes, and what the files share.
 */
#ifndef KREX_SIM_CUDA_NODES_H
#define KREX_SIM_CUDA_NODES_H

#include "face.h"
#include "sim/driver/graph.h"
#include "structs.h"

struct krex_CUDA_KERNEL_NODE_PARAMS_v1 {
    CUfunction function;
    unsigned int grid[3], block[3];
    unsigned int shared;
    void **parameters;
    void **extra;
};

struct krex_CUDA_KERNEL_NODE_PARAMS {
    struct krex_CUDA_KERNEL_NODE_PARAMS_v1 v1;
    CUkernel kernel; /* if there is no function */
    CUcontext context;
};

struct krex_CUDA_MEMSET_NODE_PARAMS {
    CUdeviceptr to;
    size_t pitch;
    unsigned int value, element;
    size_t width, height;
};

struct krex_CUDA_HOST_NODE_PARAMS {
    CUhostFn function;
    void *argument;
};

struct copy_node_params {
    int flags, reserved;
    CUcontext context;
    CUDA_MEMCPY3D copy;
};

struct krex_CUgraphNodeParams {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        CUDA_KERNEL_NODE_PARAMS kernel;
        struct copy_node_params copy;
        CUDA_MEMSET_NODE_PARAMS fill;
        CUDA_HOST_NODE_PARAMS host;
        CUgraph child;
        CUevent event;
        long long reserved1[29];
    };
    long long reserved2;
};
_Static_assert(sizeof(CUgraphNodeParams) == 256, "as the vendor's");

struct krex_CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
};

struct krex_CUDA_GRAPH_INSTANTIATE_PARAMS {
    cuuint64_t flags;
    CUstream upload;
    CUgraphNode error_node;
    unsigned int result;
};

struct krex_CUgraphExecUpdateResultInfo {
    CUgraphExecUpdateResult result;
    CUgraphNode node, from_node;
};

/* These check that the driver is initialised, and the handle. */
CUresult cu_graph(CUgraph handle, struct drv_graph **graph);
CUresult cu_node(CUgraphNode handle, struct drv_node **node);
CUresult cu_exec(CUgraphExec handle, struct drv_exec **exec);
/* Whether the graph is one, and these are nodes of it. */
CUresult cu_check_needs(CUgraph handle, const CUgraphNode *needs, size_t count);
/* Edges without ports, which all here are. NULL: too many. */
const CUgraphEdgeData *cu_plain_edges(size_t count);

#endif
