/* SPDX-License-Identifier: Apache-2.0
 *
 * KREX_REGION=call:NAME is the interpreters' to do (krex/marker): they find what does it by PYTHONPATH,
 * which a program may leave out where it starts a child. That one says so, and marks nothing.
 */
#ifndef KREX_UNMARKED_H
#define KREX_UNMARKED_H

/* Called when the process registers; says it at the first time only. */
void krex_say_if_unmarked(void);

#endif
