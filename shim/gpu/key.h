/* SPDX-License-Identifier: Apache-2.0
 *
 * The stable keys of devices, which all vendors' folders make alike: what is on one card shares a gate.
 */
#ifndef KREX_GPU_KEY_H
#define KREX_GPU_KEY_H

#include <stdbool.h>

#include "../board.h"

/* domain:bus:device.function, as a driver writes it. False: it is something else. */
bool krex_address_key(const char *address, char key[KREX_DEVICE_KEY_SIZE]);
/* A simulated device's, by its number in its process. */
void krex_simulated_key(int number, char key[KREX_DEVICE_KEY_SIZE]);

#endif
