/* SPDX-License-Identifier: Apache-2.0 */
#include "elsewhere.h"

#include <pthread.h>
#include <string.h>

#include "board.h"
#include "client.h"
#include "gate.h"

enum { MAX_NOTED = 16 };

static void note_other_device(const char *key) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t whose; /* a forked child tells anew */
    static char noted[MAX_NOTED][KREX_DEVICE_KEY_SIZE];
    static int count;
    int i = 0;
    pthread_mutex_lock(&lock);
    if (whose != krex_process.generation)
        count = 0;
    whose = krex_process.generation;
    while (i < count && strcmp(noted[i], key) != 0)
        i++;
    bool is_new = i == count && count < MAX_NOTED;
    if (is_new)
        memcpy(noted[count++], key, KREX_DEVICE_KEY_SIZE);
    pthread_mutex_unlock(&lock);
    if (is_new) /* without the lock, which a fork meanwhile would leave shut in the child */
        krex_client_send(KREX_WIRE_NOTE, 0, 0, "context_on_other_device", key);
}

void krex_context_on(const char *device_key) {
    if (!krex_client_ready(device_key) || !strcmp(krex_process.board->device_key, device_key))
        return;
    krex_client_flag(KREX_FLAG_OTHER_DEVICE);
    note_other_device(device_key);
}
