/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks the timed phase of a C or C++ program. Header-only; links to nothing; a no-op when the
 * program does not run under KREX, and in a statically linked one.
 *
 *     krex_begin("sgemm");
 *     ... timed loop ...
 *     krex_end();
 *
 * krex_begin waits until the device is this process's alone. Re-entrant per thread: only the
 * outermost pair counts.
 */
#ifndef KREX_H
#define KREX_H

/* The address of a function that the preloaded library has, or NULL. Weak symbols in C would not do:
 * in a program built without -fPIE the linker settles them as NULL for good. It leaves them to the
 * loader only where each use goes through the global offset table, as these do. */
#if defined __x86_64__ && defined __LP64__
#define KREX_FIND(name, at)                                                                        \
    __asm__(".weak " name "\n\tmovq " name "@GOTPCREL(%%rip), %0" : "=r"(at))
#elif defined __aarch64__ && defined __LP64__
#define KREX_FIND(name, at)                                                                        \
    __asm__(".weak " name "\n\tadrp %0, :got:" name "\n\tldr %0, [%0, :got_lo12:" name "]"         \
            : "=r"(at))
#else /* there is no KREX for this machine */
#define KREX_FIND(name, at) ((at) = 0)
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline void krex_begin(const char *name) {
    void (*enter)(const char *);
    KREX_FIND("krex_region_enter", enter);
    if (enter)
        enter(name);
}

static inline void krex_end(void) {
    void (*end)(void);
    KREX_FIND("krex_region_end", end);
    if (end)
        end();
}

#ifdef __cplusplus
}
#endif

#endif
