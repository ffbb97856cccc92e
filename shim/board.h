/* SPDX-License-Identifier: Apache-2.0
 *
 * The board: the shared-memory ABI of one device, and its only definition. Compiled into the shim
 * and into the controller's cffi module.
 *
 * Bump KREX_BOARD_ABI at any change of layout or meaning; raise KREX_BOARD_COMPAT when an older shim
 * may no longer take part. A shim whose ABI is below the board's compat version fails open.
 *
 * Parties: the controller (one process), and per client process its threads and its drainer.
 *
 *   submission (a client thread)                 closing (the controller)
 *   ----------------------------                 ------------------------
 *   again: e = gate                              block.pass = E  for each process of the holder
 *     words.submit = e<<1 | 1     (announce)     cas(gate, E-1, E)                E is odd
 *     [compiler fence only]                      membarrier(GLOBAL_EXPEDITED)
 *     g = gate                                   until no word is announced under an epoch < E,
 *     if g != e, or e is odd and e != pass:      and no counter is above 0:
 *        words.submit = g<<1      (retract)          sleep
 *        futex-wait(gate == g, if odd); again
 *     call the driver
 *     words.submit = e<<1         (retract)
 *
 * The announce store and the gate load may be reordered by the CPU; the closer's membarrier makes
 * each client thread execute a full fence between its swap and its scan. So a racing submission is
 * seen announced by the scan, or sees the closed gate: there is no third case. A process that could
 * not register for membarrier fences itself (KREX_FLAG_SELF_FENCED); a closer whose membarrier fails
 * beside one that does not has its swap undone. A heavy call is the same with the word and the gate
 * of that name, and a full fence of its own, so that its closer needs no membarrier.
 *
 * A thread without a word adds to a counter in place of the announce, and subtracts to retract; so
 * does a signal handler's submission while the call below it is announced and not yet past the gate.
 * The counters carry no epoch: a closer waits for all of them.
 *
 * A long heavy call, a stream capture, lasts from one function to another, which any thread may call;
 * it is announced by the counter of heavy calls all the while, and counted in heavy_open once it is
 * past the gate. The program must get to its end although the heavy gate has closed meanwhile, so a
 * heavy call of that process passes then: it adds to the counter, and then looks whether heavy_open is
 * above 0. If so, the long call's own share was in the counter at that moment, for it is the last thing
 * that its end takes back: since before the gate was closed the counter has not been 0, no closer has
 * got past it, and none does before this call's end. Looking first and adding then would let a closer
 * in between (tests/unit/c/captures.c).
 *
 * A retracted word's epoch is at least the last one its thread submitted under: never lower, for a
 * handler may have submitted between the read of e and the announce; maybe higher, for a thread that
 * waited. It stays when the thread ends. A process is CLEAN when no word of it is announced or above
 * drained, and the same holds of its counter and overflow_epoch. (An announced word may be stale: see
 * the handler above.)
 *
 * Crash rules. A client that dies anywhere: the controller sees its pidfd, ignores the block's words
 * from then on and frees the block; the kernel tears its work down. A client thread that ends or is
 * cancelled inside a call retracts it. One that jumps out of a call stays announced: no region beside
 * it is exclusive until it ends (submission_in_flight, or heavy_call_running), because nobody can
 * tell it from one that is still in the driver. So does one that ends inside a call without running
 * its destructors (exit by raw system call), until its word is needed: where no word is free, those of
 * threads that are gone are taken.
 * A controller that dies with a gate closed: a `krex run` that sees it die swaps the gates open, or its
 * lease expires, and whoever waits does (reopen.h). A controller that resumes after that fails its own
 * next swap, or finds at its next look that the gate left its epoch, or that its lease had run out
 * meanwhile (nobody may have waited, but commands were thawed), and aborts the hold. No lock lives here.
 */
#ifndef KREX_BOARD_H
#define KREX_BOARD_H

#include <stddef.h>
#include <stdint.h>

