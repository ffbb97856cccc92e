/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring of links that lie in what is listed. A link that is in no list points to itself.
 */
#ifndef KREX_SIM_LIST_H
#define KREX_SIM_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *next, *before;
};

static inline void link_init(struct link *l) { l->next = l->before = l; }

static inline bool list_empty(const struct link *list) { return list->next == list; }

static inline void link_drop(struct link *l) {
    l->next->before = l->before;
    l->before->next = l->next;
    link_init(l);
}

static inline void list_append(struct link *list, struct link *l) {
    l->before = list->before;
    l->next = list;
    list->before->next = l;
    list->before = l;
}

#define LISTED(link_, type, member) ((type *)((char *)(link_) - offsetof(type, member)))

/* The first of a list, or NULL. */
#define LIST_FIRST(list, type, member)                                                             \
    (list_empty(list) ? NULL : LISTED((list)->next, type, member))

#endif
