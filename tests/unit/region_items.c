/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shim reads in KREX_REGION: prints the words of its grammar that it finds, and those of its
 * arguments that are ranges which are asked for. Of region.c and ranges.c nothing else is called, and
 * what they need besides is not linked.
 */
#include <stdio.h>

#include "ranges.h"
#include "region.h"

int main(int argc, char **argv) {
    static const char *const words[] = {"events", "whole", "none"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (krex_region_has(words[i]))
            puts(words[i]);
    if (krex_region_auto())
        puts("auto");
    krex_ranges_asked();
    for (int i = 1; i < argc; i++)
        if (krex_range_of(argv[i]))
            printf("nvtx:%s\n", argv[i]);
    return 0;
}
