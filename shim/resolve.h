/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that look functions up instead of linking to them get the hooks too: we export dlsym and
 * dlvsym. Our own lookups go past them.
 */
#ifndef KREX_RESOLVE_H
#define KREX_RESOLVE_H

/* The real dlsym: the next one after ours, which is glibc's unless another preload has one too. */
void *krex_real_dlsym(void *handle, const char *name);

#endif
