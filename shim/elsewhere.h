/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices a process is on: the one of its board, and others that its regions have to know of.
 */
#ifndef KREX_ELSEWHERE_H
#define KREX_ELSEWHERE_H

/* For the device that a context is being made on, of KREX_DEVICE_KEY_SIZE: registers the process for
 * it, or, if it is registered for another, tells the controller, once a device. */
void krex_context_on(const char *device_key);

#endif
