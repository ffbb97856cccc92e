/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate and the handshake, for spin. What is modelled and what is not: README.md; the protocol:
 * shim/board.h. A comment "function, file" names the code that a step stands for.
 *
 * Every run of the model ends: clients have a fixed number of submissions and regions, and whoever
 * waits is blocked, instead of looking again and again. So "at last" means: when nobody can take a
 * step any more (finally, in world.pml), and no fairness is needed.
 *
 * Parameters (-D). CLIENTS 2 or 3. Of client c: SUBMITS_c, REGIONS_c (how many), LATE_c (registers
 * in the middle; the others are registered already). SELF_FENCED: the last client has no membarrier.
 * CHILD: client 2 is a child of client 0. BARE: the last client has no group to be frozen by.
 * What may happen: CRASH (one party dies, or the controller stops for good), LEASE (expires once),
 * DEADLINES (any step may miss its own), HANG (client 0 stops for good), INTERRUPT (of a wait for a
 * region), REFUSE (no block for a late client), JOIN_FAILS (a late client cannot join the board),
 * SLOW_RUN (`krex run` thaws long after its look at the lease).
 * Broken on purpose: the flags that test_model.py lists.
 */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#include "board.pml"
#include "world.pml"
#include "client.pml"
#include "controller.pml"

#ifndef SUBMITS_0
#define SUBMITS_0 1
#endif
#ifndef SUBMITS_1
#define SUBMITS_1 2
#endif
#ifndef SUBMITS_2
#define SUBMITS_2 1
#endif
#ifndef REGIONS_0
#define REGIONS_0 1
#endif
#ifndef REGIONS_1
#define REGIONS_1 0
#endif
#ifndef REGIONS_2
#define REGIONS_2 0
#endif
#ifndef LATE_1
#define LATE_1 0
#endif
#ifndef LATE_2
#define LATE_2 1
#endif

inline make_client(c, submits, regions, late) {
    process[c].alive = 1;
    if
    :: late
    :: else -> block[c].state = LIVE; ADD(known, c)
    fi;
    run client(c, submits, regions, late);
    run drainer(c)
}

init {
    atomic {
        make_client(0, SUBMITS_0, REGIONS_0, 0);
        make_client(1, SUBMITS_1, REGIONS_1, LATE_1);
#if CLIENTS > 2
        make_client(2, SUBMITS_2, REGIONS_2, LATE_2);
#endif
        run buffers();
#if defined(CRASH) || defined(LEASE)
        /* Of commands that somebody else's region may freeze. */
#if REGIONS_1 || REGIONS_2
        run krex_run(0);
#endif
        run krex_run(1);
#if CLIENTS > 2
        run krex_run(2);
#endif
#endif
        run events();
        run hold();
#if defined(CRASH) || defined(LEASE) || defined(HANG)
        run faults();
#endif
        run finally()
    }
}
