/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a program's CUDA work is outstanding: the drain is asked after each step. Each test is a
 * process of its own, which starts with a driver that nobody has used yet.
 */
#include "cuda_driver.h"

static struct krex_board *board;

/* The program. */

static void given_context(int i) {
    fake_contexts[i] = (struct fake_context){.alive = true, .life = fake_contexts[i].life + 1};
    fake_streams[i].in = &fake_contexts[i];
    krex_cu_context_made(context(i), KREX_CU_NO_PRIMARY);
}

static void run(int i) {
    pthread_mutex_lock(&driver_lock);
    fake_contexts[i].submitted++;
    pthread_mutex_unlock(&driver_lock);
}

static void complete(int i) {
    pthread_mutex_lock(&driver_lock);
    fake_contexts[i].complete = fake_contexts[i].submitted;
    pthread_mutex_unlock(&driver_lock);
}

static void destroy(int i) {
    krex_gpu_context_ending(&krex_cu_gpu, context(i));
    fake_contexts[i].alive = false;
    krex_gpu_context_ended(&krex_cu_gpu, context(i), true);
}

static uint64_t begin(int i) {
    uint64_t token = krex_capture_enter();
    krex_capture_begun(&krex_cu_gpu, token, stream(i), begin_capture(stream(i)) == CUDA_SUCCESS);
    return token;
}

static CUresult end(int i, CUresult unless) {
    CUresult r = end_capture(stream(i), unless);
    krex_capture_ended(&krex_cu_gpu, stream(i), r == CUDA_SUCCESS);
    return r;
}

static void destroy_stream(int i) {
    fake_streams[i].status = CU_STREAM_CAPTURE_STATUS_NONE;
    krex_capture_stream_destroyed(&krex_cu_gpu, stream(i));
}

static int open_captures(void) { return krex_long_open(board, 0x7fff); }

static bool drained(void) {
    krex_gpu_drain_begin(&krex_cu_gpu);
    bool is = krex_gpu_drain_done(&krex_cu_gpu);
    CHECK(!current); /* nothing is left current in the drainer */
    return is;
}

static bool is_left_alone(void) {
    int before = calls;
    return !drained() && calls == before;
}

/* The contexts. */

static void no_context(void) { CHECK(drained() && calls == 0); }

static void one_context(void) {
    given_context(0);
    CHECK(drained());
    run(0);
    CHECK(!drained());
    complete(0);
    CHECK(drained() && drained());
    CHECK(events_made == 1);
}

/* GIVEN a drain WHEN more is submitted after its event THEN it is for the next one. */
static void what_comes_later(void) {
    given_context(0);
    run(0);
    krex_gpu_drain_begin(&krex_cu_gpu);
    complete(0);
    run(0);
    CHECK(krex_gpu_drain_done(&krex_cu_gpu));
    CHECK(!drained());
}

static void several_contexts(void) {
    given_context(0);
    given_context(1);
    given_context(1);
    krex_cu_context_made(context(1), KREX_CU_NO_PRIMARY);
    run(1);
    CHECK(!drained());
    run(0);
    complete(1);
    CHECK(!drained());
    complete(0);
    CHECK(drained());
}

static void green_ones(void) {
    given_context(0);
    fake_contexts[1].alive = true;
    fake_contexts[0].covers = &fake_contexts[1];
    run(1);
    CHECK(!drained());
    complete(1);
    CHECK(drained());
}

static void primary_ones(void) {
    given_context(0);
    given_context(1);
    CHECK(!krex_cu_primary_of(0));
    krex_cu_context_made(context(1), 0);
    krex_cu_context_made(context(1), KREX_CU_NO_PRIMARY); /* seen again, by who does not know */
    CHECK(krex_cu_primary_of(0) == context(1) && !krex_cu_primary_of(1));
    destroy(1);
    CHECK(!krex_cu_primary_of(0));
}

/* GIVEN work in a context that nobody could name THEN the process is never drained. */
static void unknown_work(void) {
    given_context(0);
    krex_cu_context_made(NULL, KREX_CU_NO_PRIMARY);
    CHECK(!drained() && !drained());
}

/* GIVEN a call that may destroy it THEN the context is left alone, and not drained, until it is over. */
static void a_context_that_ends(void) {
    given_context(0);
    given_context(1);
    CHECK(drained());
    krex_gpu_context_ending(&krex_cu_gpu, context(0));
    destroy(1);
    CHECK(is_left_alone());
    krex_gpu_context_ended(&krex_cu_gpu, context(0), false);
    CHECK(drained());
    destroy(0);
    int before = calls;
    CHECK(drained() && calls == before);
    krex_gpu_context_ending(&krex_cu_gpu, NULL);
    krex_gpu_context_ended(&krex_cu_gpu, NULL, true);
    given_context(0); /* the handle comes back */
    run(0);
    CHECK(!drained());
    complete(0);
    CHECK(drained());
}

