/* SPDX-License-Identifier: Apache-2.0
 *
 * What a simulated driver and the process of the simulated devices say to each other; the only
 * definition of it.
 *
 * Calls that a driver has to wait for go as packets over a SOCK_SEQPACKET socket at KREX_SIM_SOCKET:
 * each is answered by one packet, in order. Work goes through the channel, memory that both have
 * mapped: a ring of commands, and a ring of results.
 *
 *   submitting (the client, under a lock of its own)      the device process, one thread
 *   ------------------------------------------------      ------------------------------
 *   until under way < KREX_SIM_RING: wait                 for each channel: while taken != submitted:
 *   until submitted - taken < KREX_SIM_RING: wait             c = command[taken % RING]; ++taken
 *   command[submitted % RING] = c, c.arrival_ns = now     advance the model to now
 *   ++submitted                              (release)    result[given % RESULTS] = r; ++given (release)
 *   full fence                                            futex-wake(given)
 *   if asleep: write the doorbell                         asleep = 1; full fence; look once more
 *                                                         sleep until the doorbell, a packet, or the
 *                                                             next end of a command; asleep = 0
 *
 * Under way is what has not been seen to complete: the launch queue. A HOST_DONE is never under way, so
 * the first line is not for it, and a full queue of what waits for it can't hold it up.
 *
 * The device takes the stamped time for the arrival, unless its model is past that already: so it does
 * not matter to what is measured when either process gets a CPU. All times are CLOCK_MONOTONIC in ns.
 *
 * Crash rules. A client that dies anywhere: its socket ends, its contexts are torn down, which takes
 * the time that the model says; what is in its ring and not published is lost with it. A device process
 * that dies: every call of its clients fails as that of a lost device.
 */
#ifndef KREX_SIM_WIRE_H
#define KREX_SIM_WIRE_H

#include <stdint.h>

#define KREX_SIM_MAGIC 0x014d4953u /* "SIM" and the version of all that stands here */

enum {
    KREX_SIM_DEVICES = 16,
    KREX_SIM_RING = 1024,    /* commands under way in one process: the depth of its launch queue */
    KREX_SIM_RESULTS = 2048, /* each command has at most two results */
    KREX_SIM_AFTER = 4,
    KREX_SIM_TEXT = 1024,
};

/* Packets. `status` of an answer is an enum krex_sim_status; what else is in it stands here. */
enum krex_sim_op {
    KREX_SIM_HELLO = 1,   /* answer: with the channel's descriptor and the doorbell's attached */
    KREX_SIM_GONE,        /* value: pid. Answered once nothing of that process is on any device */
    KREX_SIM_CONTEXT,     /* device. Answer: context, when the machine has made it: one at a time */
    KREX_SIM_CONTEXT_END, /* context. Answered when its work has ended */
    KREX_SIM_ALLOCATE,    /* context, value: bytes */
    KREX_SIM_FREE,        /* context, value: bytes */
    KREX_SIM_MEMORY,      /* device. Answer: value: free bytes, value2: all bytes */
    KREX_SIM_KERNEL,      /* text: name. Answer: value: what krex_sim_command.kernel calls it */
    KREX_SIM_LOAD,        /* context, value: bytes of code. Answered when they are loaded */
    /* device, value: a pid. Answer: who has contexts there, by rising pids from that one on. text: of
     * each `pid:bytes:submitted:running `, bytes being what its contexts have of the memory, and the
     * others its work there: what it ever submitted, and what is on the device now. A pid is 0 if it
     * can't be seen. value: the pid to go on with; 0: that is all */
    KREX_SIM_RESIDENTS,
};

enum krex_sim_status {
    KREX_SIM_OK = 0,
    KREX_SIM_OUT_OF_MEMORY,
    KREX_SIM_INVALID,         /* no such device, context or kernel */
    KREX_SIM_ILLEGAL_ADDRESS, /* of a kernel: its context is of no more use */
    KREX_SIM_LAUNCH_TIMEOUT,  /* likewise */
    KREX_SIM_LOST,            /* the device is */
    KREX_SIM_ENDED,           /* the context was torn down under it */
};

