/* SPDX-License-Identifier: Apache-2.0
 *
 * The shim's messages to the controller, one struct a packet of a SOCK_SEQPACKET socket; the only
 * definition of them. First comes HELLO, answered by WELCOME (with the board as SCM_RIGHTS) or
 * REFUSED; then all others, which are not answered here but on the board (krex_block.marks, ticket).
 * The controller takes the pid from the socket's credentials, never from a message. A controller of
 * another version answers REFUSED, under its own magic.
 */
#ifndef KREX_WIRE_H
#define KREX_WIRE_H

#include <stdint.h>

#define KREX_WIRE_MAGIC 0x0258524bu /* "KRX" and the protocol version */
#define KREX_WIRE_NAME 0x0058524bu  /* what all versions have in common */

enum krex_wire_type {
    KREX_WIRE_HELLO = 1,   /* text: device key or "", text2: KREX_COMMAND. Attached, if there is a
                              KREX_REPORT: that file, opened by the client, for its records */
    KREX_WIRE_WELCOME = 2, /* slot: block; the board's descriptor is attached */
    KREX_WIRE_REFUSED = 3, /* text: why */
    KREX_WIRE_ENTER = 4,  /* slot: mark; text: name; value: tid; text2: what marks it, "": itself */
    KREX_WIRE_LEAVE = 5,  /* slot: mark; value: the process's submissions until now */
    KREX_WIRE_NOTE = 6,   /* text: what was noticed, text2: detail */
    KREX_WIRE_TICKET = 7, /* value: its number, no two the same; text: the device's key */
    KREX_WIRE_TICKET_BACK = 8, /* value: of a ticket that was given, or is no longer waited for */
};

struct krex_wire {
    uint32_t magic;
    uint32_t type;
    uint32_t slot;
    uint32_t pad;
    uint64_t value;
    char text[128];
    char text2[128];
};

#endif
