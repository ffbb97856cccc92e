/* SPDX-License-Identifier: Apache-2.0 */
#include "refusal.h"

#include <errno.h>
#include <stdio.h>

#include "../client.h"
#include "../gate.h"

void krex_note_refusal(uint64_t bytes) {
    char text[24];
    int saved = errno;
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    if (krex_process.generation)
        krex_client_send(KREX_WIRE_NOTE, 0, 0, "allocation_refused", text);
    errno = saved;
}