#define KREX_BOARD_MAGIC UINT64_C(0x31647261786572b4)
enum {
    KREX_BOARD_ABI = 4,
    KREX_BOARD_COMPAT = 4,
    /* Processes on a device. A process that finds no free block runs unprotected and says so; every
     * region beside it is not exclusive. */
    KREX_BLOCKS = 256,
    /* Threads of a process with a word of their own. Further ones share two counters in the block,
     * with locked adds, for as long as they live: slower, never wrong. */
    KREX_WORDS = 64,
    /* Threads of a process that may be inside a marked region at once. */
    KREX_MARKS = 8,
    KREX_DEVICE_KEY_SIZE = 64,
};

enum krex_block_state {
    KREX_BLOCK_FREE = 0,     /* controller: nobody's */
    KREX_BLOCK_RESERVED = 1, /* controller: offered to the process `pid` */
    KREX_BLOCK_LIVE = 2,     /* client: membarrier registered, drainer runs; may submit */
};

enum krex_block_flag {
    KREX_FLAG_SELF_FENCED = 1u << 0,  /* no membarrier: fences each submission itself */
    KREX_FLAG_UNLISTED = 1u << 1,     /* was handed a submission entry point we do not hook */
    KREX_FLAG_OTHER_DEVICE = 1u << 2, /* has a context on another device as well */
};

/* A mark's life. The client moves FREE -> REQUESTED, anything -> LEAVING, and REQUESTED -> SHARED when
 * the lease ran out; the controller moves REQUESTED -> EXCLUSIVE or SHARED, and LEAVING -> FREE. Only
 * leaving is a plain store: nobody else moves a granted mark.
 *
 * But for the mark of timed events (arm.c), which has no end of its own: it moves by swaps, on both
 * sides. When all that was timed is read or waited for, the client notes the time and swaps EXCLUSIVE
 * or SHARED for IDLE; the next timed event swaps it back. The controller swaps IDLE for LEAVING once
 * that has lasted, and EXCLUSIVE or SHARED for CLOSING if the mark is to end at the next read-out,
 * where the client then leaves. One that met its limit is FREE at once; one that stands idle although
 * something is unread goes from EXCLUSIVE or CLOSING to LEAVING. The client finds out by its next swap,
 * which fails.
 *
 * And for the mark of what is armed (arm.c), which may yield: the controller swaps EXCLUSIVE for
 * YIELDED, and the device is others'. The mark stays its process's: at its next timing the client swaps
 * YIELDED for REQUESTED and asks anew, at its end for LEAVING. */
enum krex_mark_state {
    KREX_MARK_FREE = 0,
    KREX_MARK_REQUESTED = 1,
    KREX_MARK_EXCLUSIVE = 2,
    KREX_MARK_SHARED = 3, /* granted, but not exclusive: the record says why */
    KREX_MARK_LEAVING = 4,
    KREX_MARK_IDLE = 5,
    KREX_MARK_CLOSING = 6,
    KREX_MARK_YIELDED = 7,
};

/* What the timed pairs of a mark, or of a process, were like; a pair is two timing-enabled events whose
 * distance was read, or an OpenCL command whose end was. Clients add, and the controller reads: the
 * mark's once it is LEAVING or ended, the process's at any time. Zeroed with the mark's request. */
struct krex_audit {
    uint64_t idle_since_ns; /* of a mark that is IDLE; to come, if something is yet to be read */
    uint64_t gap_ns;        /* for how long it usually is IDLE before the next event */
    uint64_t timed_ns;      /* of all pairs together */
    uint64_t shortest_ns;   /* of one pair; 0: of none */
    uint32_t shortest_launches;
    uint32_t events;       /* timing-enabled events that were recorded */
    uint32_t pairs;        /* that were read; rises after the next */
    uint32_t pairs_inside; /* both ends in one region */
    uint32_t cold;         /* first pairs that no launch came before */
    uint32_t below_floor;  /* shorter than KREX_NOISE_FLOOR_NS */
    uint32_t empty;        /* nothing was submitted between the two */
    uint32_t uncovered;    /* launches on a stream that the stop is not behind */
    uint32_t by_others;    /* submissions by other threads than the one that recorded them */
    uint32_t after_stop;   /* work submitted after the stop and before its read-out */
    uint32_t disturbed;    /* memory was allocated, or code loaded, between the two */
    uint32_t split;        /* began or ended in a hold that the other end is not in, or may do so */
    uint32_t pad[12];
};

enum { KREX_NOISE_FLOOR_NS = 100000 };

