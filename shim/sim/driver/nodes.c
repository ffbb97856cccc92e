/* SPDX-License-Identifier: Apache-2.0
 *
 * What the vendors' lists of nodes have in common: all that fit, NULL in the places that are left, and how
 * many there are; or only that, if no list is given.
 */
#include "graph.h"

struct answer {
    struct drv_node **to;
    size_t room, count;
};

static struct answer ask(struct drv_node **to, const size_t *room) {
    return (struct answer){to, to ? *room : 0, 0};
}

static void give(struct answer *a, struct drv_node *node) {
    if (a->to && a->count < a->room)
        a->to[a->count] = node;
    a->count++;
}

static void given(const struct answer *a, size_t *count) {
    for (size_t i = a->count; a->to && i < a->room; i++)
        a->to[i] = NULL;
    *count = a->to && a->room < a->count ? a->room : a->count;
}

void drv_list_nodes(const struct drv_graph *graph, bool roots_only, struct drv_node **nodes,
                    size_t *count) {
    struct answer a = ask(nodes, count);
    for (uint32_t i = 0; i < graph->count; i++)
        if (!roots_only || !graph->nodes[i]->need_count)
            give(&a, graph->nodes[i]);
    given(&a, count);
}

void drv_list_edges(const struct drv_graph *graph, struct drv_node **from, struct drv_node **to,
                    size_t *count) {
    struct answer a = ask(from, count), b = ask(to, count);
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t n = 0; n < graph->nodes[i]->need_count; n++) {
            give(&a, graph->nodes[i]->needs[n]);
            give(&b, graph->nodes[i]);
        }
    given(&b, count);
    given(&a, count);
}

void drv_list_needs(const struct drv_node *node, struct drv_node **needs, size_t *count) {
    struct answer a = ask(needs, count);
    for (uint32_t i = 0; i < node->need_count; i++)
        give(&a, node->needs[i]);
    given(&a, count);
}

void drv_list_dependents(const struct drv_node *node, struct drv_node **nodes, size_t *count) {
    struct answer a = ask(nodes, count);
    for (uint32_t i = 0; i < node->graph->count; i++)
        for (uint32_t n = 0; n < node->graph->nodes[i]->need_count; n++)
            if (node->graph->nodes[i]->needs[n] == node)
                give(&a, node->graph->nodes[i]);
    given(&a, count);
}
