/* SPDX-License-Identifier: Apache-2.0
 *
 * A client: its thread, which registers, makes a heavy call (its first queue), submits and enters
 * regions; and its drainer. Steps that nobody can tell from one are one.
 */

/* hello, shim/client.c. The answer, the end of the connection, or receive_answer's time limit. */
inline register() {
    if
    :: d_step { controller == DIED -> process[me].unprotected = 1 }
    :: d_step { controller != DIED -> process[me].hello = 1 };
       if
       :: block[me].state == RESERVED -> join()
       :: d_step { process[me].refused || controller != UP -> process[me].unprotected = 1 }
       fi
    fi
}

/* join_board, shim/client.c: start_drainer, shim/client.c, and krex_gate_attach, shim/gate.c, whose
 * full fence comes before all that follows. */
inline join() {
    if
    :: block[me].state = LIVE
#ifdef JOIN_FAILS
    :: d_step {
           process[me].unprotected = 1;
#ifndef FAILURE_UNTOLD
           process[me].failed = 1
#endif
       }
#endif
    fi
}

#define AT(word, e) (word == (e) && MAY_PASS(me, e))

/* krex_heavy_enter, pass_gate and try_word, shim/gate.c; krex_heavy_leave, shim/gate.c */
inline announce_heavy() {
    d_step { e = heavy_gate; block[me].heavy = ANNOUNCE(e) }
}

inline heavy_call() {
    announce_heavy();
    do
    :: AT(heavy_gate, e) -> break
    :: d_step { !AT(heavy_gate, e) -> block[me].heavy = RETRACT(0) };
       PLACE(HEAVY_CALL_WAITED);
       if
       :: heavy_gate != e || MAY_PASS(me, e)
       :: OUT_OF_LEASE -> reopen_heavy(e) /* wait_at, shim/gate.c */
       fi;
       announce_heavy()
    od;
    atomic { block[me].heavy = RETRACT(0); e = 0 }
}

/* The load and the announce of krex_gate_enter, shim/gate.h, or of try_word, shim/gate.c, which has
 * a full fence. They are one step: an epoch that is stale by the time it is announced fails at the
 * second load, and the store buffer makes announces late enough. */
inline announce() {
    e = gate;
    if
    :: slow || FENCES_ITSELF(me) -> block[me].submit = ANNOUNCE(e)
    :: else -> process[me].stored = ANNOUNCE(e)
    fi
}

/* A retraction is visible at once, and what was stored before it with it. One that is late looks
 * like a call that has not ended yet. */
inline retract(under) {
    process[me].stored = 0;
    block[me].submit = RETRACT(under)
}

/* From the second load of krex_gate_enter, shim/gate.h, until it may pass. */
inline pass_gate() {
    do
    :: AT(gate, e) -> break
    :: d_step { !AT(gate, e) -> retract(gate); slow = 1 };
       if
       :: gate != e || MAY_PASS(me, e)
#ifdef LOOKS_FOREVER
       :: gate == e
#endif
       :: OUT_OF_LEASE -> reopen_gate(e); PLACE(REOPENED_BY_WAITER) /* wait_at, shim/gate.c */
       fi;
       d_step { announce() }
    od
}

/* The driver is called: from here on the device has work of ours. */
inline call_driver() {
    process[me].busy = 1;
    if
    :: in_region && !COVERS(holder, me) ->
        assert(G1_exclusivity || unassured || process[me].unprotected);
        disturbed = 1
    :: else
    fi
}

/* krex_region_begin, shim/region.c. The controller may read the message at once: until it does,
 * this is as if nothing had happened yet. */
inline begin_region() {
    flush(me);
    if
    :: controller == DIED
    :: else -> block[me].mark = REQUESTED; ADD(queue, me)
    fi
}

/* krex_region_wait, shim/region.c */
inline wait_for_grant() {
    do
    :: block[me].mark != REQUESTED -> break
#ifdef INTERRUPT
    :: block[me].mark == REQUESTED -> break
#endif
    :: block[me].mark == REQUESTED && OUT_OF_LEASE ->
        swap(block[me].mark, REQUESTED, SHARED);
        PLACE(REQUEST_TAKEN_BACK)
    od
}

/* krex_region_end, shim/region.c */
inline end_region() {
    flush(me);
    if
    :: block[me].mark && controller != DIED -> block[me].mark = LEAVING; process[me].leave = 1
    :: else -> block[me].mark = FREE
    fi;
    if
    :: holder == me -> in_region = 0
    :: else
    fi;
    inside = 0
}

#define MAY_BEGIN (!inside && !block[me].mark && !process[me].unprotected)
#define AT_END (!submits && !inside && \
    (!regions || process[me].unprotected || controller != UP && block[me].mark))

proctype client(byte me; byte submits; byte regions; bit late) provided (RUNS(me)) {
    unsigned e : 4;
    bit slow, inside;
    if
    :: late -> register()
    :: else
    fi;
#ifndef NOT_HEAVY_FIRST
    if
    :: late && !process[me].unprotected -> heavy_call()
    :: else
    fi;
#endif
    do
    :: d_step { submits && !process[me].unprotected -> submits--; announce() };
       pass_gate();
       /* What the call does to the device, it does at its end, where it is hardest to catch. */
       atomic {
           assert(REACH != SUBMITTED_WITH_PASS || !ODD(e));
           call_driver();
           retract(e); /* krex_gate_leave, shim/gate.h */
           e = 0;
           slow = 0
       }
    :: d_step { submits && process[me].unprotected -> submits--; call_driver() }
    :: d_step { regions && MAY_BEGIN -> regions--; begin_region() };
       wait_for_grant();
       inside = 1
    :: d_step { inside -> end_region() }
    :: d_step { AT_END -> process[me].over = 1 }; break
    od
}

/* drainer and drain, shim/client.c. The device's work ends when the drainer waits for it, and no
 * sooner: that is hardest on who believes it has ended. */
proctype drainer(byte me) provided (RUNS(me)) {
    unsigned request : 4;
end:
    do
    :: d_step {
           block[me].state == LIVE && block[me].drain_request > block[me].drained ->
               request = block[me].drain_request;
               process[me].busy = 0
       };
       atomic { block[me].drained = request; request = 0 }
    od
}
