/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of work, and those that can be launched. A launch submits the nodes one after another, in an
 * order that the edges allow, to the one stream: branches do not run beside each other.
 *
 * Calls on one graph are the program's to serialise, but a capture's graph grows under drv_lock. So all
 * functions here are called locked, unless said otherwise.
 */
#ifndef KREX_SIM_DRIVER_GRAPH_H
#define KREX_SIM_DRIVER_GRAPH_H

#include "driver.h"

/* In the order of the vendors' numbers. */
enum drv_node_type {
    DRV_NODE_KERNEL,
    DRV_NODE_COPY,
    DRV_NODE_FILL,
    DRV_NODE_HOST,
    DRV_NODE_GRAPH,
    DRV_NODE_EMPTY,
    DRV_NODE_WAIT_EVENT,
    DRV_NODE_RECORD_EVENT,
};

struct drv_node {
    struct drv_graph *graph;
    const struct drv_node *origin; /* of a clone's: the node that it was copied from */
    enum drv_node_type type;
    struct drv_work work;    /* but for GRAPH and EMPTY; it keeps the function it runs */
    struct drv_graph *child; /* of a GRAPH */
    struct drv_node **needs; /* what it comes after */
    uint32_t need_count;
    uint32_t index; /* in the graph */
    uint32_t mark;  /* for walks */
};

struct drv_graph {
    struct drv_node **nodes;
    uint32_t count;
    uint32_t id;
    const struct drv_capture *capture; /* it is being captured into */
};

struct drv_exec {
    struct drv_graph *graph; /* its own copy, in an order that can be submitted */
    uint32_t id;
    uint64_t flags;
};

struct drv_graph *drv_graph_create(void); /* NULL: no memory */
void drv_graph_destroy(struct drv_graph *graph);
struct drv_graph *drv_graph_clone(const struct drv_graph *graph);

/* Takes over what work owns, whether it succeeds or not; work is NULL where a type has none. NULL: no
 * memory. The needs are nodes of the graph. */
struct drv_node *drv_node_add(struct drv_graph *graph, enum drv_node_type type,
                              struct drv_work *work, struct drv_node *const *needs, size_t count);
/* The same for a GRAPH, of a copy of child. */
struct drv_node *drv_node_add_child(struct drv_graph *graph, const struct drv_graph *child,
                                    struct drv_node *const *needs, size_t count);
bool drv_node_depend(struct drv_node *node,
                     struct drv_node *on); /* once, however often it is said */
void drv_node_independ(struct drv_node *node, const struct drv_node *on);
void drv_node_destroy(struct drv_node *node);
void drv_node_set_work(struct drv_node *node, struct drv_work *work); /* takes over what it owns */
/* The node of a copy; NULL: it has none. */
struct drv_node *drv_node_in(const struct drv_graph *copy, const struct drv_node *origin);
enum drv_node_type drv_node_type_of(const struct drv_work *work);

/* nodes.c: *count is how many there is room for, and then how many there are. Not locked. */
void drv_list_nodes(const struct drv_graph *graph, bool roots_only, struct drv_node **nodes,
                    size_t *count);
void drv_list_edges(const struct drv_graph *graph, struct drv_node **from, struct drv_node **to,
                    size_t *count);
void drv_list_needs(const struct drv_node *node, struct drv_node **needs, size_t *count);
void drv_list_dependents(const struct drv_node *node, struct drv_node **nodes, size_t *count);

/* Marks all that the nodes come after, themselves included; nothing else is marked then. */
bool drv_graph_mark_before(const struct drv_graph *graph, struct drv_node *const *nodes,
                           size_t count);

/* DRV_INVALID_VALUE: the edges make a circle. */
enum drv_result drv_exec_make(const struct drv_graph *graph, struct drv_exec **made);
void drv_exec_destroy(struct drv_exec *exec);
enum drv_result drv_exec_launch(struct drv_exec *exec, struct drv_stream *stream); /* not locked */

/* Takes over what the nodes of a graph of the same shape do; else nothing is changed. */
enum drv_update { DRV_UPDATED, DRV_TOPOLOGY_CHANGED, DRV_NODE_TYPE_CHANGED, DRV_UPDATE_NO_MEMORY };
enum drv_update drv_exec_update(struct drv_exec *exec, const struct drv_graph *graph,
                                const struct drv_node **differs);

#endif
