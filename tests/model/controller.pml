/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller. Its event loop runs one task at a time: messages are handled only while the hold's
 * task is at an await.
 */

#define RESTS (controller == UP && awaiting)

/* krex_block_clean, shim/closer.c */
#define CLEAN(c) (!(block[c].submit & 1) && (block[c].submit >> 1) <= block[c].drained)
/* block_in_flight and krex_in_flight, shim/closer.c. A holder's block is left out. */
#define SCANNED(c) (block[c].state == LIVE && block[c].pass != epoch)
#define CALLS(c, word) (SCANNED(c) && ANNOUNCED(block[c].word, epoch))
#define GONE(c) (!IN(known, c))

/* Device.leave, krex/controller/device.py, and Hold.leave, krex/controller/hold.py: the mark ends,
 * and its record is closed. */
inline close_mark(c, verdict) {
    if
    :: IN(queue, c) -> REMOVE(queue, c)
    :: !IN(queue, c) && holder == c && marked -> marked = 0; close_record(verdict)
    :: else
    fi;
    /* ThreadMark._leave_board, krex/controller/mark.py */
    if
    :: block[c].mark == LEAVING -> block[c].mark = FREE
    :: else
    fi
}

/* Hold.is_certain, krex/controller/hold.py, and Board.kept, krex/controller/board.py. */
#define KEPT (lease && !lapsed)

/* Hold._check, krex/controller/hold.py: was all of it certain? */
inline close_record(verdict) {
    exclusive = exclusive && (verdict);
#ifndef NO_LAST_CHECK
    exclusive = exclusive && gate == epoch && KEPT;
#endif
    look_at_freeze();
    note_unregistered();
    assert(G6_honesty || !exclusive || !disturbed);
    assert(REACH != RECORDED_EXCLUSIVE || !exclusive);
    exclusive = 0
}

/* Group.was_thawed, krex/protect/freezer.py: by its `krex run`, when the lease ran out. */
inline look_at_freeze() {
#ifndef THAW_UNSEEN
    for (i : 0 .. CLIENTS - 1) {
        exclusive = exclusive && (!IN(freezing, i) || process[i].frozen)
    };
#endif
    skip
}

/* Hold._noted_reason, krex/controller/hold.py */
inline note_unregistered() {
#ifndef NO_BREACH
    exclusive = exclusive && !unregistered;
    for (i : 0 .. CLIENTS - 1) {
        exclusive = exclusive && !process[i].failed
    };
#endif
    skip
}

/* Connection._hello, krex/controller/connection.py, and Hold.registered, krex/controller/hold.py */
inline on_hello(c) {
    process[c].hello = 0;
    ADD(known, c);
    block[c].state = RESERVED;
    if
    :: holder != NOBODY && marked && COVERS(holder, c) && process[holder].alive ->
        PLACE(LATE_CHILD_HAS_PASS);
        block[c].pass = epoch
    :: else
    fi
}

/* Device.refused, krex/controller/device.py */
inline on_hello_refused(c) {
    process[c].hello = 0;
    process[c].refused = 1;
    unregistered = 1
}

/* Device.gone, krex/controller/device.py, and krex_block_free, shim/closer.c */
inline on_death(c) {
    process[c].leave = 0;
    close_mark(c, 0);
    REMOVE(known, c);
    block[c].state = FREE;
    block[c].mark = 0;
    block[c].pass = 0;
    block[c].submit = 0;
    block[c].heavy = 0;
    block[c].drain_request = 0;
    block[c].drained = 0
}

inline on_leave(c) {
    process[c].leave = 0;
    close_mark(c, 1)
}

#define HANDLE(c) \
    :: d_step { RESTS && process[c].hello -> on_hello(c) } \
    :: d_step { RESTS && process[c].leave -> on_leave(c) } \
    :: d_step { RESTS && process[c].dead && !process[c].hello && IN(known, c) -> on_death(c) }

proctype events() {
end:
    do
    HANDLE(0)
    HANDLE(1)
#if CLIENTS > 2
    HANDLE(2)
#endif
#ifdef REFUSE
    :: d_step { RESTS && process[CLIENTS - 1].hello -> on_hello_refused(CLIENTS - 1) }
#endif
    /* Device.keep_lease, krex/controller/device.py, and Board.lease, krex/controller/board.py */
    :: d_step { RESTS && !lease -> lease = 1; lapsed = (holder != NOBODY) }
    od
}

