/* SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "module.h"

static uint32_t last_id;

/* Grows at powers of two. */
static bool append(struct drv_node ***list, uint32_t count, struct drv_node *node) {
    if (!(count & (count - 1))) {
        struct drv_node **grown = reallocarray(*list, count ? (size_t)count * 2 : 1, sizeof *grown);
        if (!grown)
            return false;
        *list = grown;
    }
    (*list)[count] = node;
    return true;
}

static void take_out(struct drv_node **list, uint32_t *count, uint32_t at) {
    memmove(list + at, list + at + 1, (*count - at - 1) * sizeof(struct drv_node *));
    --*count;
}

struct drv_graph *drv_graph_create(void) {
    struct drv_graph *graph = calloc(1, sizeof *graph);
    if (!graph || !drv_handle_add(DRV_GRAPH, graph)) {
        free(graph);
        return NULL;
    }
    graph->id = ++last_id;
    return graph;
}

/* What a node's work keeps: its function. */
static void hold(const struct drv_work *work) {
    if (work->kind == KREX_SIM_RUN)
        drv_function_hold(work->launch.function);
}

static void let_go(struct drv_work *work) {
    if (work->kind == KREX_SIM_RUN)
        drv_function_release(work->launch.function);
    drv_work_drop(work);
}

static void free_node(struct drv_node *node) {
    drv_handle_remove(node);
    let_go(&node->work);
    if (node->child)
        drv_graph_destroy(node->child);
    free(node->needs);
    free(node);
}

void drv_graph_destroy(struct drv_graph *graph) {
    drv_handle_remove(graph);
    for (uint32_t i = 0; i < graph->count; i++)
        free_node(graph->nodes[i]);
    free(graph->nodes);
    free(graph);
}

enum drv_node_type drv_node_type_of(const struct drv_work *work) {
    switch (work->kind) {
    case KREX_SIM_RUN:
        return DRV_NODE_KERNEL;
    case KREX_SIM_FILL:
        return DRV_NODE_FILL;
    case KREX_SIM_HOST:
        return DRV_NODE_HOST;
    case KREX_SIM_EVENT:
        return work->event ? DRV_NODE_RECORD_EVENT : DRV_NODE_EMPTY;
    default:
        return DRV_NODE_COPY;
    }
}

bool drv_node_depend(struct drv_node *node, struct drv_node *on) {
    for (uint32_t i = 0; i < node->need_count; i++)
        if (node->needs[i] == on)
            return true;
    bool added = append(&node->needs, node->need_count, on);
    node->need_count += added;
    return added;
}

void drv_node_independ(struct drv_node *node, const struct drv_node *on) {
    for (uint32_t i = 0; i < node->need_count; i++)
        if (node->needs[i] == on) {
            take_out(node->needs, &node->need_count, i);
            return;
        }
}

static struct drv_node *make_node(struct drv_graph *graph, enum drv_node_type type) {
    struct drv_node *node = calloc(1, sizeof *node);
    if (!node || !drv_handle_add(DRV_GRAPH_NODE, node)) {
        free(node);
        return NULL;
    }
    node->graph = graph;
    node->type = type;
    return node;
}

static struct drv_node *enlist(struct drv_node *node, struct drv_node *const *needs, size_t count) {
    struct drv_graph *graph = node->graph;
    bool done = true;
    for (size_t i = 0; i < count && done; i++)
        done = drv_node_depend(node, needs[i]);
    if (!done || !append(&graph->nodes, graph->count, node)) {
        free_node(node);
        return NULL;
    }
    node->index = graph->count++;
    return node;
}

struct drv_node *drv_node_add(struct drv_graph *graph, enum drv_node_type type,
                              struct drv_work *work, struct drv_node *const *needs, size_t count) {
    struct drv_node *node = make_node(graph, type);
    if (!node) {
        if (work)
            drv_work_drop(work);
        return NULL;
    }
    if (work) {
        node->work = *work;
        *work = (struct drv_work){0};
        hold(&node->work);
    }
    return enlist(node, needs, count);
}

struct drv_node *drv_node_add_child(struct drv_graph *graph, const struct drv_graph *child,
                                    struct drv_node *const *needs, size_t count) {
    struct drv_node *node = make_node(graph, DRV_NODE_GRAPH);
    if (!node)
        return NULL;
    node->child = drv_graph_clone(child);
    if (node->child)
        return enlist(node, needs, count);
    free_node(node);
    return NULL;
}

void drv_node_destroy(struct drv_node *node) {
    struct drv_graph *graph = node->graph;
    take_out(graph->nodes, &graph->count, node->index);
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->index = i;
        drv_node_independ(graph->nodes[i], node);
    }
    free_node(node);
}