/* GIVEN a call that destroys it WHEN another thread is handed its successor, with the same handle, before
 * that call tells of the end THEN the successor is not forgotten. */
static void a_context_that_is_made_again_meanwhile(void) {
    given_context(0);
    CHECK(drained());
    krex_gpu_context_ending(&krex_cu_gpu, context(0));
    given_context(0);
    run(0);
    krex_gpu_context_ended(&krex_cu_gpu, context(0), true);
    CHECK(!drained() && events_made == 2);
    complete(0);
    CHECK(drained());
    destroy(0);
    fake_contexts[0].alive = true;
    run(0);
    CHECK(drained()); /* nobody has told of this one */
}

/* GIVEN a context that ended, or was made anew, and nobody told us THEN that is no trouble. */
static void a_context_that_ends_unseen(void) {
    given_context(0);
    run(0);
    CHECK(!drained());
    fake_contexts[0].alive = false;
    CHECK(drained());
    given_context(0);
    run(0);
    CHECK(!drained());
    complete(0);
    CHECK(drained() && events_made == 2);
}

static void a_context_with_a_fault(void) {
    given_context(0);
    given_context(1);
    run(0);
    run(1);
    CHECK(!drained());
    fake_contexts[0].fault = ILLEGAL_ADDRESS; /* before its event */
    CHECK(!drained());
    complete(1);
    CHECK(drained());
    run(1);
    krex_gpu_drain_begin(&krex_cu_gpu);
    fake_contexts[1].fault = LAUNCH_FAILED; /* after it */
    CHECK(krex_gpu_drain_done(&krex_cu_gpu));
}

static void a_driver_that_says_something_else(void) {
    given_context(0);
    record_says = CUDA_ERROR_DEINITIALIZED;
    CHECK(!drained());
    record_says = CUDA_ERROR_NOT_INITIALIZED;
    CHECK(!drained());
    record_says = CUDA_SUCCESS;
    CHECK(drained());
}

/* Without an event for a whole context. */

static void *drain_once(void *is_drained) {
    krex_store_release((uint32_t *)is_drained, drained());
    return NULL;
}

/* GIVEN such a driver THEN the drainer waits in it, and not when the drain begins. */
static void waiting_in_the_driver(void) {
    uint32_t is_drained = 0;
    given_context(0);
    CHECK(drained());
    run(0);
    krex_gpu_drain_begin(&krex_cu_gpu);
    pthread_t drainer = start(drain_once, &is_drained);
    EVENTUALLY(krex_load_acquire(&in_synchronize));
    CHECK(!krex_load_acquire(&is_drained));
    complete(0);
    finish(drainer);
    CHECK(is_drained && drained());
}

static void no_such_event(void) {
    has_record = false;
    waiting_in_the_driver();
    CHECK(!events_made);
}

/* GIVEN such a driver WHEN a holder is only asked THEN nobody waits in it, and it is not idle. */
static void a_question_does_not_wait(void) {
    has_record = false;
    given_context(0);
    run(0);
    krex_gpu_drain_reset(&krex_cu_gpu, true);
    CHECK(!krex_gpu_drain_advance(&krex_cu_gpu) && !in_synchronize);
    complete(0);
    CHECK(!krex_gpu_drain_advance(&krex_cu_gpu));
    krex_gpu_drain_reset(&krex_cu_gpu, false);
    CHECK(krex_gpu_drain_advance(&krex_cu_gpu));
}

static void such_an_event_is_not_supported(void) {
    record_says = CUDA_ERROR_NOT_SUPPORTED;
    waiting_in_the_driver();
    CHECK(events_made == 1);
}

static int32_t destroyer_tid;
static uint32_t is_destroyed;

static void *destroy_0(void *unused) {
    (void)unused;
    krex_store_release(&destroyer_tid, own_tid());
    krex_gpu_context_ending(&krex_cu_gpu, context(0));
    krex_store_release(&is_destroyed, 1);
    krex_gpu_context_ended(&krex_cu_gpu, context(0), true);
    return NULL;
}

/* GIVEN a drainer that waits in the driver WHEN its context is destroyed THEN that waits for it. */
static void destroyed_meanwhile(void) {
    uint32_t is_drained = 0;
    has_record = false;
    given_context(0);
    run(0);
    pthread_t drainer = start(drain_once, &is_drained);
    EVENTUALLY(krex_load_acquire(&in_synchronize));
    pthread_t destroyer = start(destroy_0, NULL);
    EVENTUALLY(is_asleep(krex_load_acquire(&destroyer_tid)));
    CHECK(!krex_load_acquire(&is_destroyed));
    complete(0);
    finish(drainer);
    finish(destroyer);
    CHECK(drained());
}

