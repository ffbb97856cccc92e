/* SPDX-License-Identifier: Apache-2.0
 *
 * Diagnostics of the shim: stderr only, prefixed, one write a line, at most 16 lines a process.
 */
#ifndef KREX_LOG_H
#define KREX_LOG_H

__attribute__((format(printf, 1, 2))) void krex_warn(const char *format, ...);

#endif
