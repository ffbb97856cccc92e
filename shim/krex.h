/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks the timed phase of a C or C++ program. Header-only; links to nothing; a no-op when the
 * program does not run under KREX.
 *
 *     krex_begin("sgemm");
 *     ... timed loop ...
 *     krex_end();
 *
 * Re-entrant per thread: only the outermost pair counts.
 */
#ifndef KREX_H
#define KREX_H

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) void krex_region_enter(const char *name);
__attribute__((weak)) void krex_region_end(void);

static inline void krex_begin(const char *name) {
    if (krex_region_enter)
        krex_region_enter(name);
}

static inline void krex_end(void) {
    if (krex_region_end)
        krex_region_end();
}

#ifdef __cplusplus
}
#endif

#endif