/* Captures. */

/* GIVEN an open capture THEN nothing is asked of the driver, and the process is not drained. */
static void a_capture_is_open(void) {
    given_context(0);
    CHECK(drained());
    begin(0);
    CHECK(open_captures() == 1 && is_left_alone());
    CHECK(end(0, CUDA_SUCCESS) == CUDA_SUCCESS && open_captures() == 0);
    CHECK(drained());
}

/* The negative twin: a drain that does not look invalidates it, in this driver as by cuda.h. */
static void a_careless_drain(void) {
    CUevent event;
    given_context(0);
    begin(0);
    CHECK(set_current(context(0)) == CUDA_SUCCESS && create_event(&event, 2) == CUDA_SUCCESS);
    CHECK(record_event(context(0), event) == CAPTURE_UNSUPPORTED);
    CHECK(end(0, CUDA_SUCCESS) == CAPTURE_INVALIDATED);
    CHECK(open_captures() == 0);
}

/* WHEN one is opened between a drain's event and its query THEN it is not drained before the end. */
static void a_capture_in_the_middle(void) {
    given_context(0);
    run(0);
    krex_gpu_drain_begin(&krex_cu_gpu);
    begin(0);
    complete(0);
    int before = calls;
    CHECK(!krex_gpu_drain_done(&krex_cu_gpu) && calls == before);
    CHECK(end(0, CUDA_SUCCESS) == CUDA_SUCCESS);
    CHECK(krex_gpu_drain_done(&krex_cu_gpu));
}

static pthread_t capturer;
static int32_t capturer_tid;
static uint32_t has_begun, may_end;

static void *capture(void *unused) {
    (void)unused;
    krex_store_release(&capturer_tid, own_tid());
    begin(0);
    krex_store_release(&has_begun, 1);
    EVENTUALLY(krex_load_acquire(&may_end));
    CHECK(end(0, CUDA_SUCCESS) == CUDA_SUCCESS);
    return NULL;
}

static void begin_while_the_drainer_records(void) {
    capturer = start(capture, NULL);
    EVENTUALLY(is_asleep(krex_load_acquire(&capturer_tid)));
    CHECK(!krex_load_acquire(&has_begun));
}

/* GIVEN open gates, as after a request that was withdrawn WHEN a capture begins while the drainer is
 * about to record its event THEN it waits for that, and is not invalidated. */
static void a_capture_that_begins_meanwhile(void) {
    given_context(0);
    run(0);
    in_record = begin_while_the_drainer_records;
    krex_gpu_drain_begin(&krex_cu_gpu);
    EVENTUALLY(krex_load_acquire(&has_begun));
    complete(0);
    CHECK(!krex_gpu_drain_done(&krex_cu_gpu));
    krex_store_release(&may_end, 1);
    finish(capturer);
    CHECK(krex_gpu_drain_done(&krex_cu_gpu));
}

static int steps, turn; /* of the drainer; the one to begin at */

static void on_step(int number) {
    (void)number;
    if (++steps != turn)
        return;
    capturer_tid = 0;
    has_begun = may_end = 0;
    capturer = start(capture, NULL);
    EVENTUALLY(krex_load_acquire(&has_begun) || is_asleep(krex_load_acquire(&capturer_tid)));
}

/* The same at every instruction of the drainer's. */
static void a_capture_at_every_step(void) {
    if (!can_step())
        return;
    handle(SIGTRAP, on_step);
    given_context(0);
    CHECK(drained());
    for (int length = 1; turn < length; turn += 1 + length / 300) {
        steps = 0;
        set_trap_flag();
        krex_gpu_drain_begin(&krex_cu_gpu);
        clear_trap_flag();
        length = steps;
        krex_store_release(&may_end, 1);
        if (turn)
            finish(capturer);
        CHECK(drained());
    }
    CHECK(turn > 50);
}

/* GIVEN a capture that no hook has seen WHEN the driver refuses THEN it is not asked again. */
static void a_capture_that_nobody_told(void) {
    given_context(0);
    given_context(1);
    CHECK(begin_capture(stream(0)) == CUDA_SUCCESS);
    krex_gpu_drain_begin(&krex_cu_gpu);
    CHECK(end_capture(stream(0), CUDA_SUCCESS) == CAPTURE_INVALIDATED);
    CHECK(begin_capture(stream(0)) == CUDA_SUCCESS);
    CHECK(!krex_gpu_drain_done(&krex_cu_gpu) && !krex_gpu_drain_done(&krex_cu_gpu));
    CHECK(end_capture(stream(0), CUDA_SUCCESS) == CUDA_SUCCESS);
    CHECK(drained());
}