/* In a drain request: no epoch, but the number of a question, which a holder is asked in the middle of
 * its hold. It submits on under the same epoch, which therefore must not count as drained. Neither half
 * is that of an epoch. */
#define KREX_ASK_IDLE UINT64_C(0x8000000080000000)

/* One thread's words. Only the thread in `tid` writes; the controller reads after a membarrier. What
 * a thread leaves in them when it ends, its epoch and its count, stays: the next owner goes on. */
struct krex_word {
    uint64_t submit; /* last epoch << 1 | announced */
    uint64_t heavy;  /* the same for heavy calls, against heavy_gate */
    uint64_t count;  /* submissions so far, for the record */
    int32_t tid;     /* 0: free; taken by compare-and-swap (acquire), freed by a release store */
    uint32_t pad[9];
};

struct krex_block {
    uint32_t state;           /* enum krex_block_state */
    int32_t pid;              /* controller, before RESERVED; in the controller's pid namespace */
    uint32_t flags;           /* client sets bits, controller clears all when it frees the block */
    uint32_t words_used;      /* client: words [0, words_used) were ever taken */
    uint64_t longest_wait_ns; /* client: longest wait at the gate */
    uint64_t limit_wait_ns; /* client: longest wait in which a limit of its own passed (limit.h) */
    uint64_t line0[4];

    uint64_t pass;   /* controller; pairs with the gate swap that follows it */
    uint64_t ticket; /* controller: the number of the last ticket it gave; futex on the low half */
    uint64_t line1[6];

    /* Controller: drain for this epoch, or answer this question (KREX_ASK_IDLE); futex on the low half */
    uint64_t drain_request;
    uint64_t drained; /* drainer: all that was submitted up to this epoch is complete */
    uint64_t idle;    /* drainer: when this question was asked, or later, nothing was outstanding */
    uint64_t line2[5];

    /* Clients, by locked adds: what is not announced in a word. */
    uint64_t overflow_announced; /* submissions that may be inside the driver */
    uint64_t overflow_heavy;     /* heavy calls, likewise */
    uint64_t overflow_epoch;     /* highest epoch of one; raised before the counter falls */
    uint64_t overflow_count;     /* how many so far, for the record */
    uint64_t heavy_open; /* of overflow_heavy, the long ones; falls before it, rises after */
    uint64_t line3[3];

    uint32_t marks[KREX_MARKS]; /* enum krex_mark_state; futex words */
    uint32_t line4[8];

    struct krex_audit audits[KREX_MARKS];
    struct krex_audit audit; /* of all the process's life */

    struct krex_word words[KREX_WORDS];
};

struct krex_board {
    uint64_t magic;
    uint32_t abi;
    uint32_t compat;
    uint64_t size;
    uint32_t blocks;
    int32_t controller_pid;
    char device_key[KREX_DEVICE_KEY_SIZE];
    uint32_t blocks_used; /* controller: blocks [0, blocks_used) were ever reserved */
    uint32_t pad;
    uint64_t line0[3];

    uint64_t lease_deadline_ns; /* controller; CLOCK_MONOTONIC; waiters read it */
    uint64_t line1[7];

    uint64_t
        gate; /* the epoch, odd = closed; swapped by the controller, or by waiters after the lease */
    uint64_t line2[7];

    uint64_t heavy_gate; /* closes before the gate and opens after it, with the same epochs */
    uint64_t line3[7];

    struct krex_block block[KREX_BLOCKS];
};

_Static_assert(sizeof(struct krex_word) == 64, "a word is a cache line");
_Static_assert(offsetof(struct krex_block, pass) == 64, "pass has its own line");
_Static_assert(sizeof(struct krex_audit) == 128, "an audit is two cache lines");
_Static_assert(offsetof(struct krex_block, audits) == 320, "audits are line-aligned");
_Static_assert(offsetof(struct krex_block, words) % 64 == 0, "words are line-aligned");
_Static_assert(offsetof(struct krex_board, gate) == 192, "the gate has its own line");
_Static_assert(offsetof(struct krex_board, block) == 320, "blocks are line-aligned");
_Static_assert(sizeof(struct krex_block) % 64 == 0, "blocks are line-aligned");

#endif