/* ThreadMark.covers, krex/controller/mark.py: a child whose parent died descends from it no longer.
 * */
#define HOLDS(c) (IN(known, c) && COVERS(holder, c) && ((c) == holder || process[holder].alive))

#if CLIENTS > 2
#define EACH(done) (done(0) && done(1) && done(2))
#else
#define EACH(done) (done(0) && done(1))
#endif
#define NO_HEAVY(c) !(CALLS(c, heavy))
#define NO_SUBMISSION(c) !(CALLS(c, submit))
#define DRAINED(c) (!IN(party, c) || GONE(c) || block[c].drained >= epoch)
#define QUIET(c) (!IN(party, c) || GONE(c) || !(block[c].submit & 1))

/* until, krex/controller/waiting.py: what it waits for may be there at once; else messages are
 * handled. */
#ifdef DEADLINES
#define OR_DEADLINE :: goto undo
#else
#define OR_DEADLINE
#endif

/* Hold._look, krex/controller/hold.py, before each look at what a handshake waits for. */
#ifdef NO_EPOCH_CHECK
#define GOES_ON(e) (marked)
#else
#define GOES_ON(e) (marked && gate == (e) && KEPT)
#endif

/* The first lines of Hold.acquire, krex/controller/hold.py: the lease, the pass, the siblings. */
inline start(c) {
    awaiting = 0;
    REMOVE(queue, c);
    lease = 1;
    lapsed = 0;
    holder = c;
    marked = 1;
    assert(G3_progress || !ODD(gate));
    epoch = gate + 1;
    for (j : 0 .. CLIENTS - 1) {
        if
        :: HOLDS(j) -> block[j].pass = epoch
        :: IN(known, j) && !HOLDS(j) -> ADD(party, j)
        :: else
        fi
    };
    skip
}

#define WAITS(c) (IN(queue, c) && block[c].mark != SHARED)
/* ThreadMark.began_already, krex/controller/mark.py: its thread took the request back. */
#define BEGAN(c) (IN(queue, c) && block[c].mark == SHARED)

/* krex_gate_fence, shim/closer.c. What follows it is an await. */
inline fence() {
    d_step {
#ifndef NO_FENCE
        membarrier();
#endif
        awaiting = 1
    }
}

/* Hold._drain, krex/controller/hold.py, of the siblings that are not clean: `party` from now on. */
inline ask_siblings() {
    for (j : 0 .. CLIENTS - 1) {
        if
        :: IN(party, j) && IN(known, j) && !CLEAN(j) -> block[j].drain_request = epoch
        :: else -> REMOVE(party, j)
        fi
    };
    skip
}

/* Hold._begin_freeze, krex/controller/hold.py. All commands were admitted before; a frozen one stands
 * still at once. */
inline freeze_siblings() {
    for (j : 0 .. CLIENTS - 1) {
        if
        :: HAS_GROUP(j) && COMMAND(j) != COMMAND(holder) -> ADD(freezing, j); process[j].frozen = 1
        :: else
        fi
    };
    skip
}

/* Hold.grant, krex/controller/hold.py, and Mark.answer, krex/controller/mark.py */
inline grant() {
    disturbed = 0;
    for (j : 0 .. CLIENTS - 1) {
        if
        :: process[j].busy && !COVERS(holder, j) ->
            assert(G2_drained || slipped || process[j].unprotected);
            disturbed = 1
        :: else
        fi;
        if
        :: IN(freezing, j) && !process[j].frozen -> disturbed = 1
        :: else
        fi
    };
    if
    :: block[holder].mark == REQUESTED ->
        assert(REACH != GRANTED_AFTER_DRAIN || !party);
        block[holder].mark = EXCLUSIVE;
        in_region = process[holder].alive
    :: else -> exclusive = 0
    fi;
    party = 0;
    awaiting = 1
}

/* The first lines of Hold.release, krex/controller/hold.py. */
inline take_pass() {
    for (j : 0 .. CLIENTS - 1) {
        if
        :: HOLDS(j) ->
            ADD(party, j);
#ifndef PASS_LATE
            block[j].pass = 0
#endif
        :: else
        fi
    };
    skip
}

/* Device.leave with a reason, of a mark that has not ended. */
inline give_up() {
    marked = 0;
    close_record(0);
    in_region = 0;
    take_pass()
}

inline ask_holder() {
    for (j : 0 .. CLIENTS - 1) {
        if
        :: IN(party, j) -> block[j].drain_request = epoch
        :: else
        fi
    };
    skip
}