void drv_node_set_work(struct drv_node *node, struct drv_work *work) {
    hold(work);
    let_go(&node->work);
    node->work = *work;
    *work = (struct drv_work){0};
}

struct drv_node *drv_node_in(const struct drv_graph *copy, const struct drv_node *origin) {
    for (uint32_t i = 0; i < copy->count; i++) {
        struct drv_node *node = copy->nodes[i];
        struct drv_node *inside = node->child ? drv_node_in(node->child, origin) : NULL;
        if (node->origin == origin || inside)
            return inside ? inside : node;
    }
    return NULL;
}

static struct drv_node *clone_node(struct drv_graph *to, const struct drv_node *from) {
    struct drv_work work = {0};
    if (from->child) {
        struct drv_node *node = drv_node_add_child(to, from->child, NULL, 0);
        if (node)
            node->origin = from;
        return node;
    }
    if (!drv_work_copy(&work, &from->work))
        return NULL;
    struct drv_node *node = drv_node_add(to, from->type, &work, NULL, 0);
    if (node)
        node->origin = from;
    return node;
}

static bool clone_edges(const struct drv_graph *to, const struct drv_graph *from) {
    bool done = true;
    for (uint32_t i = 0; i < from->count; i++)
        for (uint32_t n = 0; n < from->nodes[i]->need_count && done; n++)
            done = drv_node_depend(to->nodes[i], to->nodes[from->nodes[i]->needs[n]->index]);
    return done;
}

struct drv_graph *drv_graph_clone(const struct drv_graph *graph) {
    struct drv_graph *to = drv_graph_create();
    bool done = to != NULL;
    for (uint32_t i = 0; i < graph->count && done; i++)
        done = clone_node(to, graph->nodes[i]) != NULL;
    if (done && clone_edges(to, graph))
        return to;
    if (to)
        drv_graph_destroy(to);
    return NULL;
}

/* Nodes that are marked, and whose needs are still to be. */
struct walk {
    struct drv_node **stack;
    uint32_t depth;
};

static bool reach(struct walk *walk, struct drv_node *node) {
    if (node->mark)
        return true;
    node->mark = 1;
    bool done = append(&walk->stack, walk->depth, node);
    walk->depth += done;
    return done;
}

/* Without recursion: a chain may be as long as the program likes. */
static bool follow(struct walk *walk) {
    bool done = true;
    while (walk->depth && done) {
        const struct drv_node *node = walk->stack[--walk->depth];
        for (uint32_t n = 0; n < node->need_count && done; n++)
            done = reach(walk, node->needs[n]);
    }
    return done;
}

bool drv_graph_mark_before(const struct drv_graph *graph, struct drv_node *const *nodes,
                           size_t count) {
    struct walk walk = {NULL, 0};
    bool done = true;
    for (uint32_t i = 0; i < graph->count; i++)
        graph->nodes[i]->mark = 0;
    for (size_t i = 0; i < count && done; i++)
        done = reach(&walk, nodes[i]) && follow(&walk);
    free(walk.stack);
    return done;
}

/* Where each node's users are: the edges, turned around, user[first[i]] to user[first[i + 1] - 1]. */
struct users {
    uint32_t *first;
    struct drv_node **user;
};

static bool find_users(const struct drv_graph *graph, struct users *u) {
    size_t edges = 0;
    for (uint32_t i = 0; i < graph->count; i++)
        edges += graph->nodes[i]->need_count;
    u->first = calloc((size_t)graph->count + 2, sizeof *u->first);
    u->user = calloc(edges + 1, sizeof(struct drv_node *));
    if (!u->first || !u->user)
        return false;
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t n = 0; n < graph->nodes[i]->need_count; n++)
            u->first[graph->nodes[i]->needs[n]->index + 2]++;
    for (uint32_t i = 2; i < graph->count + 2; i++)
        u->first[i] += u->first[i - 1];
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t n = 0; n < graph->nodes[i]->need_count; n++)
            u->user[u->first[graph->nodes[i]->needs[n]->index + 1]++] = graph->nodes[i];
    return true;
}

/* The nodes that need nothing, then those that need only them, and so on. How many those are. */
static uint32_t put_in_order(const struct drv_graph *graph, const struct users *u,
                             struct drv_node **order) {
    uint32_t ordered = 0;
    for (uint32_t i = 0; i < graph->count; i++)
        if ((graph->nodes[i]->mark = graph->nodes[i]->need_count) == 0)
            order[ordered++] = graph->nodes[i];
    for (uint32_t i = 0; i < ordered; i++) {
        uint32_t node = order[i]->index;
        for (uint32_t n = u->first[node]; n < u->first[node + 1]; n++)
            if (!--u->user[n]->mark && ordered < graph->count)
                order[ordered++] = u->user[n];
    }
    return ordered;
}

