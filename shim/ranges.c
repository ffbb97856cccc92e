/* SPDX-License-Identifier: Apache-2.0 */
#include "ranges.h"

#include <pthread.h>
#include <string.h>

#include "arm.h"
#include "region.h"

enum { RANGES = 16, DOMAINS = 16, LEVELS = 64 };

struct krex_range {
    char name[KREX_RANGE_NAME_SIZE]; /* with its domain */
    size_t length;                   /* without */
    const char *domain;              /* NULL: any */
};

static struct krex_range ranges[RANGES];
static int count;

static void ask_for(const char *name, size_t length) {
    struct krex_range *r = &ranges[count];
    if (!length || length >= sizeof r->name || count == RANGES)
        return;
    memcpy(r->name, name, length);
    char *at = strrchr(r->name, '@');
    r->domain = at && at != r->name ? at + 1 : NULL;
    r->length = r->domain ? (size_t)(at - r->name) : length;
    count++;
}

static void read_ranges(void) {
    size_t length = 0;
    for (const char *rest = NULL, *item; (item = krex_region_item(&rest, &length));)
        if (length > 5 && !strncmp(item, "nvtx:", 5))
            ask_for(item + 5, length - 5);
}

bool krex_ranges_asked(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_ranges);
    return count > 0;
}

static bool is_called(const struct krex_range *r, const char *name) {
    return strlen(name) == r->length && !memcmp(name, r->name, r->length);
}

const struct krex_range *krex_range_of(const char *name) {
    for (const struct krex_range *r = ranges; name && r < ranges + count; r++)
        if (is_called(r, name) || !strcmp(name, r->name))
            return r;
    return NULL;
}

bool krex_range_is_in(const struct krex_range *r, const char *domain) {
    return !r->domain || (domain && !strcmp(domain, r->domain));
}

void krex_range_arm(const struct krex_range *r) { krex_arm("nvtx", r->name); }

struct stack {
    const void *domain;
    uint64_t armed; /* by level */
    uint32_t depth;
    bool used;
};
static __thread struct stack stacks[DOMAINS];

static pthread_key_t exit_key;
static bool exit_key_made;

/* A thread that ends inside its ranges would leave the process armed for good. */
static void end_with_thread(void *unused) {
    (void)unused;
    for (struct stack *s = stacks; s < stacks + DOMAINS; s++)
        for (; s->armed; s->armed &= s->armed - 1)
            krex_disarm();
}

static void make_exit_key(void) {
    exit_key_made = pthread_key_create(&exit_key, end_with_thread) == 0;
}

static void watch_thread(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_exit_key);
    if (exit_key_made)
        pthread_setspecific(exit_key, stacks);
}

/* NULL: the thread has used too many; what is in further ones is not seen. */
static struct stack *stack_of(const void *domain) {
    for (struct stack *s = stacks; s < stacks + DOMAINS; s++)
        if (!s->used || s->domain == domain) {
            s->used = true;
            s->domain = domain;
            return s;
        }
    return NULL;
}

int krex_range_push(const void *domain, const struct krex_range *r) {
    struct stack *s = stack_of(domain);
    if (!s)
        return 0;
    if (s->depth < LEVELS && r) {
        s->armed |= UINT64_C(1) << s->depth;
        watch_thread();
        krex_range_arm(r);
    }
    return (int)s->depth++;
}

int krex_range_pop(const void *domain) {
    struct stack *s = stack_of(domain);
    if (!s || !s->depth)
        return -1;
    s->depth--;
    uint64_t bit = s->depth < LEVELS ? UINT64_C(1) << s->depth : 0;
    if (s->armed & bit)
        krex_disarm();
    s->armed &= ~bit;
    return (int)s->depth;
}
