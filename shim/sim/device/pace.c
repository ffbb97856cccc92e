/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

__extension__ typedef unsigned __int128 wide; /* a time by a factor by a unit */

void pace_settle(struct pace *p, uint64_t now) {
    if (p->slow_ppm && now > p->since)
        p->work += (uint64_t)((wide)(now - p->since) * WORK * PPM / p->slow_ppm);
    p->since = now;
}

uint64_t pace_when(const struct pace *p, uint64_t work) {
    if (!p->slow_ppm)
        return NEVER;
    wide left = work > p->work ? work - p->work : 0;
    wide unit = (wide)WORK * PPM;
    wide when = p->since + (left * p->slow_ppm + unit - 1) / unit;
    return when < NEVER ? (uint64_t)when : NEVER - 1;
}
