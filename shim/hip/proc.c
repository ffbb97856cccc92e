/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers for whoever looks a function up, by dlsym or by the runtime's own resolvers: the runtime's
 * answer, with a hook in place of the function. A name does not say which of a function's forms is
 * meant, but its address does: the runtime gives out what it exports.
 */
#include <string.h>

#include "../gpu/unlisted.h"
#include "api.h"

#define HOOK __attribute__((visibility("default")))

static bool begins(const char *name, const char *with) {
    return !strncmp(name, with, strlen(with));
}

/* What C++ mangles is cared for if it is listed. */
bool krex_hip_cares(const char *name) {
    if (!begins(name, "hip") && !begins(name, "_Z") && !begins(name, "__hip"))
        return false;
    int line = krex_hip_line_of(name);
    if (line >= 0)
        return krex_hip_hooks[line] != NULL;
    return name[0] == 'h' && name[3] >= 'A' && name[3] <= 'Z' && krex_sounds_like_submission(name);
}

/* Our hook calls the one runtime that we found: not for functions of another. */
static void *hook_of(int line, void *real) {
    if (line < 0 || krex_load_relaxed(&krex_hip_route[line]) != real)
        return NULL;
    return krex_hip_hooks[line] ? krex_hip_hooks[line] : real;
}

void *krex_hip_hand_out(const char *name, void *real) {
    void *ours = real ? hook_of(krex_hip_line_of(name), real) : NULL;
    if (real && !ours)
        krex_note_unlisted(name);
    return ours ? ours : real;
}

/* Mostly the form with the name that was asked for. */
static void *by_address(const char *name, void *real) {
    void *ours = hook_of(krex_hip_line_of(name), real);
    for (int line = 0; line < KREX_HIP_LINES && !ours; line++)
        ours = hook_of(line, real);
    return ours;
}

/* The runtime's answer first; nothing of it is touched but the address, and that only if there is one. */
static hipError_t replace(const char *name, void **function, hipError_t result) {
    if (result != hipSuccess || !name || !function || !*function)
        return result;
    void *ours = by_address(name, *function);
    if (ours)
        *function = ours;
    else if (krex_hip_cares(name))
        krex_note_unlisted(name);
    return result;
}

#define KREX_HIP_RESOLVER(symbol_, params, args, name, function)                                   \
    HOOK hipError_t symbol_ params;                                                                \
    hipError_t symbol_ params { return replace(name, function, KREX_HIP_REAL(symbol_) args); }

KREX_HIP_RESOLVER(hipGetProcAddress,
                  (const char *symbol, void **pfn, int version, uint64_t flags,
                   hipDriverProcAddressQueryResult *status),
                  (symbol, pfn, version, flags, status), symbol, pfn)
KREX_HIP_RESOLVER(hipGetProcAddress_spt,
                  (const char *symbol, void **pfn, int version, uint64_t flags,
                   hipDriverProcAddressQueryResult *status),
                  (symbol, pfn, version, flags, status), symbol, pfn)
KREX_HIP_RESOLVER(hipGetDriverEntryPoint,
                  (const char *symbol, void **function, unsigned long long flags,
                   hipDriverEntryPointQueryResult *status),
                  (symbol, function, flags, status), symbol, function)
KREX_HIP_RESOLVER(hipGetDriverEntryPoint_spt,
                  (const char *symbol, void **function, unsigned long long flags,
                   hipDriverEntryPointQueryResult *status),
                  (symbol, function, flags, status), symbol, function)
