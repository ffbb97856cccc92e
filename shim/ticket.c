/* SPDX-License-Identifier: Apache-2.0
 *
 * A ticket has a number, which the process makes up. It asks by a message, and the controller answers
 * by writing the number to the block: an answer to somebody who waits no longer is one that nobody
 * looks for. Dying anywhere gives the ticket back, for the controller sees the process end.
 */
#include "ticket.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "client.h"
#include "futex.h"
#include "gate.h"
#include "stop.h"

/* A controller takes a ticket for returned after half of that. */
#define LIMIT_NS UINT64_C(10000000000)
/* How soon it is noticed that the controller is gone. */
#define WAIT_SLICE_NS UINT64_C(100000000)

static uint64_t last_number;
/* The number that a thread of this process has or asks for; a futex; 0: none. */
static uint64_t turn;
static __thread uint64_t held; /* this thread's: its turn. Its ticket too, unless it goes without */

/* A forked child has no ticket, whoever of its parent had one. */
static void start_over(void) {
    turn = 0;
    held = 0;
}

static void prepare(void) { pthread_atfork(NULL, NULL, start_over); }

/* Returns when no thread is before us; false: at the deadline, from one that hangs or has ended in the
 * middle. The turn is ours either way. */
static bool take_turn(uint64_t number, uint64_t end) {
    for (;;) {
        uint64_t before = krex_load_relaxed(&turn);
        bool late = krex_now_ns() > end;
        if ((!before || late) && krex_cas_u64(&turn, before, number))
            return !before;
        if (before)
            krex_futex_wait(&turn, (uint32_t)before, WAIT_SLICE_NS);
    }
}

static void leave_turn(uint64_t number) {
    krex_cas_u64(&turn, number, 0); /* else somebody took it over */
    krex_futex_wake_all(&turn);
}

/* False: at the deadline; or the controller is dead or stuck, and nobody else has a ticket. */
static bool await_ticket(uint64_t number, uint64_t end) {
    const struct krex_board *board = krex_process.board;
    const uint64_t *given = &krex_process.block->ticket;
    for (;;) {
        uint64_t seen = krex_load_acquire(given); /* pairs with krex_block_give_ticket */
        uint64_t now = krex_now_ns();
        if (seen == number) {
            krex_stop_at("ticket-taken");
            return true;
        }
        if (now > end || now > krex_load_relaxed(&board->lease_deadline_ns))
            return false;
        krex_stop_at("ticket-awaited");
        krex_futex_wait(given, (uint32_t)seen, WAIT_SLICE_NS);
    }
}

static void give_back(void) {
    uint64_t number = held;
    held = 0;
    krex_client_send(KREX_WIRE_TICKET_BACK, 0, number, NULL, NULL);
    leave_turn(number);
}

/* False: the wait was too long, and so would be the next. */
static bool take(const char *device_key) {
    uint64_t end = krex_now_ns() + LIMIT_NS;
    held = krex_add_seq_cst(&last_number, 1);
    return take_turn(held, end) && krex_client_send(KREX_WIRE_TICKET, 0, held, device_key, NULL) &&
           await_ticket(held, end);
}

bool krex_context_enter(const char *device_key) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    bool asks = true;
    krex_client_ready(device_key);
    pthread_once(&once, prepare);
    bool mine = krex_heavy_enter(); /* not while it is shut: others can use the ticket */
    while (mine) {
        krex_heavy_leave(mine);
        asks = asks && take(device_key);
        if (krex_heavy_try(&mine))
            break;
        if (held)
            give_back();
        mine = krex_heavy_enter();
    }
    if (!mine && held)
        give_back();
    errno = saved;
    return mine;
}

void krex_context_leave(bool mine) {
    int saved = errno;
    krex_heavy_leave(mine);
    if (mine && held)
        give_back();
    errno = saved;
}
