/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket that clients find the devices by.
 */
#ifndef KREX_SIM_LISTEN_H
#define KREX_SIM_LISTEN_H

/* A listening socket, for this user only; -1: it has said why not. Never takes another one's place. */
int listen_at(const char *path);

/* Takes the name away, if it is still that of this socket. */
void listen_end(int fd, const char *path);

#endif