struct krex_sim_packet {
    uint32_t magic;
    uint32_t op;
    uint32_t status;
    uint32_t device; /* 0 to channel.devices - 1 */
    uint32_t context;
    uint32_t pad;
    uint64_t value;
    uint64_t value2;
    char text[KREX_SIM_TEXT];
};

enum krex_sim_kind {
    KREX_SIM_RUN = 1,   /* a kernel */
    KREX_SIM_COPY_TO,   /* host to device */
    KREX_SIM_COPY_FROM, /* device to host */
    KREX_SIM_COPY_WITHIN,
    KREX_SIM_FILL,
    KREX_SIM_EVENT,     /* takes no time; its end is the event's timestamp */
    KREX_SIM_HOST,      /* the stream stands still until the client says HOST_DONE */
    KREX_SIM_HOST_DONE, /* amount: the sequence number of that HOST, or of a held RUN. No result */
};

enum krex_sim_flag {
    KREX_SIM_EXPLICIT = 1u << 0, /* of a RUN: it takes `amount` ns, whatever the rules say */
    KREX_SIM_HELD = 1u << 1, /* of a RUN: it ends when its time is over and HOST_DONE was said */
    KREX_SIM_BLOCKING = 1u << 2, /* of a stream: it and the legacy stream wait for each other */
    KREX_SIM_ALL = 1u << 3,      /* behind everything that the context has been given before */
};

/* Stream 0 is a context's legacy stream. A stream needs no making: it is a number of the client's. */
struct krex_sim_command {
    uint64_t seq; /* each client's own, and rising */
    uint64_t arrival_ns;
    uint32_t kind;
    uint32_t flags;
    uint32_t context;
    uint32_t stream;
    uint64_t amount;  /* bytes; or see the flags */
    uint64_t blocks;  /* of a RUN: how many, in all dimensions */
    uint32_t threads; /* in each */
    uint32_t kernel;
    uint64_t after[KREX_SIM_AFTER]; /* behind these commands too; 0: nothing */
    uint64_t pad[5];
};

enum krex_sim_what {
    KREX_SIM_COMPLETE = 1,
    KREX_SIM_YOUR_TURN, /* a HOST, or a held RUN, has started: do it, and say HOST_DONE */
};

struct krex_sim_result {
    uint64_t seq;
    uint64_t start_ns;
    uint64_t end_ns; /* of one that is complete */
    uint32_t status;
    uint32_t what;
};

/* A device as its clients see it. */
struct krex_sim_device {
    char name[96];
    char uuid[16];
    uint64_t memory; /* bytes */
    uint32_t multiprocessors;
    uint32_t clock_khz;
    uint32_t memory_clock_khz;
    uint32_t bus_bits;
    uint32_t l2_bytes;
    uint32_t major, minor; /* compute capability */
    uint32_t number;       /* n of the key sim:<n> */
    uint32_t pad[18];
};

struct krex_sim_channel {
    uint32_t magic;
    uint32_t devices;
    uint64_t line0[7];

    uint64_t submitted; /* client: commands ever */
    uint64_t line1[7];

    uint64_t taken;  /* device */
    uint32_t asleep; /* device: it wants to be woken for the next command */
    uint32_t lost;   /* device: all of it is (set for good) */
    uint64_t line2[6];

    uint64_t given; /* device: results ever; futex on the low half */
    uint64_t line3[7];

    struct krex_sim_device device[KREX_SIM_DEVICES]; /* device, before the client has it */
    struct krex_sim_command command[KREX_SIM_RING];
    struct krex_sim_result result[KREX_SIM_RESULTS];
};

_Static_assert(sizeof(struct krex_sim_command) == 128, "the ABI of a command");
_Static_assert(sizeof(struct krex_sim_result) == 32, "the ABI of a result");
_Static_assert(sizeof(struct krex_sim_device) == 224, "the ABI of a device");

#endif
