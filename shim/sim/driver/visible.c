/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices the program may see: all, or those that the vendor's variables name, in that order. As
 * real drivers read them: what stands behind a word that names no device does not count, and a device
 * that is named twice makes it nonsense. A number counts the devices that were left before.
 */
#include "visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { WORD = 64 };

struct list {
    uint32_t device[KREX_SIM_DEVICES];
    unsigned count;
};

static bool begins_uuid(const char *word, const struct krex_sim_device *d) {
    char name[WORD];
    drv_vendor.name_uuid(d->uuid, name, sizeof name);
    return strlen(word) > strlen("GPU-") && strncasecmp(word, name, strlen(word)) == 0;
}

/* Where in the list is the device of that number, or the only one whose UUID begins so; its count: nowhere. */
static unsigned find(const struct krex_sim_channel *channel, const struct list *all,
                     const char *word) {
    unsigned none = all->count, found = none;
    char *end;
    unsigned long number = strtoul(word, &end, 10);
    if (!*end && *word >= '0' && *word <= '9')
        return number < none ? (unsigned)number : none;
    for (unsigned i = 0; i < none; i++) {
        if (!begins_uuid(word, &channel->device[all->device[i]]))
            continue;
        if (found != none)
            return none;
        found = i;
    }
    return found;
}

static bool has(const struct list *list, uint32_t device) {
    for (unsigned i = 0; i < list->count; i++)
        if (list->device[i] == device)
            return true;
    return false;
}

static struct list read_words(const struct krex_sim_channel *channel, const struct list *all,
                              char *words) {
    struct list chosen = {.count = 0};
    char word[WORD], *item;
    for (item = strsep(&words, ","); item; item = strsep(&words, ",")) {
        if (sscanf(item, " %63s", word) != 1)
            break;
        unsigned at = find(channel, all, word);
        if (at == all->count)
            break;
        if (has(&chosen, all->device[at]))
            return (struct list){.count = 0};
        chosen.device[chosen.count++] = all->device[at];
    }
    return chosen;
}

static void narrow(const struct krex_sim_channel *channel, struct list *list, const char *given) {
    char *words = given ? strdup(given) : NULL;
    if (words)
        *list = read_words(channel, list, words);
    free(words);
}

static const char *setting(const char *name) { return name ? getenv(name) : NULL; }

unsigned drv_visible(const struct krex_sim_channel *channel, uint32_t visible[KREX_SIM_DEVICES]) {
    struct list list = {.count = 0};
    for (; list.count < channel->devices; list.count++)
        list.device[list.count] = list.count;
    narrow(channel, &list, setting(drv_vendor.visible_first));
    const char *given = setting(drv_vendor.visible[0]);
    narrow(channel, &list, given ? given : setting(drv_vendor.visible[1]));
    memcpy(visible, list.device, list.count * sizeof *visible);
    return list.count;
}
