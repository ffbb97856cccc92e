/* SPDX-License-Identifier: Apache-2.0
 *
 * NVTX ranges as marks (ranges.h). A program that uses NVTX loads the library that
 * NVTX_INJECTION64_PATH names and has it fill in its functions; `krex run` names this one. What is here
 * of NVTX's interface is what its headers say of a tool's side, version 2 and later.
 */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "arm.h"
#include "atomic.h"
#include "ranges.h"

#define EXPORT __attribute__((visibility("default")))

enum { CALLBACKS = 1 };       /* of the export tables */
enum { CORE = 1, CORE2 = 5 }; /* of the modules of functions */
enum { ASCII = 1, UNICODE = 2, REGISTERED = 3 };

typedef void (*function)(void);

struct callbacks {
    size_t size;
    int (*get_table)(int module, function ***table, unsigned int *size);
};

struct attributes {
    uint16_t version, size;
    uint32_t category, color_type, color, payload_type, reserved;
    uint64_t payload;
    uint32_t message_type;
    const void *message;
};

/* What a string is registered as that no range is called. */
static const char no_range;

struct domain {
    struct domain *next;
    char name[128];
};
static struct domain *domains; /* a list, which only grows */

/* --- names --- */

/* As UTF-8, cut where it does not fit. */
static const char *narrow(const wchar_t *wide, char *to, size_t size) {
    size_t n = 0;
    for (; wide && *wide && n + 4 < size; wide++) {
        uint32_t c = (uint32_t)*wide;
        int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
        to[n++] = (char)(first[more] | c >> 6 * more);
        while (more--)
            to[n++] = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
    to[n] = '\0';
    return to;
}

static const struct krex_range *range_of_wide(const wchar_t *name) {
    char text[KREX_RANGE_NAME_SIZE];
    return krex_range_of(narrow(name, text, sizeof text));
}

static const struct krex_range *range_of_attributes(const struct attributes *a) {
    if (!a || a->size < sizeof *a)
        return NULL;
    if (a->message_type == ASCII)
        return krex_range_of(a->message);
    if (a->message_type == UNICODE)
        return range_of_wide(a->message);
    return a->message_type == REGISTERED && a->message != (const void *)&no_range ? a->message
                                                                                  : NULL;
}

/* The range, if it is asked for in that domain. */
static const struct krex_range *in(const struct domain *domain, const struct krex_range *r) {
    return r && krex_range_is_in(r, domain ? domain->name : NULL) ? r : NULL;
}

/* --- ranges of a thread --- */

static int push(const struct domain *domain, const struct krex_range *r) {
    return krex_range_push(domain, in(domain, r));
}

static int push_ex(const struct attributes *a) { return push(NULL, range_of_attributes(a)); }
static int push_a(const char *name) { return push(NULL, krex_range_of(name)); }
static int push_w(const wchar_t *name) { return push(NULL, range_of_wide(name)); }
static int pop_global(void) { return krex_range_pop(NULL); }
static int domain_pop(const struct domain *d) { return krex_range_pop(d); }
static int domain_push(const struct domain *d, const struct attributes *a) {
    return push(d, range_of_attributes(a));
}

/* --- ranges of the process: whoever ends them; their id says whether they arm --- */

static uint64_t start(const struct domain *domain, const struct krex_range *r) {
    static uint64_t last;
    bool arms = in(domain, r) != NULL;
    if (arms)
        krex_range_arm(r);
    return krex_add_seq_cst(&last, 1) << 1 | arms;
}

static void end(uint64_t id) {
    if (id & 1)
        krex_disarm();
}

static uint64_t start_ex(const struct attributes *a) { return start(NULL, range_of_attributes(a)); }
static uint64_t start_a(const char *name) { return start(NULL, krex_range_of(name)); }
static uint64_t start_w(const wchar_t *name) { return start(NULL, range_of_wide(name)); }
static uint64_t domain_start(const struct domain *d, const struct attributes *a) {
    return start(d, range_of_attributes(a));
}
static void domain_end(const struct domain *d, uint64_t id) {
    (void)d;
    end(id);
}

/* --- domains and strings --- */

static const struct domain *make_domain(const char *name) {
    struct domain *d = name ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return NULL;
    strncpy(d->name, name, sizeof d->name - 1);
    d->next = krex_load_relaxed(&domains);
    while (!__atomic_compare_exchange_n(&domains, &d->next, d, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    return d;
}

static const struct domain *make_domain_wide(const wchar_t *name) {
    char text[sizeof domains->name];
    return make_domain(narrow(name, text, sizeof text));
}

static const void *registered(const struct krex_range *r) {
    return r ? (const void *)r : &no_range;
}
static const void *register_a(const struct domain *d, const char *name) {
    (void)d;
    return registered(krex_range_of(name));
}
static const void *register_w(const struct domain *d, const wchar_t *name) {
    (void)d;
    return registered(range_of_wide(name));
}

/* --- the tool's side --- */

struct entry {
    int module;
    unsigned int number;
    function function;
};

static const struct entry entries[] = {
    {CORE, 4, (function)start_ex},      {CORE, 5, (function)start_a},
    {CORE, 6, (function)start_w},       {CORE, 7, (function)end},
    {CORE, 8, (function)push_ex},       {CORE, 9, (function)push_a},
    {CORE, 10, (function)push_w},       {CORE, 11, (function)pop_global},
    {CORE2, 2, (function)domain_start}, {CORE2, 3, (function)domain_end},
    {CORE2, 4, (function)domain_push},  {CORE2, 5, (function)domain_pop},
    {CORE2, 10, (function)register_a},  {CORE2, 11, (function)register_w},
    {CORE2, 12, (function)make_domain}, {CORE2, 13, (function)make_domain_wide},
};

static void fill_in(const struct callbacks *c, const struct entry *e) {
    function **table = NULL;
    unsigned int size = 0;
    if (c->get_table(e->module, &table, &size) && e->number < size && table[e->number])
        *table[e->number] = e->function;
}

/* Called by each copy of NVTX in the process, once, at its first use. 0: it does without a tool. */
EXPORT int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t number)) {
    const struct callbacks *c = krex_ranges_asked() ? get_export_table(CALLBACKS) : NULL;
    if (!c || c->size < sizeof *c)
        return 0;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        fill_in(c, &entries[i]);
    return 1;
}
