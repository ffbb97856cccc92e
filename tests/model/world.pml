/* SPDX-License-Identifier: Apache-2.0
 *
 * The device, the store buffers, the kernel, `krex run`, what may go wrong, and what must be true
 * when all is over.
 */

#ifdef NO_LEASE
#define OUT_OF_LEASE false
#else
#define OUT_OF_LEASE !lease
#endif
#define RUNS(c) (process[c].alive && !process[c].frozen && !process[c].hung)

/* What a client's thread announces becomes visible at any time: total store order. */
inline flush(c) {
    if
    :: process[c].stored -> block[c].submit = process[c].stored; process[c].stored = 0
    :: else
    fi
}

proctype buffers() {
end:
    do
    :: d_step { process[0].stored -> flush(0) }
    :: d_step { process[1].stored -> flush(1) }
#if CLIENTS > 2
    :: d_step { process[2].stored -> flush(2) }
#endif
    od
}

/* MEMBARRIER_CMD_GLOBAL_EXPEDITED. Inside a d_step. */
inline membarrier() {
    for (i : 0 .. CLIENTS - 1) {
        if
        :: !FENCES_ITSELF(i) -> flush(i)
        :: else
        fi
    }
}

inline swap(word, from, to) {
    d_step {
        if
        :: word == (from) -> word = to
        :: else
        fi
    }
}

/* krex_gate_reopen, shim/reopen.h: one swap after the other, by a waiter or by the controller. */
inline reopen_gate(closed) {
    d_step {
        if
        :: gate == closed -> gate = closed + 1; slipped = 1
        :: else
        fi
    }
}

/* The gate skips the epoch where the hold had closed the heavy gate alone. Its two swaps are one
 * step: where the first fails, the gate never has that value again. */
inline reopen_heavy(closed) {
#ifndef HEAVY_OPENS_ALONE
    d_step {
        if
        :: gate == closed - 1 || gate == closed -> gate = closed + 1; slipped = 1
        :: else
        fi
    };
#endif
    swap(heavy_gate, closed, closed + 1)
}

/* Guard.thaw, krex/launch/guard.py */
inline thaw_by_run(c) {
    if
    :: in_region && process[c].frozen && !COVERS(holder, c) -> disturbed = 1
    :: else
    fi;
    PLACE(THAWED_BY_RUN);
    process[c].frozen = 0
}

/* krex_lease_reopen, shim/lease.c. One step: nobody closes anything any more. */
inline reopen_both() {
    if
    :: ODD(heavy_gate) ->
        if
        :: gate == heavy_gate - 1 || gate == heavy_gate -> gate = heavy_gate + 1
        :: else
        fi;
        heavy_gate = heavy_gate + 1
    :: else
    fi;
    if
    :: ODD(gate) -> gate = gate + 1
    :: else
    fi
}

/* Supervisor._turn, krex/launch/supervise.py: Guard.check, krex/launch/guard.py, and where the
 * controller's connection ends krex_lease_reopen, shim/lease.c, and Supervisor._lost,
 * krex/launch/supervise.py. With SLOW_RUN all may have changed between the look and the thaw. */
proctype krex_run(byte me) {
    bit looked;
end:
    do
#ifdef GUARD_ONCE
    :: d_step { !lease && !looked -> looked = 1; thaw_by_run(me) }
    :: d_step { lease && looked -> looked = 0 }
#else
#ifdef SLOW_RUN
    :: !lease && !looked -> looked = 1; d_step { skip; thaw_by_run(me) }
#endif
    :: d_step { !lease && process[me].frozen -> thaw_by_run(me) }
#endif
    :: d_step { controller == DIED && process[me].frozen -> thaw_by_run(me) }
    :: d_step { controller == DIED && (ODD(heavy_gate) || ODD(gate)) -> reopen_both() }
    od
}

#if defined(CRASH) || defined(LEASE) || defined(HANG)
/* A process dies at once, and its work some time later; then its pidfd is readable. */
inline die(c) {
    process[c].alive = 0;
    process[c].stored = 0;
    if
    :: in_region && holder == c -> in_region = 0
    :: else
    fi
}

inline reap(c) {
    process[c].dead = 1;
    process[c].busy = 0
}

/* What it knew is lost, and no record will call its region exclusive. */
inline lose_controller(how) {
    controller = how;
    unassured = 1;
    in_region = 0; disturbed = 0; slipped = 0; exclusive = 0; awaiting = 0;
    holder = NOBODY; epoch = 0; marked = 0; lapsed = 0;
    known = 0; queue = 0; party = 0; freezing = 0
}

proctype faults() {
    bit crashed, expired, hanged;
end:
    do
#ifdef CRASH
    :: d_step { !crashed -> crashed = 1; die(0) }
    :: d_step { !crashed -> crashed = 1; die(1) }
    :: d_step { !process[0].alive && !process[0].dead -> reap(0) }
    :: d_step { !process[1].alive && !process[1].dead -> reap(1) }
#if CLIENTS > 2
    :: d_step { !crashed -> crashed = 1; die(2) }
    :: d_step { !process[2].alive && !process[2].dead -> reap(2) }
#endif
    :: d_step { !crashed -> crashed = 1; lose_controller(DIED) }
    :: d_step { !crashed -> crashed = 1; lose_controller(STUCK) }
    :: controller != UP && lease -> lease = 0
#endif
#ifdef LEASE
    :: d_step { !expired -> expired = 1; lease = 0; unassured = 1 }
#endif
#ifdef HANG
    :: d_step { !hanged -> hanged = 1; process[0].hung = 1 }
#endif
    od
}

#endif

/* When nobody can take a step any more. */
proctype finally() {
    timeout;
    d_step {
        assert(G3_progress || controller != UP || gate == heavy_gate && !ODD(gate));
        assert(G3_progress || controller != UP || !queue);
        for (i : 0 .. CLIENTS - 1) {
            if
            :: process[i].alive ->
                assert(G4_no_stray_freeze || !process[i].frozen);
                assert(G3_progress || process[i].over || process[i].hung)
            :: else
            fi;
            if
            :: controller == UP ->
                assert(G3_progress || !block[i].pass);
                assert(G3_progress || !block[i].mark || process[i].hung);
                assert(G3_progress || process[i].alive || !block[i].state)
            :: else
            fi
        };
        skip
    }
}
