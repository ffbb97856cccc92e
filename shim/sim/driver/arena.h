/* SPDX-License-Identifier: Apache-2.0
 *
 * Where device memory lies: one range of addresses that the host can't touch, and elsewhere the same
 * bytes for effects. Pages are there once something is written to them. Locked by memory.c.
 */
#ifndef KREX_SIM_ARENA_H
#define KREX_SIM_ARENA_H

#include <stdbool.h>
#include <stdint.h>

bool drv_arena_map(uint64_t bytes); /* or less, if the address space has no room for as much */
uint64_t drv_arena_take(uint64_t bytes, uint64_t align); /* the address; 0: no room */
void drv_arena_give(uint64_t address, uint64_t bytes);
bool drv_arena_has(uint64_t address);           /* any thread, no lock */
void *drv_arena_at(uint64_t address);           /* any thread, no lock */
void drv_arena_empty(void *at, uint64_t bytes); /* reads as zeros then, and takes no room */

#endif
