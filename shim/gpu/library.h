/* SPDX-License-Identifier: Apache-2.0
 *
 * The vendor's library among those that a program has loaded. Never by RTLD_NEXT: another library may
 * export the same names, and a driver loaded RTLD_LOCAL is not in anybody's scope.
 *
 * A pending dlerror() of the program is lost only where a hook that was linked to is called before
 * anything was looked up; elsewhere the program's own lookup has just reset it.
 */
#ifndef KREX_GPU_LIBRARY_H
#define KREX_GPU_LIBRARY_H

#include <stdbool.h>

/* The file that a path leads to has a name that begins so. */
bool krex_library_is(const char *path, const char *prefix);
/* A handle of the one that is loaded, by one of the sonames (up to a NULL), or by the file's name; to
 * be kept, because a library that went away would leave us dangling pointers. NULL: none is. */
void *krex_library_loaded(const char *const *sonames, const char *prefix);
/* Loads it, by the first of the sonames that there is. */
void *krex_library_load(const char *const *sonames);

#endif
