/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs in this face: the vendor's structures of nodes, and what the files share.
 */
#ifndef KREX_SIM_HIP_NODES_H
#define KREX_SIM_HIP_NODES_H

#include "sim/driver/graph.h"
#include "structs.h"

struct krex_hipKernelNodeParams {
    dim3 block;
    void **extra;
    void *function;
    dim3 grid;
    void **parameters;
    unsigned int shared;
};

struct krex_hipMemsetParams {
    void *to;
    unsigned int element;
    size_t height, pitch;
    unsigned int value;
    size_t width;
};

struct krex_hipHostNodeParams {
    hipHostFn_t function;
    void *argument;
};

struct krex_hipGraphNodeParams {
    hipGraphNodeType type;
    int reserved0[3];
    union {
        hipKernelNodeParams kernel;
        struct {
            int flags, reserved[3];
            hipMemcpy3DParms copy;
        } copy;
        hipMemsetParams fill;
        hipHostNodeParams host;
        hipGraph_t child;
        hipEvent_t event;
        long long reserved1[29];
    };
    long long reserved2;
};
_Static_assert(sizeof(hipGraphNodeParams) == 256, "as the vendor's");

struct krex_hipGraphInstantiateParams {
    hipGraphNode_t error_node;
    unsigned long long flags;
    unsigned int result;
    hipStream_t upload;
};

/* These check the handle. */
hipError_t hip_graph(hipGraph_t handle, struct drv_graph **graph);
hipError_t hip_node(hipGraphNode_t handle, struct drv_node **node);
hipError_t hip_exec(hipGraphExec_t handle, struct drv_exec **exec);
/* Whether the graph is one, and these are nodes of it. */
hipError_t hip_check_needs(hipGraph_t handle, const hipGraphNode_t *needs, size_t count);

#endif
