/* SPDX-License-Identifier: Apache-2.0
 *
 * api.def by name. It is in the order of the bases, and a symbol is its base, which has no underscore,
 * and what tells its forms apart.
 */
#include <string.h>

#include "api.h"

#define LEGACY 0
#define PTDS 1
#define PTSZ 1

const struct krex_cu_line krex_cu_lines[KREX_CU_LINES] = {
#define KREX_CU_API(kind, ret, symbol, base, version, flag, stream, params, args)                  \
    {#symbol, version, sizeof #base - 1, flag},
#include "api.def"
#undef KREX_CU_API
};

static int compare(const char *base, size_t length, const struct krex_cu_line *line) {
    size_t shorter = length < line->base_length ? length : line->base_length;
    int difference = strncmp(base, line->symbol, shorter);
    return difference ? difference : (int)length - (int)line->base_length;
}

int krex_cu_lines_of(const char *name, int *first) {
    size_t length = strcspn(name, "_");
    int low = 0, high = KREX_CU_LINES, n = 0;
    while (low < high) {
        int middle = (low + high) / 2;
        if (compare(name, length, &krex_cu_lines[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < KREX_CU_LINES && !compare(name, length, &krex_cu_lines[low + n]))
        n++;
    *first = low;
    return n;
}

int krex_cu_line_of(const char *symbol) {
    int first, n = krex_cu_lines_of(symbol, &first);
    for (int line = first; line < first + n; line++)
        if (!strcmp(krex_cu_lines[line].symbol, symbol))
            return line;
    return -1;
}
