/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the driver's functions are found.
 */
#include "../gpu/library.h"
#include "../gpu/routes.h"
#include "api.h"
#include "drain.h"

static const char *const sonames[] = {"libcuda.so.1", NULL};

void *krex_cu_route[KREX_CU_LINES];

static const char *symbol_of(int line) { return krex_cu_lines[line].symbol; }

static struct krex_routes driver = {
    .sonames = sonames,
    .prefix = "libcuda.so",
    .lines = KREX_CU_LINES,
    .symbol = symbol_of,
    .line_of = krex_cu_line_of,
    .route = krex_cu_route,
};

bool krex_cu_owns(const char *path) { return krex_library_is(path, driver.prefix); }
void *krex_cu_find_any(const char *symbol) { return krex_routes_find(&driver, symbol); }
void *krex_cu_find_slow(int line) { return krex_routes_find_slow(&driver, line); }
int krex_cu_simulated(CUdevice device) { return krex_routes_simulated(&driver, device); }
