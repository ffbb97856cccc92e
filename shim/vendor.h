/* SPDX-License-Identifier: Apache-2.0
 *
 * What a vendor's folder gives the core: one struct krex_vendor, listed by KREX_VENDOR. Nothing else of
 * it is named outside its folder, so to add a vendor is to add a folder.
 */
#ifndef KREX_VENDOR_H
#define KREX_VENDOR_H

#include <stdbool.h>
#include <stdint.h>

struct krex_vendor {
    const char *name;

    /* Draining: called from the drainer only. */

    /* Starts a drain of all that this process has submitted to the vendor's devices. `asks_only`: the
     * process has the device, and is asked in the middle whether it stands idle (KREX_ASK_IDLE). So
     * nothing is waited for inside a driver, and what waits on this process's own host is not done. */
    void (*drain_begin)(bool asks_only);
    /* True: all of it is complete (but for what waits on this process's own host). */
    bool (*drain_done)(void);
    /* Forgets the drain begun, complete or not. */
    void (*drain_end)(void);

    /* Lookups by name: called from any thread, at any time, before main too. */

    /* A name that has a hook, or that could leave work on a device without one. Cheap for all others;
     * no two vendors care for the same name. */
    bool (*cares)(const char *name);
    /* The path is that of a library from which programs get the vendor's functions. */
    bool (*owns)(const char *path);
    /* The vendor's own function; NULL: no library that has it is loaded. */
    void *(*find)(const char *name);
    /* What to hand out in place of `real`, which the vendor's library has under that name. */
    void *(*hand_out)(const char *name, void *real);

    /* Submits `times` times to a stand-in for the driver that does nothing; through the hook, or not. */
    void (*stand_in)(bool hooked, uint64_t times);
};

/* The linker gathers the vendors, in the order of their folders, between these two. */
extern const struct krex_vendor *const __start_krex_vendors[] __attribute__((visibility("hidden")));
extern const struct krex_vendor *const __stop_krex_vendors[] __attribute__((visibility("hidden")));

#define KREX_VENDOR(vendor)                                                                        \
    __attribute__((                                                                                \
        used, section("krex_vendors"))) static const struct krex_vendor *const listed_vendor =     \
        &(vendor)

#define KREX_EACH_VENDOR(v)                                                                        \
    for (const struct krex_vendor *const *v = __start_krex_vendors; v < __stop_krex_vendors; v++)

#endif
