/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pointers are handles: programs pass garbage, and handles that they destroyed, and get an error.
 * A set, open addressed; what was removed leaves a mark until the table grows.
 */
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry {
    const void *handle; /* NULL: free for good, or (type set) removed */
    unsigned type;      /* an enum drv_type */
} *table;
static size_t size, used; /* used: removed ones included */

enum { REMOVED = 255, FIRST = 256 };

static size_t hash(const void *handle) { return ((uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 20; }

static struct entry *find(const void *handle) {
    if (!size || !handle)
        return NULL;
    for (size_t i = hash(handle) % size;; i = (i + 1) % size) {
        if (table[i].handle == handle)
            return &table[i];
        if (!table[i].handle && !table[i].type)
            return NULL;
    }
}

static void put(unsigned type, const void *handle) {
    size_t i = hash(handle) % size;
    while (table[i].handle)
        i = (i + 1) % size;
    used += !table[i].type;
    table[i] = (struct entry){handle, type};
}

static bool grow(void) {
    struct entry *old = table;
    size_t old_size = size, live = 0;
    for (size_t i = 0; i < old_size; i++)
        live += old[i].handle != NULL;
    size_t wanted = FIRST;
    while (wanted < 4 * live)
        wanted *= 2;
    struct entry *made = calloc(wanted, sizeof *made);
    if (!made)
        return false;
    table = made;
    size = wanted;
    used = 0;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].handle)
            put(old[i].type, old[i].handle);
    free(old);
    return true;
}

bool drv_handle_add(enum drv_type type, const void *handle) {
    pthread_mutex_lock(&lock);
    bool room = used + 1 < size / 2 || grow();
    if (room)
        put(type, handle);
    pthread_mutex_unlock(&lock);
    return room;
}

bool drv_handle_is(enum drv_type type, const void *handle) {
    pthread_mutex_lock(&lock);
    struct entry *e = find(handle);
    bool is = e && e->type == type;
    pthread_mutex_unlock(&lock);
    return is;
}

void drv_handle_remove(const void *handle) {
    pthread_mutex_lock(&lock);
    struct entry *e = find(handle);
    if (e)
        *e = (struct entry){NULL, REMOVED};
    pthread_mutex_unlock(&lock);
}
