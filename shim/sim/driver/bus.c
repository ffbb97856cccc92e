/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the devices seem to be: each on a bus of its own.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "driver.h"

enum { FIRST = 0x10, ID = 32 };

unsigned drv_bus(const struct drv_device *device) { return FIRST + device->is->number; }

/* With or without the domain and the function. */
static bool is_same(const char *asked, const char *id) {
    const char *short_id = id + strlen("0000:");
    size_t length = strlen(asked);
    bool whole = strlen(id) == length || strlen(id) - strlen(".0") == length;
    bool part = strlen(short_id) == length || strlen(short_id) - strlen(".0") == length;
    return (whole && !strncasecmp(asked, id, length)) ||
           (part && !strncasecmp(asked, short_id, length));
}

struct drv_device *drv_device_on(const char *bus_id) {
    for (unsigned i = 0; i < drv_devices(); i++) {
        char id[ID];
        snprintf(id, sizeof id, "0000:%02x:00.0", drv_bus(drv_device(i)));
        if (is_same(bus_id, id))
            return drv_device(i);
    }
    return NULL;
}
