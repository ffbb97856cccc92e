/* SPDX-License-Identifier: Apache-2.0
 *
 * This process's presence on a board: it says hello to the controller, keeps the drainer, forks.
 */
#ifndef KREX_CLIENT_H
#define KREX_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* Registers this process, once; later calls, and calls without a controller, return at once. `device`
 * is the key of the context being made, or "" when none is known. A first failure is said on stderr,
 * and the process runs on unprotected. True: registered. */
bool krex_client_ready(const char *device);
/* Sends a message; false: there is no controller (any more). */
bool krex_client_send(enum krex_wire_type type, uint32_t slot, uint64_t value, const char *text,
                      const char *text2);
/* Sets a bit of the block's flags (enum krex_block_flag). True: it was not set before. */
bool krex_client_flag(uint32_t flag);

#endif