static enum drv_result sort(struct drv_graph *graph) {
    struct users users;
    struct drv_node **order = calloc((size_t)graph->count + 1, sizeof *order);
    enum drv_result r = order && find_users(graph, &users) ? DRV_OK : DRV_OUT_OF_MEMORY;
    if (!r && put_in_order(graph, &users, order) != graph->count)
        r = DRV_INVALID_VALUE;
    for (uint32_t i = 0; i < graph->count && !r; i++) {
        graph->nodes[i] = order[i];
        order[i]->index = i;
    }
    for (uint32_t i = 0; i < graph->count && !r; i++)
        if (graph->nodes[i]->child)
            r = sort(graph->nodes[i]->child);
    if (order) {
        free(users.first);
        free(users.user);
    }
    free(order);
    return r;
}

enum drv_result drv_exec_make(const struct drv_graph *graph, struct drv_exec **made) {
    struct drv_exec *exec = calloc(1, sizeof *exec);
    if (!exec || !(exec->graph = drv_graph_clone(graph))) {
        free(exec);
        return DRV_OUT_OF_MEMORY;
    }
    exec->id = ++last_id;
    enum drv_result r = sort(exec->graph);
    if (!r && !drv_handle_add(DRV_GRAPH_EXEC, exec))
        r = DRV_OUT_OF_MEMORY;
    if (r)
        drv_exec_destroy(exec);
    else
        *made = exec;
    return r;
}

void drv_exec_destroy(struct drv_exec *exec) {
    drv_handle_remove(exec);
    drv_graph_destroy(exec->graph);
    free(exec);
}

/* Not locked. */
static enum drv_result launch(const struct drv_graph *graph, struct drv_stream *stream) {
    enum drv_result r = DRV_OK;
    for (uint32_t i = 0; i < graph->count && !r; i++) {
        const struct drv_node *node = graph->nodes[i];
        if (node->child)
            r = launch(node->child, stream);
        if (!node->work.kind)
            continue;
        struct drv_work work;
        drv_lock();
        bool copied = drv_work_copy(&work, &node->work);
        drv_unlock();
        r = copied ? drv_submit(stream, &work, NULL, 0, NULL) : DRV_OUT_OF_MEMORY;
    }
    return r;
}

enum drv_result drv_exec_launch(struct drv_exec *exec, struct drv_stream *stream) {
    return launch(exec->graph, stream);
}

/* Both are in order; so those of the same shape differ in nothing but what the nodes do. */
static enum drv_update compare(const struct drv_graph *a, const struct drv_graph *b,
                               const struct drv_node **differs) {
    enum drv_update r = a->count == b->count ? DRV_UPDATED : DRV_TOPOLOGY_CHANGED;
    for (uint32_t i = 0; i < b->count && !r; i++) {
        const struct drv_node *x = a->nodes[i], *y = b->nodes[i];
        *differs = y->origin;
        if (x->type != y->type)
            return DRV_NODE_TYPE_CHANGED;
        if (x->need_count != y->need_count)
            return DRV_TOPOLOGY_CHANGED;
        for (uint32_t n = 0; n < x->need_count; n++)
            if (x->needs[n]->index != y->needs[n]->index)
                return DRV_TOPOLOGY_CHANGED;
        if (x->child)
            r = compare(x->child, y->child, differs);
    }
    if (!r)
        *differs = NULL;
    return r;
}

static void exchange(struct drv_graph *a, struct drv_graph *b) {
    for (uint32_t i = 0; i < a->count; i++) {
        struct drv_work work = a->nodes[i]->work;
        a->nodes[i]->work = b->nodes[i]->work;
        b->nodes[i]->work = work;
        if (a->nodes[i]->child)
            exchange(a->nodes[i]->child, b->nodes[i]->child);
    }
}

enum drv_update drv_exec_update(struct drv_exec *exec, const struct drv_graph *graph,
                                const struct drv_node **differs) {
    *differs = NULL;
    struct drv_graph *copy = drv_graph_clone(graph);
    if (!copy)
        return DRV_UPDATE_NO_MEMORY;
    enum drv_update r = sort(copy) ? DRV_TOPOLOGY_CHANGED : compare(exec->graph, copy, differs);
    if (!r)
        exchange(exec->graph, copy);
    drv_graph_destroy(copy);
    return r;
}
