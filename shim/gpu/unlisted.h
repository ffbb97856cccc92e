/* SPDX-License-Identifier: Apache-2.0
 *
 * Submissions that there is no hook for: functions of a driver newer than api.def, or of a second
 * driver. Who was given one has regions that are not certain any more.
 */
#ifndef KREX_GPU_UNLISTED_H
#define KREX_GPU_UNLISTED_H

#include <stdbool.h>

/* Nearly right for the listed functions: most of what it misses is about graphics. */
bool krex_sounds_like_submission(const char *name);
/* Such a function was given out. Told at once, or by krex_report_unlisted, which is called when there
 * is somebody to tell: a runtime asks for all functions before there is a context. */
void krex_note_unlisted(const char *name);
void krex_report_unlisted(void);

#endif
