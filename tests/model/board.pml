/* SPDX-License-Identifier: Apache-2.0
 *
 * What all see: the board, the kernel's view of the processes, and what the properties look at.
 */

/* krex_block_state and krex_mark_state, shim/board.h */
#define FREE 0
#define RESERVED 1
#define LIVE 2
#define REQUESTED 1
#define EXCLUSIVE 2
#define SHARED 3
#define LEAVING 4

/* krex_board, shim/board.h. A word is epoch << 1 | announced; a gate is an epoch, odd = closed. */
typedef Block {
    unsigned state : 2;
    unsigned mark : 3;
    unsigned pass : 4;
    unsigned submit : 5;
    unsigned heavy : 5;
    unsigned drain_request : 4;
    unsigned drained : 4
}
Block block[CLIENTS];
unsigned gate : 4 = 2;
unsigned heavy_gate : 4 = 2;
bit lease = 1; /* lease_deadline_ns is in the future */

#define ODD(e) ((e) & 1)
#define ANNOUNCE(e) ((e) << 1 | 1)
#define RETRACT(e) ((e) << 1)
#define ANNOUNCED(word, below) (((word) & 1) && ((word) >> 1) < (below))
/* krex_may_pass, shim/gate.h */
#define MAY_PASS(c, e) (!ODD(e) || block[c].pass == (e))

/* A client process, as the kernel, its device and its socket see it. */
typedef Process {
    bit alive;
    bit dead;        /* its pidfd is readable: the kernel has torn its work down */
    bit hung;        /* it does nothing any more, alive */
    bit frozen;      /* cgroup.freeze */
    bit busy;        /* work of it is on the device */
    bit unprotected; /* it submits without a block */
    bit failed;      /* it hung up without joining; the controller reads that before later news */
    bit over;        /* the program has ended */
    bit hello;       /* a message to the controller, not read yet */
    bit leave;       /* another */
    bit refused;     /* the answer to hello */
    unsigned stored : 5 /* the store buffer: an announce not visible yet; 0: nothing */
}
Process process[CLIENTS];

/* The controller: one process, two tasks. */
#define UP 0
#define DIED 1  /* its sockets are closed */
#define STUCK 2 /* stopped for good, sockets open */
unsigned controller : 2 = UP;
bit awaiting = 1; /* the hold's task is at an await: messages are handled */

#define NOBODY 3
unsigned holder : 2 = NOBODY; /* Hold.first */
unsigned epoch : 4;           /* Hold._epoch; 0: it has closed nothing */
bit marked;                   /* Hold.marks is not empty */
bit exclusive;                /* the record's verdict so far */
unsigned known : 3;           /* Device.processes, as a set of clients */
unsigned queue : 3;           /* Device.queue, in any order */
unsigned party : 3;           /* siblings in a handshake, the holder's processes in a release */
unsigned freezing : 3;        /* Hold._frozen */
bit lapsed;                   /* Board.lapses has risen since the hold began */
bit unregistered;             /* Device.unregistered is not 0 */

#define IN(set, c) ((set) >> (c) & 1)
#define ADD(set, c) set = (set) | 1 << (c)
#define REMOVE(set, c) set = (set) & ~(1 << (c))

#ifdef CHILD
#define COVERS(h, c) ((c) == (h) || ((h) == 0 && (c) == 2))
#define COMMAND(c) ((c) == 2 -> 0 : (c))
#else
#define COVERS(h, c) ((c) == (h))
#define COMMAND(c) (c)
#endif
#ifdef BARE
#define HAS_GROUP(c) ((c) != CLIENTS - 1)
#else
#define HAS_GROUP(c) 1
#endif
#ifdef SELF_FENCED
#define FENCES_ITSELF(c) ((c) == CLIENTS - 1)
#else
#define FENCES_ITSELF(c) 0
#endif

/* What the properties look at, and nobody else. */
bit in_region;  /* the holder's mark is exclusive, and its region has not ended */
bit disturbed;  /* something else was on the device, or ran, between grant and end */
bit unassured;  /* the lease has expired, or the controller is gone: a region may lose the device */
bit slipped;    /* the gate was reopened after the controller's last look at it */

/* The properties' names (DESIGN.md): an assertion that fails prints its text. */
#ifdef ONLY_G1
#define NAMES_VALUE 1
#else
#define NAMES_VALUE 0
#endif
hidden byte G1_exclusivity;
hidden byte G2_drained = NAMES_VALUE, G3_progress = NAMES_VALUE;
hidden byte G4_no_stray_freeze = NAMES_VALUE, G6_honesty = NAMES_VALUE;
hidden byte i, j; /* of d_steps only */

/* That the good configurations get somewhere: with -DREACH=NAME an assertion fails there. */
#define NOWHERE 0
#define GRANTED_AFTER_DRAIN 1
#define RECORDED_EXCLUSIVE 2
#define SUBMITTED_WITH_PASS 3
#define HEAVY_CALL_WAITED 4
#define REOPENED_BY_WAITER 5
#define RESUMED_TOO_LATE 6
#define REQUEST_TAKEN_BACK 7
#define THAWED_BY_RUN 8
#define LIMIT_OF_HOLD 9
#define LATE_CHILD_HAS_PASS 10
#ifndef REACH
#define REACH NOWHERE
#endif
#define PLACE(name) assert(REACH != name)