/* Hold.undo, krex/controller/hold.py; it opens the gate first. */
inline thaw() {
    d_step {
        awaiting = 0;
        for (j : 0 .. CLIENTS - 1) {
            if
            :: IN(freezing, j) -> process[j].frozen = 0
            :: else
            fi;
            block[j].pass = 0;
            block[j].drain_request = 0
        };
        freezing = 0
    }
}

/* After a handshake that failed Hold.grant answers "shared". */
inline end_hold() {
    d_step {
        if
        :: marked && block[holder].mark == REQUESTED -> block[holder].mark = SHARED
        :: else
        fi;
        holder = NOBODY;
        epoch = 0;
        marked = 0;
        exclusive = 0;
        disturbed = 0;
        party = 0;
        slipped = 0;
        lapsed = 0;
        awaiting = 1
    }
}

/* Device._serve and Device._serve_hold, krex/controller/device.py */
proctype hold() {
    {
end:
    do
    :: d_step { BEGAN(0) -> REMOVE(queue, 0) }
    :: d_step { BEGAN(1) -> REMOVE(queue, 1) }
#if CLIENTS > 2
    :: d_step { BEGAN(2) -> REMOVE(queue, 2) }
#endif
    :: if
       :: d_step { WAITS(0) -> start(0) }
       :: d_step { WAITS(1) -> start(1) }
#if CLIENTS > 2
       :: d_step { WAITS(2) -> start(2) }
#endif
       fi;
       /* Hold._close, krex/controller/hold.py, and krex_gate_swap, shim/closer.c: the heavy gate,
        * whose callers fence themselves, */
       if
       :: d_step { heavy_gate == epoch - 1 -> heavy_gate = epoch; awaiting = 1 }
       :: heavy_gate != epoch - 1 -> goto undo
       fi;
       /* and when no heavy call is left, the gate. */
       if
       :: d_step {
              GOES_ON(epoch - 1) && EACH(NO_HEAVY) && gate == epoch - 1 ->
                  gate = epoch; awaiting = 0
          }
       :: !GOES_ON(epoch - 1) || gate != epoch - 1 -> goto undo
       OR_DEADLINE
       fi;
       fence();
       if
#ifdef FREEZE_BEFORE_DRAIN
       :: d_step { GOES_ON(epoch) && EACH(NO_SUBMISSION) -> freeze_siblings(); ask_siblings() }
#else
       :: d_step { GOES_ON(epoch) && EACH(NO_SUBMISSION) -> ask_siblings() }
#endif
       :: !GOES_ON(epoch) -> goto undo
       OR_DEADLINE
       fi;
       if
#ifdef FREEZE_BEFORE_DRAIN
       :: GOES_ON(epoch) && EACH(DRAINED)
#else
       :: d_step { GOES_ON(epoch) && EACH(DRAINED) -> freeze_siblings() }
#endif
       :: !GOES_ON(epoch) -> goto undo
       OR_DEADLINE
       fi;
       /* The last look of Hold.acquire, krex/controller/hold.py. No await from here to the grant. */
       if
       :: d_step { GOES_ON(epoch) -> awaiting = 0; slipped = 0; exclusive = 1; note_unregistered() }
       :: !GOES_ON(epoch) -> PLACE(RESUMED_TOO_LATE); goto undo
       fi;
       if
       :: d_step { exclusive -> grant() }
       :: !exclusive -> goto undo
       fi;
#ifdef RELEASE_BY_RECORD
       if
       :: !exclusive && marked -> goto over
       :: else
       fi;
#endif
       /* Device._until_left, krex/controller/device.py: by itself, by its death, by --max-hold, or
        * because it was broken; and Hold.release, krex/controller/hold.py. */
       if
       :: d_step { !marked -> take_pass() }
       :: d_step { marked && !(gate == epoch && KEPT) -> give_up() }
#ifdef DEADLINES
       :: d_step { marked -> give_up() };
          PLACE(LIMIT_OF_HOLD)
#endif
       fi;
#ifndef NO_RELEASE_FENCE
       fence();
#endif
       if
       :: d_step { EACH(QUIET) -> ask_holder() }
       OR_DEADLINE
       fi;
       if
       :: EACH(DRAINED)
       OR_DEADLINE
       fi;
undo:
       thaw();
       reopen_gate(epoch);
       reopen_heavy(epoch);
over:
       end_hold()
    od
    } unless { controller != UP }
}
