/* SPDX-License-Identifier: Apache-2.0 */
#include "key.h"

#include <stdio.h>
#include <stdlib.h>

bool krex_address_key(const char *address, char key[KREX_DEVICE_KEY_SIZE]) {
    unsigned long part[4]; /* with more or fewer zeros */
    char *rest;
    for (int i = 0; i < 4; i++, address = rest) {
        part[i] = strtoul(address, &rest, 16);
        if (rest == address)
            return false;
        rest += *rest == ':' || *rest == '.';
    }
    snprintf(key, KREX_DEVICE_KEY_SIZE, "pci:%04lx:%02lx:%02lx.%lx", part[0], part[1], part[2],
             part[3]);
    return true;
}

void krex_simulated_key(int number, char key[KREX_DEVICE_KEY_SIZE]) {
    snprintf(key, KREX_DEVICE_KEY_SIZE, "sim:%d", number);
}
