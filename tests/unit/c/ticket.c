/* SPDX-License-Identifier: Apache-2.0
 *
 * Tickets, from the process's side. This test is the controller: it reads what is sent, and answers.
 */
#include "ticket.h"
#include "check.h"
#include "client.h"

static struct krex_board *board;

/* The parts of the shim that this test leaves out. */

static uint64_t asked, returned; /* the last number of each */
static uint32_t connected = 1;
static int answers_block = -1; /* which is given its tickets at once */

bool krex_client_ready(const char *device) { return (void)device, krex_process.generation != 0; }

bool krex_client_send(enum krex_wire_type type, uint32_t slot, uint64_t value, const char *text,
                      const char *text2) {
    (void)slot, (void)text2;
    if (type == KREX_WIRE_TICKET) {
        CHECK(!strcmp(text, "sim:0") && in_flight(board, HEAVY) == 0);
        krex_store_release(&asked, value);
        if (answers_block >= 0)
            krex_block_give_ticket(board, answers_block, value);
    } else {
        CHECK(type == KREX_WIRE_TICKET_BACK);
        krex_store_release(&returned, value);
    }
    return krex_load_relaxed(&connected);
}

/* A thread that makes a context, and stays inside until told. */
struct maker {
    pthread_t thread;
    int32_t tid;
    uint32_t in, mine, stop;
};

static void *make(void *maker) {
    struct maker *m = maker;
    krex_store_release(&m->tid, own_tid());
    m->mine = krex_context_enter("sim:0");
    krex_store_release(&m->in, 1);
    while (!krex_load_acquire(&m->stop))
        krex_futex_wait(&m->stop, 0, UINT64_C(1000000000));
    krex_context_leave(m->mine);
    return NULL;
}

/* Returns the number asked for last before. */
static uint64_t start_making(struct maker *m) {
    uint64_t before = krex_load_acquire(&asked);
    *m = (struct maker){0};
    m->thread = start(make, m);
    return before;
}

static void finish_making(struct maker *m) {
    EVENTUALLY(krex_load_acquire(&m->in));
    krex_store_release(&m->stop, 1);
    krex_futex_wake_all(&m->stop);
    finish(m->thread);
}

static int is_in(struct maker *m) { return (int)krex_load_acquire(&m->in); }
static int announced(void) { return krex_in_flight(board, HEAVY, 0, 0); }
static void give(uint64_t number) { krex_block_give_ticket(board, 0, number); }

static uint64_t next_asked(uint64_t before) {
    EVENTUALLY(krex_load_acquire(&asked) > before);
    return krex_load_acquire(&asked);
}

/* WHEN a thread makes a context THEN it waits for its ticket, unannounced, and gives it back. */
static void one_thread(void) {
    struct maker m;
    uint64_t number = next_asked(start_making(&m));
    EVENTUALLY(is_asleep(krex_load_acquire(&m.tid)));
    give(number + 7); /* an answer to somebody else */
    CHECK(!is_in(&m) && announced() == 0);
    give(number);
    EVENTUALLY(is_in(&m));
    CHECK(m.mine && announced() == 1 && !krex_load_acquire(&returned));
    finish_making(&m);
    CHECK(returned == number && announced() == 0);
}

/* GIVEN a thread that has a ticket THEN another asks only when it is given back. */
static void two_threads(void) {
    struct maker first, second;
    uint64_t number = next_asked(start_making(&first));
    give(number);
    EVENTUALLY(is_in(&first));
    start_making(&second);
    EVENTUALLY(is_asleep(krex_load_acquire(&second.tid)));
    CHECK(krex_load_acquire(&asked) == number && !is_in(&second));
    finish_making(&first);
    give(next_asked(number));
    finish_making(&second);
    CHECK(returned == asked);
}

/* Inside of one, and inside any heavy call, nothing is asked for. */
static void nested(void) {
    uint64_t before = asked;
    bool outer = krex_heavy_enter();
    CHECK(outer && !krex_context_enter("sim:0"));
    krex_context_leave(false);
    krex_heavy_leave(outer);
    CHECK(asked == before && announced() == 0);
}

/* GIVEN a ticket that comes when the gate has shut THEN it goes back, for others can use it, and is
 * asked for again afterwards. */
static void the_gate_shuts_meanwhile(void) {
    struct maker m;
    uint64_t number = next_asked(start_making(&m));
    shut(board, HEAVY);
    give(number);
    EVENTUALLY(krex_load_acquire(&returned) == number);
    EVENTUALLY(is_asleep(krex_load_acquire(&m.tid)));
    CHECK(!is_in(&m) && krex_load_acquire(&asked) == number);
    unshut(board, HEAVY);
    give(next_asked(number));
    finish_making(&m);
    CHECK(returned == asked && returned != number);
}

static void *ask_without_answer(void *unused) {
    (void)unused;
    bool mine = krex_context_enter("sim:0");
    CHECK(mine && krex_in_flight(board, HEAVY, 0, 0) == 1);
    krex_context_leave(mine);
    return NULL;
}

/* GIVEN no controller, or one that has gone or stands still THEN they go without at once. */
static void without_a_controller(void) {
    connected = 0;
    finish(start(ask_without_answer, NULL));
    CHECK(returned == asked);
    connected = 1;
    krex_board_lease(board, 0);
    finish(start(ask_without_answer, NULL));
    CHECK(returned == asked);
    krex_board_lease(board, UINT64_C(3600000000000));
}

/* GIVEN a parent with a ticket WHEN it forks THEN its child has none, and can get one. */
static void forked(void) {
    struct maker m;
    give(next_asked(start_making(&m)));
    EVENTUALLY(is_in(&m));
    pid_t child = fork();
    if (!child) {
        answers_block = attach(board);
        uint64_t before = asked;
        bool mine = krex_context_enter("sim:0");
        CHECK(mine && asked > before);
        krex_context_leave(mine);
        CHECK(returned == asked);
        _exit(0);
    }
    expect_success(child);
    finish_making(&m);
}

int main(void) {
    CHECK(!krex_context_enter("sim:0")); /* not attached */
    board = attached_board();
    one_thread();
    two_threads();
    nested();
    the_gate_shuts_meanwhile();
    without_a_controller();
    forked();
    return 0;
}
