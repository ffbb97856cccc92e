/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has contexts on a device, in the order of the pids. A process may be several clients: one that
 * has loaded the driver twice is. A dead one is among them until its contexts are torn down.
 */
#include "inside.h"

static uint32_t running_of(const struct context *x) {
    uint32_t running = 0;
    for (const struct link *l = x->all.next; l != &x->all; l = l->next) {
        const struct command *c = LISTED(l, struct command, in_all);
        running += is_on_device(c) && is_work(&c->said);
    }
    return running;
}

/* False: no context. */
static bool lowest_pid(const struct device *d, int from, int *pid) {
    bool found = false;
    for (const struct link *l = d->contexts.next; l != &d->contexts; l = l->next) {
        int its = LISTED(l, struct context, of_device)->client->pid;
        if (its >= from && (!found || its < *pid))
            *pid = its;
        found = found || its >= from;
    }
    return found;
}

bool engine_resident(const struct engine *e, uint32_t device, int from, struct resident *r) {
    const struct device *d = device < e->device_count ? &e->devices[device] : NULL;
    *r = (struct resident){0};
    if (!d || !lowest_pid(d, from, &r->pid))
        return false;
    for (const struct link *l = d->contexts.next; l != &d->contexts; l = l->next) {
        const struct context *x = LISTED(l, struct context, of_device);
        r->bytes += x->client->pid == r->pid ? x->memory : 0;
        r->running += x->client->pid == r->pid ? running_of(x) : 0;
    }
    for (const struct link *l = e->clients.next; l != &e->clients; l = l->next) {
        const struct client *c = LISTED(l, struct client, listed);
        r->submitted += c->pid == r->pid ? c->worked[device] : 0;
    }
    return true;
}
