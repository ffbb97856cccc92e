/* SPDX-License-Identifier: Apache-2.0
 *
 * The bodies of hooks, one a kind (api.def), for the one file of a vendor's folder that expands them.
 * Each finds the driver's function before it announces, because the first lookup takes the loader's
 * lock. Before it includes this, that file says
 *
 *     KREX_HOOK_REAL(symbol)   the driver's function, never NULL
 *     KREX_HOOK_GPU            its struct krex_gpu
 *     KREX_HOOK_SEE()          learns the calling thread's context
 *     KREX_HOOK_SUCCESS, KREX_HOOK_NO_MEMORY      two results
 *
 * and it defines
 *
 *     enter_slow, heavy_enter  see below
 *     KREX_BYTES_<symbol>      what an allocation was asked for, as an expression of its parameters
 */
#ifndef KREX_GPU_HOOKS_H
#define KREX_GPU_HOOKS_H

#include "../audit.h"
#include "../gate.h"
#include "../ticket.h"
#include "capture.h"
#include "drain.h"
#include "refusal.h"

#define KREX_HOOK __attribute__((visibility("default")))

/* What a call has to give back, as flags: true is KREX_ANNOUNCED, false nothing. With a ticket it is the
 * one that brings a context to life, and a heavy one. */
enum krex_pass { KREX_ANNOUNCED = 1, KREX_WITH_TICKET = 2 };

/* Where the fast path gave up. */
static __attribute__((noinline, cold)) unsigned int enter_slow(const void *stream);
static unsigned int heavy_enter(void);

static __attribute__((noinline, cold)) void leave_slow(unsigned int pass) {
    krex_gate_leave(pass & KREX_ANNOUNCED);
    krex_context_leave(pass & KREX_WITH_TICKET);
}

KREX_INLINE void leave(unsigned int pass) {
    if (__builtin_expect(pass == KREX_ANNOUNCED, 1))
        krex_gate_leave(true);
    else if (pass)
        leave_slow(pass);
}

/* Not both: a ticket is taken in place of the announcement. */
static inline void heavy_leave(unsigned int pass) {
    if (pass & KREX_WITH_TICKET)
        krex_context_leave(true);
    else
        krex_heavy_leave(pass & KREX_ANNOUNCED);
}

#define KREX_ENTER(stream)                                                                         \
    (__builtin_expect(krex_gate_enter_fast(), 1) ? KREX_ANNOUNCED : enter_slow(stream))

/* --- submissions --- */

#define KREX_HOOK_SUBMIT(ret, symbol, stream, params, args)                                        \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        unsigned int pass = KREX_ENTER(stream);                                                    \
        ret result = real args;                                                                    \
        leave(pass);                                                                               \
        krex_audit_launch(stream);                                                                 \
        return result;                                                                             \
    }

/* Announces its submission, not its wait (drain.h). It is counted before it leaves the gate: who sees
 * the retraction sees the count. */
#define KREX_HOOK_SUBMIT_SYNC(ret, symbol, stream, params, args)                                   \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        unsigned int pass = KREX_ENTER(stream);                                                    \
        if (pass & KREX_ANNOUNCED)                                                                 \
            krex_add_seq_cst(&krex_gpu_inside, 1);                                                 \
        krex_gate_leave(pass & KREX_ANNOUNCED);                                                    \
        ret result = real args;                                                                    \
        if (pass & KREX_ANNOUNCED)                                                                 \
            krex_add_seq_cst(&krex_gpu_inside, -1);                                                \
        if (__builtin_expect(pass & KREX_WITH_TICKET, 0))                                          \
            krex_context_leave(true);                                                              \
        return result;                                                                             \
    }

#define KREX_HOOK_SUBMIT_ALLOC(ret, symbol, stream, params, args)                                  \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        unsigned int pass = KREX_ENTER(stream);                                                    \
        ret result = real args;                                                                    \
        leave(pass);                                                                               \
        if (__builtin_expect(result == KREX_HOOK_NO_MEMORY, 0))                                    \
            krex_note_refusal(KREX_BYTES_##symbol);                                                \
        return result;                                                                             \
    }

/* --- heavy calls --- */

/* `then` comes when the call is no longer announced. */
#define KREX_HOOK_HEAVY_THEN(ret, symbol, params, args, then)                                      \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        unsigned int pass = heavy_enter();                                                         \
        ret result = real args;                                                                    \
        heavy_leave(pass);                                                                         \
        then;                                                                                      \
        return result;                                                                             \
    }

#define KREX_HOOK_HEAVY(ret, symbol, stream, params, args)                                         \
    KREX_HOOK_HEAVY_THEN(ret, symbol, params, args, (void)0)

#define KREX_HOOK_HEAVY_LOAD(ret, symbol, stream, params, args)                                    \
    KREX_HOOK_HEAVY_THEN(ret, symbol, params, args, krex_audit_disturbed())

#define KREX_HOOK_HEAVY_ALLOC(ret, symbol, stream, params, args)                                   \
    KREX_HOOK_HEAVY_THEN(ret, symbol, params, args, {                                              \
        krex_audit_disturbed();                                                                    \
        if (__builtin_expect(result == KREX_HOOK_NO_MEMORY, 0))                                    \
            krex_note_refusal(KREX_BYTES_##symbol);                                                \
    })

#define KREX_HOOK_HEAVY_STREAM(ret, symbol, stream, params, args)                                  \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        unsigned int pass = heavy_enter();                                                         \
        ret result = real args;                                                                    \
        if (result == KREX_HOOK_SUCCESS)                                                           \
            krex_capture_stream_destroyed(&KREX_HOOK_GPU, stream);                                 \
        heavy_leave(pass);                                                                         \
        return result;                                                                             \
    }

/* --- captures --- */

#define KREX_HOOK_CAPTURE(ret, symbol, stream, params, args)                                       \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        KREX_HOOK_SEE();                                                                           \
        uint64_t token = krex_capture_enter();                                                     \
        ret result = real args;                                                                    \
        krex_capture_begun(&KREX_HOOK_GPU, token, stream, result == KREX_HOOK_SUCCESS);            \
        return result;                                                                             \
    }

#define KREX_HOOK_CAPTURE_END(ret, symbol, stream, params, args)                                   \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        ret result = KREX_HOOK_REAL(symbol) args;                                                  \
        krex_capture_ended(&KREX_HOOK_GPU, stream, result == KREX_HOOK_SUCCESS);                   \
        return result;                                                                             \
    }

#endif
