/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices the program may see: all, or those that CUDA_VISIBLE_DEVICES names, in that order. As the
 * real driver reads it: what stands behind a word that names no device does not count, and a device that
 * is named twice makes it nonsense.
 */
#include "visible.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

static bool begins_uuid(const char *word, const struct krex_sim_device *d) {
    char name[WORD];
    const unsigned char *u = (const unsigned char *)d->uuid;
    snprintf(name, sizeof name,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    return strlen(word) > strlen("GPU-") && strncasecmp(word, name, strlen(word)) == 0;
}

/* The device of that number, or the only one whose UUID begins so; `devices`: none. */
static uint32_t find(const struct krex_sim_channel *channel, const char *word) {
    uint32_t none = channel->devices, found = none;
    char *end;
    unsigned long number = strtoul(word, &end, 10);
    if (!*end && *word >= '0' && *word <= '9')
        return number < none ? (uint32_t)number : none;
    for (uint32_t i = 0; i < none; i++) {
        if (!begins_uuid(word, &channel->device[i]))
            continue;
        if (found != none)
            return none;
        found = i;
    }
    return found;
}

static bool has(const uint32_t *visible, unsigned count, uint32_t device) {
    for (unsigned i = 0; i < count; i++)
        if (visible[i] == device)
            return true;
    return false;
}

static unsigned read_list(const struct krex_sim_channel *channel, char *list, uint32_t *visible) {
    unsigned count = 0;
    char word[WORD], *item;
    for (item = strsep(&list, ","); item; item = strsep(&list, ",")) {
        if (sscanf(item, " %63s", word) != 1)
            break;
        uint32_t device = find(channel, word);
        if (device == channel->devices)
            break;
        if (has(visible, count, device))
            return 0;
        visible[count++] = device;
    }
    return count;
}

unsigned drv_visible(const struct krex_sim_channel *channel, uint32_t visible[KREX_SIM_DEVICES]) {
    const char *given = getenv("CUDA_VISIBLE_DEVICES");
    char *list = given ? strdup(given) : NULL;
    unsigned count = 0;
    if (list)
        count = read_list(channel, list, visible);
    for (; !given && count < channel->devices; count++)
        visible[count] = count;
    free(list);
    return count;
}
