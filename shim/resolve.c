/* SPDX-License-Identifier: Apache-2.0
 *
 * What resolve-<arch>.S asks on every lookup of the program: is this one ours to answer?
 *
 * Almost never; then the stub jumps to the real function, which tells its caller by the return
 * address and so must not be called from here. A lookup that is ours is made first, and answered by a
 * hook only if it found the vendor's own library: what it did not find, we do not offer, and what
 * belongs to somebody else (a tracer, the program itself) stays theirs.
 */
#include "resolve.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "atomic.h"
#include "vendor.h"

typedef void *(*dlsym_fn)(void *handle, const char *name);
typedef void *(*dlvsym_fn)(void *handle, const char *name, const char *version);

/* Returned in two registers. */
struct krex_answer {
    void *symbol;
    uintptr_t answered; /* 0: jump to the real function */
};

/* Read by the stubs, after krex_look_up. Written once each, with the same value by whoever is first. */
__attribute__((visibility("hidden"))) dlsym_fn krex_next_dlsym;
__attribute__((visibility("hidden"))) dlvsym_fn krex_next_dlvsym;

struct symbols {
    const ElfW(Sym) * symbol;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH */
};

/* Nothing here may call a function by its name: sanitizers and others take libc's over, and look up
 * the real ones by dlsym, so that we run before they can. The fence keeps the compiler from making a
 * call of a loop. */
static bool is_same(const char *a, const char *b) {
    for (; *a && *a == *b; a++, b++)
        krex_compiler_fence();
    return *a == *b;
}

static const char *base_of(const char *path) {
    const char *base = path;
    for (const char *c = path; *c; c++) {
        krex_compiler_fence();
        if (*c == '/')
            base = c + 1;
    }
    return base;
}

static const void *at(ElfW(Addr) base, ElfW(Addr) pointer) {
    return (const void *)(pointer < base ? base + pointer : pointer);
}

static bool read_symbols(const struct link_map *library, struct symbols *s) {
    s->symbol = NULL;
    s->strings = NULL;
    s->hash = NULL;
    for (const ElfW(Dyn) *d = library->l_ld; d->d_tag != DT_NULL; d++) {
        const void *p = at(library->l_addr, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            s->symbol = p;
        else if (d->d_tag == DT_STRTAB)
            s->strings = p;
        else if (d->d_tag == DT_GNU_HASH)
            s->hash = p;
    }
    return s->symbol && s->strings && s->hash;
}

/* Header: buckets, first hashed symbol, bloom words, bloom shift; then bloom, buckets, chains. */
static ElfW(Addr) value_of(const struct symbols *s, const char *name) {
    uint32_t count = s->hash[0], first = s->hash[1], h = 5381;
    const uint32_t *bucket = s->hash + 4 + s->hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + count;
    for (const char *c = name; *c; c++)
        h = h * 33 + (unsigned char)*c;
    for (uint32_t i = bucket[h % count]; i >= first; i++) {
        const ElfW(Sym) *symbol = &s->symbol[i];
        if ((chain[i - first] | 1) == (h | 1) && symbol->st_shndx != SHN_UNDEF &&
            is_same(s->strings + symbol->st_name, name))
            return symbol->st_value;
        if (chain[i - first] & 1)
            break;
    }
    return 0;
}

/* glibc's own dlsym, out of its symbol table: every other way to it is a lookup, and so comes back to
 * us. Before glibc 2.34 it lies in libdl, which we need. Both are there from the start of the program
 * to its end, before whatever is loaded and unloaded meanwhile in the list of libraries. */
static dlsym_fn own_dlsym(void) {
    for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
        const char *base = base_of(m->l_name);
        struct symbols s;
        if (!is_same(base, "libc.so.6") && !is_same(base, "libdl.so.2"))
            continue;
        ElfW(Addr) value = read_symbols(m, &s) ? value_of(&s, "dlsym") : 0;
        if (value)
            return (dlsym_fn)(m->l_addr + value);
    }
    return NULL;
}

static void find_next(void) {
    dlsym_fn own = own_dlsym();
    if (!own)
        return;
    /* Seen from here, the next one is what the program would have got without us. */
    krex_store_release((uintptr_t *)&krex_next_dlvsym, (uintptr_t)own(RTLD_NEXT, "dlvsym"));
    krex_store_release((uintptr_t *)&krex_next_dlsym, (uintptr_t)own(RTLD_NEXT, "dlsym"));
}

