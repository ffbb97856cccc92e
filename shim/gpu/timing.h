/* SPDX-License-Identifier: Apache-2.0
 *
 * The bodies of hooks of events and waits, as in hooks.h, and after it. Neither what makes an event nor
 * what reads one or waits is gated: they only tell the audit. The file that includes this defines
 *
 *     is_captured(stream)       what is submitted to it is captured, and not executed
 *     orders(stream, other)     see krex_audit_recorded
 */
#ifndef KREX_GPU_TIMING_H
#define KREX_GPU_TIMING_H

#include "../audit.h"

enum { KREX_EVENT_DISABLE_TIMING = 2 }; /* the same of all vendors */

static bool is_captured(const void *stream);
static bool orders(const void *stream, const void *other);

/* Where a timed event may begin a region. False: it is captured, which times nothing. */
static __attribute__((noinline, cold)) bool timed_slow(const void *event, const void *stream) {
    KREX_HOOK_SEE();
    if (!krex_audit_is_timed(event))
        return true;
    if (is_captured(stream))
        return false;
    krex_arm_timed();
    return true;
}

/* Before an event is recorded; the same answer. */
KREX_INLINE bool before_record(const void *event, const void *stream) {
    return !krex_arm_wants_timed() || timed_slow(event, stream);
}

#define KREX_HOOK_SUBMIT_RECORD(ret, symbol, event, stream, params, args)                          \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        bool times = before_record(event, stream);                                                 \
        unsigned int pass = KREX_ENTER(stream);                                                    \
        ret result = real args;                                                                    \
        leave(pass);                                                                               \
        if (pass & KREX_ANNOUNCED)                                                                 \
            krex_audit_no_work();                                                                  \
        if (result == KREX_HOOK_SUCCESS && times)                                                  \
            krex_audit_recorded(event, stream, orders);                                            \
        return result;                                                                             \
    }

#define KREX_HOOK_SUBMIT_JOIN(ret, symbol, event, stream, params, args)                            \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_fn_##symbol real = KREX_HOOK_REAL(symbol);                                            \
        unsigned int pass = KREX_ENTER(stream);                                                    \
        ret result = real args;                                                                    \
        leave(pass);                                                                               \
        if (pass & KREX_ANNOUNCED)                                                                 \
            krex_audit_no_work();                                                                  \
        if (result == KREX_HOOK_SUCCESS)                                                           \
            krex_audit_joined(stream, event);                                                      \
        return result;                                                                             \
    }

#define KREX_HOOK_TRACK_MADE(ret, symbol, event, flags, params, args)                              \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        ret result = KREX_HOOK_REAL(symbol) args;                                                  \
        if (result == KREX_HOOK_SUCCESS)                                                           \
            krex_audit_event_made(*(event), !((flags) & KREX_EVENT_DISABLE_TIMING));               \
        return result;                                                                             \
    }

/* Before: its handle may be another one's as soon as it is gone. */
#define KREX_HOOK_TRACK_GONE(ret, symbol, event, params, args)                                     \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        krex_audit_event_gone(event);                                                              \
        return KREX_HOOK_REAL(symbol) args;                                                        \
    }

#define KREX_HOOK_TRACK_READ(ret, symbol, ms, start, stop, params, args)                           \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        ret result = KREX_HOOK_REAL(symbol) args;                                                  \
        if (result == KREX_HOOK_SUCCESS && *(ms) >= 0)                                             \
            krex_audit_read(start, stop, (uint64_t)((double)*(ms) * 1e6));                         \
        return result;                                                                             \
    }

#define KREX_HOOK_TRACK_WAIT(ret, symbol, stream, event, params, args)                             \
    KREX_HOOK ret symbol params;                                                                   \
    ret symbol params {                                                                            \
        ret result = KREX_HOOK_REAL(symbol) args;                                                  \
        krex_audit_synchronised(stream, event);                                                    \
        return result;                                                                             \
    }

#endif
