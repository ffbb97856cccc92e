/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREX_GPU_REFUSAL_H
#define KREX_GPU_REFUSAL_H

#include <stdint.h>

/* A program that is refused memory while others have some is not wrong: whoever judges it is told. */
__attribute__((cold)) void krex_note_refusal(uint64_t bytes);

#endif