static void *end_0(void *unused) {
    (void)unused;
    CHECK(end(0, CUDA_SUCCESS) == WRONG_THREAD);
    return NULL;
}

/* When it has ended, whatever the call that ended it has said. */
static void ends_of_captures(void) {
    given_context(0);
    begin(0);
    begin(0); /* fails */
    CHECK(open_captures() == 1);
    finish(start(end_0, NULL));
    CHECK(open_captures() == 1);
    CHECK(end(1, CUDA_SUCCESS) != CUDA_SUCCESS && open_captures() == 1); /* never began */
    CHECK(end(0, CAPTURE_UNJOINED) == CAPTURE_UNJOINED && open_captures() == 0);
    begin(0);
    destroy_stream(1);
    CHECK(open_captures() == 1);
    destroy_stream(0);
    CHECK(open_captures() == 0 && drained());
}

/* GIVEN captures in a context WHEN it is destroyed THEN they are gone, and those elsewhere are not. */
static void captures_end_with_their_context(void) {
    given_context(0);
    given_context(1);
    set_current(context(0));
    begin(0);
    begin(2);
    set_current(context(1));
    begin(1);
    set_current(NULL);
    destroy(0);
    CHECK(open_captures() == 1);
    destroy(1);
    CHECK(open_captures() == 0);
}

static void *end_per_thread(void *unused) {
    (void)unused;
    krex_capture_ended(&krex_cu_gpu, CU_STREAM_PER_THREAD, true); /* of another thread's stream */
    CHECK(open_captures() == 1);
    krex_capture_begun(&krex_cu_gpu, krex_capture_enter(), CU_STREAM_PER_THREAD, true);
    CHECK(open_captures() == 2);
    krex_capture_ended(&krex_cu_gpu, CU_STREAM_PER_THREAD, true);
    CHECK(open_captures() == 1);
    return NULL;
}

static void per_thread_streams(void) {
    krex_capture_begun(&krex_cu_gpu, krex_capture_enter(), CU_STREAM_PER_THREAD, true);
    finish(start(end_per_thread, NULL));
    krex_capture_ended(&krex_cu_gpu, CU_STREAM_PER_THREAD, true);
    CHECK(open_captures() == 0);
}

/* Processes. */

/* GIVEN a process with work and an open capture WHEN it forks THEN neither is its child's. */
static void forked(void) {
    given_context(0);
    run(0);
    begin(0);
    CHECK(!drained());
    pid_t child = fork();
    if (!child) {
        int before = calls;
        CHECK(drained() && calls == before);
        attach(board);
        end(0, CUDA_SUCCESS);
        CHECK(krex_process.block->overflow_heavy == 0);
        execl("/bin/true", "true", NULL); /* _exit would call its parent's lists a leak */
    }
    expect_success(child);
    CHECK(open_captures() == 1);
    CHECK(end(0, CUDA_SUCCESS) == CUDA_SUCCESS);
    complete(0);
    CHECK(drained());
}

/* Runs after the drain's own handler. */
static void last_handler(void) {
    CHECK(krex_exiting && is_left_alone());
    _exit(0);
}

static void exiting(void) {
    atexit(last_handler);
    given_context(0);
    CHECK(drained());
    exit(1);
}

static void alone(void (*test)(void)) {
    pid_t child = fork();
    if (!child) {
        board = attached_board();
        test();
        CHECK(warnings == 0);
        _exit(0);
    }
    expect_success(child);
}

int main(void) {
    static void (*const tests[])(void) = {
        no_context,
        one_context,
        what_comes_later,
        several_contexts,
        green_ones,
        primary_ones,
        unknown_work,
        a_context_that_ends,
        a_context_that_is_made_again_meanwhile,
        a_context_that_ends_unseen,
        a_context_with_a_fault,
        a_driver_that_says_something_else,
        no_such_event,
        a_question_does_not_wait,
        such_an_event_is_not_supported,
        destroyed_meanwhile,
        a_capture_is_open,
        a_careless_drain,
        a_capture_in_the_middle,
        a_capture_that_begins_meanwhile,
        a_capture_at_every_step,
        a_capture_that_nobody_told,
        ends_of_captures,
        captures_end_with_their_context,
        per_thread_streams,
        forked,
        exiting,
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        alone(tests[i]);
    return 0;
}
