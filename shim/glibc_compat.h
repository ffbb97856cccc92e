/* SPDX-License-Identifier: Apache-2.0
 *
 * Included before every source of libkrex.so. glibc 2.34 merged libdl and libpthread into libc and
 * gave their functions new versions; a preload that asks for those kills any program on an older
 * glibc. The old versions are the same functions.
 */
#ifndef KREX_GLIBC_COMPAT_H
#define KREX_GLIBC_COMPAT_H

#if defined(__x86_64__)
#define KREX_OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define KREX_OLDEST "GLIBC_2.17"
#else
#error "KREX runs on x86-64 and aarch64"
#endif

#define KREX_PIN(name) __asm__(".symver " #name "," #name "@" KREX_OLDEST)
KREX_PIN(dlopen);
KREX_PIN(dladdr);
KREX_PIN(dlerror);
KREX_PIN(pthread_once);
KREX_PIN(pthread_key_create);
KREX_PIN(pthread_setspecific);
KREX_PIN(pthread_create);
KREX_PIN(pthread_sigmask);
KREX_PIN(pthread_attr_setdetachstate);
#undef KREX_PIN

#endif