void *krex_real_dlsym(void *handle, const char *name) {
    if (!krex_load_acquire((uintptr_t *)&krex_next_dlsym))
        find_next();
    return krex_next_dlsym ? krex_next_dlsym(handle, name) : NULL;
}

static const struct krex_vendor *vendor_of(const char *name) {
    KREX_EACH_VENDOR (v)
        if ((*v)->cares(name))
            return *v;
    return NULL;
}

/* Where a library is; right as long as none has gone, for only then may another one be there. */
struct place {
    uintptr_t begin, end;
    unsigned long long unloads;
    const char *path;
};

struct search {
    uintptr_t address;
    struct place place; /* at first, where the last one was found */
};

static bool is_at(const struct place *place, uintptr_t address) {
    return place->begin <= address && address < place->end;
}

static struct place place_of(const struct dl_phdr_info *library) {
    struct place p = {UINTPTR_MAX, 0, library->dlpi_subs, library->dlpi_name};
    for (size_t i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &library->dlpi_phdr[i];
        uintptr_t begin = library->dlpi_addr + h->p_vaddr, end = begin + h->p_memsz;
        if (h->p_type != PT_LOAD)
            continue;
        p.begin = begin < p.begin ? begin : p.begin;
        p.end = end > p.end ? end : p.end;
    }
    return p;
}

static int compare_place(struct dl_phdr_info *library, size_t size, void *search) {
    struct search *s = search;
    (void)size;
    if (s->place.unloads != library->dlpi_subs || !is_at(&s->place, s->address))
        s->place = place_of(library);
    return is_at(&s->place, s->address);
}

static const char *library_of_slowly(const void *address) {
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

/* The path of the library that an address is in. dladdr goes through all its symbols, so each thread
 * remembers where it found the last caller, and the last function: a program looks up many functions
 * of one library, from one place. A signal's handler that comes in between does without that. */
enum role { CALLER, FOUND, ROLES };

static const char *library_of(const void *address, enum role role) {
    static __thread struct place last[ROLES];
    static __thread bool busy;
    struct search search = {(uintptr_t)address, {0}};
    if (busy)
        return library_of_slowly(address);
    busy = true;
    krex_compiler_fence();
    search.place = last[role];
    bool known = dl_iterate_phdr(compare_place, &search);
    if (known)
        last[role] = search.place;
    krex_compiler_fence();
    busy = false;
    return known ? search.place.path
                 : library_of_slowly(address); /* it has a namespace of its own */
}

static bool is_ours(const void *address) {
    Dl_info own, other;
    return dladdr((const void *)krex_real_dlsym, &own) && dladdr(address, &other) &&
           own.dli_fbase == other.dli_fbase;
}

static void *real_look_up(void *handle, const char *name, const char *version) {
    return version ? krex_next_dlvsym(handle, name, version) : krex_next_dlsym(handle, name);
}

/* In the global scope our hook is found first, whether or not there is anything behind it. If there
 * is not, the lookup has to fail, with an error that says so; libc surely lacks the name. */
static void *fail(const char *name, const char *version) {
    void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
    return libc ? real_look_up(libc, name, version) : NULL;
}

static struct krex_answer look_up(const struct krex_vendor *vendor, void *handle, const char *name,
                                  const char *version) {
    const struct krex_answer pass = {NULL, 0};
    bool by_scope = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    void *behind = vendor->find(name);
    if (handle == RTLD_NEXT && behind)
        return (struct krex_answer){vendor->hand_out(name, behind), 1};
    if (by_scope && behind)
        return pass;
    void *real = real_look_up(by_scope ? RTLD_DEFAULT : handle, name, version);
    if (real && !behind && is_ours(real))
        return (struct krex_answer){fail(name, version), 1};
    if (by_scope)
        return pass;
    if (real && vendor->owns(library_of(real, FOUND)))
        real = vendor->hand_out(name, real);
    return (struct krex_answer){real, 1};
}

/* For dlsym (version NULL) and dlvsym, before anything else happens. */
__attribute__((visibility("hidden"))) struct krex_answer
krex_look_up(void *handle, const char *name, const char *version, const void *caller) {
    struct krex_answer pass = {NULL, 0};
    int saved = errno;
    if (!krex_load_acquire((uintptr_t *)&krex_next_dlsym))
        find_next();
    /* The vendor's library builds its tables by lookups: those must find the driver's functions. */
    const struct krex_vendor *vendor =
        name && krex_next_dlsym && krex_next_dlvsym ? vendor_of(name) : NULL;
    if (vendor && !vendor->owns(library_of(caller, CALLER)))
        pass = look_up(vendor, handle, name, version);
    errno = saved;
    return pass;
}
