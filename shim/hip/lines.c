/* SPDX-License-Identifier: Apache-2.0
 *
 * api.def by name: it is in the order of the symbols. They lie one after the other, and by number, so
 * that nothing has to be relocated at load.
 */
#include <string.h>

#include "api.h"

static const struct symbols {
#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args) char symbol##_[sizeof #symbol];
#include "api.def"
#undef KREX_HIP_API
} symbols = {
#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args) #symbol,
#include "api.def"
#undef KREX_HIP_API
};

static const uint16_t places[KREX_HIP_LINES] = {
#define KREX_HIP_API(kind, ret, symbol, flag, stream, params, args)                                \
    offsetof(struct symbols, symbol##_),
#include "api.def"
#undef KREX_HIP_API
};

const char *krex_hip_symbol(int line) { return (const char *)&symbols + places[line]; }

int krex_hip_line_of(const char *symbol) {
    int low = 0, high = KREX_HIP_LINES;
    while (low < high) {
        int middle = (low + high) / 2;
        int order = strcmp(symbol, krex_hip_symbol(middle));
        if (!order)
            return middle;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
