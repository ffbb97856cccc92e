/* SPDX-License-Identifier: Apache-2.0
 *
 * That there is a runtime and no GPU: programs say it in many ways, or not at all.
 */
#include <stdlib.h>

#include "../log.h"
#include "api.h"
#include "device.h"

void krex_hip_tell_if_absent(hipError_t result) {
    static uint32_t told;
    if (result != hipErrorNoDevice || !getenv("KREX_COMMAND") || !krex_cas_u32(&told, 0, 1))
        return;
    krex_warn("HIP finds no AMD GPU that this program may use: `krex doctor` says more, and "
              "`krex run --sim` has a simulated one");
}
