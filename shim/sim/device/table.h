/* SPDX-License-Identifier: Apache-2.0
 *
 * Things by a number other than 0: open addressing, the gaps closed when one is taken out.
 */
#ifndef KREX_SIM_TABLE_H
#define KREX_SIM_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct place {
    uint64_t key;
    void *thing;
};

struct table {
    struct place *places;
    size_t count, size; /* a power of two, at least twice the count */
};

void *table_find(const struct table *, uint64_t key);
void table_put(struct table *, uint64_t key, void *thing);
void table_drop(struct table *, uint64_t key);
void table_free(struct table *);

#endif
