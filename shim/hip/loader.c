/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the runtime's functions are found.
 */
#include "../gpu/library.h"
#include "../gpu/routes.h"
#include "api.h"

/* Newest first, for a program that is linked to the hooks and to no runtime. Wheels of frameworks bring
 * one without a number. */
static const char *const sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      "libamdhip64.so.4", "libamdhip64.so",   NULL};

void *krex_hip_route[KREX_HIP_LINES];

static struct krex_routes runtime = {
    .sonames = sonames,
    .prefix = "libamdhip64",
    .lines = KREX_HIP_LINES,
    .symbol = krex_hip_symbol,
    .line_of = krex_hip_line_of,
    .route = krex_hip_route,
};

bool krex_hip_owns(const char *path) { return krex_library_is(path, runtime.prefix); }
void *krex_hip_find_any(const char *symbol) { return krex_routes_find(&runtime, symbol); }
void *krex_hip_find_slow(int line) { return krex_routes_find_slow(&runtime, line); }
int krex_hip_simulated(int device) { return krex_routes_simulated(&runtime, device); }
