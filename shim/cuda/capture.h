/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of the drain share.
 */
#ifndef KREX_CUDA_CAPTURE_H
#define KREX_CUDA_CAPTURE_H

#include "drain.h"

/* drain.c: returns when the drainer is not in the driver, or has been for too long (false). As long as
 * the caller is in the counter of heavy calls, it does not go there again. */
bool krex_cu_await_drainer(void);

/* capture.c: the context is destroyed, and its streams with it. */
void krex_cu_captures_lost(CUcontext context);

#endif
