/* SPDX-License-Identifier: Apache-2.0 */
#include "unlisted.h"

#include <string.h>

#include "../client.h"
#include "../gate.h"

static char unlisted[64]; /* the first that was given out */
static uint32_t unlisted_state;
enum { NONE, BEING_WRITTEN, WRITTEN };

void krex_report_unlisted(void) {
    if (krex_load_acquire(&unlisted_state) == WRITTEN && krex_client_flag(KREX_FLAG_UNLISTED))
        krex_client_send(KREX_WIRE_NOTE, 0, 0, "unlisted_submission", unlisted);
}

void krex_note_unlisted(const char *name) {
    if (krex_cas_u32(&unlisted_state, NONE, BEING_WRITTEN)) {
        strncpy(unlisted, name, sizeof unlisted - 1);
        krex_store_release(&unlisted_state, WRITTEN);
    }
    krex_report_unlisted();
}

static bool has_one_of(const char *name, const char *const *words) {
    while (*words && !strstr(name, *words))
        words++;
    return *words;
}

bool krex_sounds_like_submission(const char *name) {
    static const char *const does[] = {"Launch", "Memcpy",  "Memset", "Copy",         "Async",
                                       "Record", "Wait",    "Value",  "MemOp",        "Prefetch",
                                       "Upload", "Discard", "Advise", "BeginCapture", NULL};
    static const char *const only_speaks_of[] = {"Get", "Node", "egister", NULL};
    return has_one_of(name, does) && !has_one_of(name, only_speaks_of);
}
