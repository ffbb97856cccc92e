/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to the process of the devices; see sim/wire.h.
 */
#ifndef KREX_SIM_CHANNEL_H
#define KREX_SIM_CHANNEL_H

#include "driver.h"

enum drv_result drv_channel_connect(void);
struct krex_sim_channel *drv_channel(void);
int drv_connection(void);    /* hangs up when the process of the devices is gone */
void drv_channel_ring(void); /* after a command is published: wakes the device if it sleeps */
void drv_channel_leave(
    void); /* in a forked child: the parent's connection must end with the parent */

#endif
