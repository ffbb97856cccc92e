/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of the simulated device: how they are made and end, memory, code, and what goes wrong.
 */
#include "sim_world.h"

static struct tenant *a = &world.tenants[0], *b = &world.tenants[1];

static void contexts_are_made_one_at_a_time_on_the_whole_machine(void) {
    struct model m = bare_model();
    m.context_ns = 120 * MS;
    begin(&m, 2);
    engine_context(a->client, 0, 0);
    engine_context(b->client, 1, 10 * MS);
    engine_run(world.engine, 120 * MS - 1);
    CHECK(!a->answers);
    engine_run(world.engine, 120 * MS);
    CHECK(a->answers == 1 && a->status == KREX_SIM_OK && a->context && !b->answers);
    engine_run(world.engine, 240 * MS - 1);
    CHECK(!b->answers);
    engine_run(world.engine, 240 * MS);
    CHECK(b->answers == 1 && b->status == KREX_SIM_OK);
    CHECK(world.interval_count == 2 && world.intervals[1].kind == KIND_CONTEXT);
    CHECK(world.intervals[1].arrival_ns == 10 * MS && world.intervals[1].start_ns == 120 * MS);
    end(300 * MS);
}

static void who_dies_while_waiting_for_a_context_holds_nobody_up(void) {
    struct model m = bare_model();
    m.context_ns = 100 * MS;
    begin(&m, 1);
    for (int i = 0; i < 3; i++)
        engine_context(world.tenants[i].client, 0, 0);
    leave(a, 10 * MS); /* its own is being made: that goes on */
    leave(b, 10 * MS); /* its own has not begun */
    engine_run(world.engine, 99 * MS);
    CHECK(engine_has(world.engine, 100) && !engine_has(world.engine, 101));
    engine_run(world.engine, 200 * MS);
    CHECK(world.tenants[2].answers == 1 && !engine_has(world.engine, 100));
    end(300 * MS);
}

static void no_such_device_or_context(void) {
    struct model m = bare_model();
    uint64_t left, all;
    begin(&m, 1);
    engine_context(a->client, 1, 0);
    CHECK(a->answers == 1 && a->status == KREX_SIM_INVALID);
    uint32_t x = new_context(a, 0, 0);
    engine_context_end(b->client, x, 0); /* not its own */
    CHECK(b->answers == 1 && b->status == KREX_SIM_INVALID);
    CHECK(engine_allocate(b->client, x, 1) == KREX_SIM_INVALID);
    CHECK(engine_memory(world.engine, 1, &left, &all) == KREX_SIM_INVALID);
    end(0);
}

static void memory_is_counted(void) {
    struct model m = bare_model();
    uint64_t left, all;
    m.memory_bytes = 1000;
    m.context_bytes = 100;
    m.largest_bytes = 700;
    begin(&m, 2);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    CHECK(engine_allocate(a->client, x, 701) == KREX_SIM_OUT_OF_MEMORY); /* too large by itself */
    CHECK(engine_allocate(a->client, x, 700) == KREX_SIM_OK);
    CHECK(engine_allocate(b->client, y, 101) == KREX_SIM_OUT_OF_MEMORY);
    CHECK(engine_allocate(b->client, y, UINT64_MAX) == KREX_SIM_OUT_OF_MEMORY);
    CHECK(engine_allocate(b->client, y, 100) == KREX_SIM_OK);
    CHECK(engine_memory(world.engine, 0, &left, &all) == KREX_SIM_OK && left == 0 && all == 1000);
    CHECK(engine_memory(world.engine, 1, &left, &all) == KREX_SIM_OK && left == 1000);
    CHECK(engine_release(a->client, x, 701) == KREX_SIM_INVALID);
    CHECK(engine_release(a->client, x, 50) == KREX_SIM_OK);
    engine_context(world.tenants[2].client, 0, 0);
    run_all();
    CHECK(world.tenants[2].status == KREX_SIM_OUT_OF_MEMORY); /* a context needs some too */
    leave(a, 0);
    run_all();
    CHECK(engine_memory(world.engine, 0, &left, &all) == KREX_SIM_OK && left == 800);
    end(0);
}

static void a_context_ends_after_its_work(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    send(a, run(x, 1, 100, 1000));
    uint64_t last = send(a, run(x, 1, 100, 1000));
    engine_context_end(a->client, x, 200);
    CHECK(a->done[send(a, run(x, 1, 300, 1))].status == KREX_SIM_INVALID);
    engine_run(world.engine, 2099);
    CHECK(a->answers == 1);
    engine_run(world.engine, 2100);
    EXPECT_END(a, last, 2100);
    CHECK(a->answers == 2 && a->status == KREX_SIM_OK && !engine_has(world.engine, 100));
    end(3000);
}

static void work_of_the_dead_ends_after_the_teardown(void) {
    struct model m = bare_model();
    m.teardown_ns = 5000;
    m.slice_ns = 1 << 20;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    send(a, run(x, 1, 100, 1000000));
    send(a, run(x, 1, 100, 1000000)); /* not started: it never will be */
    world.interval_count = 0;
    leave(a, 400);
    engine_run(world.engine, 5399);
    CHECK(engine_has(world.engine, 100) && !engine_is_idle(world.engine));
    engine_run(world.engine, 5400);
    CHECK(!engine_has(world.engine, 100) && engine_is_idle(world.engine));
    CHECK(world.interval_count == 1 && world.intervals[0].status == KREX_SIM_ENDED);
    CHECK(world.intervals[0].start_ns == 100 && world.intervals[0].end_ns == 5400);
    CHECK(world.gone == 1);
    end(9000);
}

static void the_dead_without_work_are_gone_at_once(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    send(a, of_kind(KREX_SIM_HOST, x, 1, 100)); /* nobody is left to do it */
    send(a, run(x, 1, 100, 1000));
    engine_run(world.engine, 200);
    leave(a, 400);
    engine_run(world.engine, 400);
    CHECK(!engine_has(world.engine, 100) && world.gone == 1);
    end(9000);
}

static void the_dead_do_not_disturb_whose_turn_comes(void) {
    struct model m = bare_model();
    m.slice_ns = 1000;
    m.switch_ns = 500;
    m.teardown_ns = 0;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    send(a, run(x, 1, 0, 100000));
    uint64_t theirs = send(b, run(y, 1, 0, 3000));
    for (uint64_t at = 0; at < 2000; at += 50) /* a runs, b is coming, b runs */
        engine_run(world.engine, at);
    leave(a, 2000);
    run_all();
    CHECK(is_done(b, theirs));
    end(UINT64_C(1) << 61);
    begin(&m, 1);
    x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    uint64_t mine = send(a, run(x, 1, 0, 3000));
    send(b, run(y, 1, 0, 100000));
    engine_run(world.engine, 1200); /* in the middle of the switch to b */
    leave(b, 1200);
    run_all();
    EXPECT_END(a, mine, 1500 + 2000);
    end(9000);
}

static void code_loads_behind_what_runs_and_a_held_kernel_blocks_it(void) {
    struct model m = bare_model();
    m.load_ns = 100;
    m.load_bytes_per_s = 1000000000;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    engine_load(a->client, x, 900, 50);
    engine_run(world.engine, 1050);
    CHECK(a->answers == 2 && a->status == KREX_SIM_OK);
    struct krex_sim_command held = run(x, 1, 2000, 10);
    held.flags |= KREX_SIM_HELD;
    uint64_t seq = send(a, held);
    engine_load(a->client, x, 900, 2100);
    run_all();
    CHECK(a->answers == 2); /* the deadlock of lazy loading, as a real driver has it */
    host_done(a, seq, 5000);
    engine_run(world.engine, 5999);
    CHECK(a->answers == 2);
    engine_run(world.engine, 6000);
    CHECK(a->answers == 3 && a->status == KREX_SIM_OK);
    end(9000);
}

static void add_rule(struct model *m, const char *text) {
    char line[128];
    (void)snprintf(line, sizeof line, "rule %s", text);
    CHECK(model_line(m, line) == NULL);
}

static void a_faulty_kernel_spoils_its_context_and_no_other(void) {
    struct model m = bare_model();
    add_rule(&m, "500 0 0 0 0 illegal_address bad*");
    m.slice_ns = 100000;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    struct krex_sim_command c = run(x, 1, 100, 0);
    c.flags = 0;
    c.kernel = kernel("bad_one");
    uint64_t bad = send(a, c);
    uint64_t behind = send(a, run(x, 1, 100, 1000));
    uint64_t beside = send(a, run(x, 2, 100, 100000));
    uint64_t other = send(b, run(y, 1, 100, 1000));
    run_all();
    CHECK(a->done[bad].status == KREX_SIM_ILLEGAL_ADDRESS);
    CHECK(a->done[behind].status == KREX_SIM_ILLEGAL_ADDRESS);
    CHECK(a->done[beside].status == KREX_SIM_ILLEGAL_ADDRESS);
    CHECK(a->done[bad].end_ns == a->done[beside].end_ns);
    CHECK(b->done[other].status == KREX_SIM_OK);
    uint64_t later = send(a, run(x, 3, 200000, 10));
    EXPECT_TIMES(a, later, 200000, 200000);
    CHECK(a->done[later].status == KREX_SIM_ILLEGAL_ADDRESS);
    CHECK(engine_allocate(a->client, x, 1) == KREX_SIM_ILLEGAL_ADDRESS);
    engine_load(a->client, x, 1, 200000);
    CHECK(a->status == KREX_SIM_ILLEGAL_ADDRESS);
    end(300000);
    model_free(&m);
}

static void a_hanging_kernel_ends_with_its_process(void) {
    struct model m = bare_model();
    add_rule(&m, "- 0 0 0 0 hang forever");
    m.teardown_ns = 10;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    struct krex_sim_command c = run(x, 1, 100, 0);
    c.flags = 0;
    c.kernel = kernel("forever");
    uint64_t seq = send(a, c);
    host_done(a, seq, 200); /* is no help */
    run_all();
    CHECK(!is_done(a, seq) && engine_next(world.engine) == NEVER);
    leave(a, 700);
    run_all();
    CHECK(engine_is_idle(world.engine) && !engine_has(world.engine, 100));
    end(9000);
    model_free(&m);
}

static void a_lost_device_takes_all_contexts_with_it(void) {
    struct model m = bare_model();
    add_rule(&m, "10 0 0 0 0 lost off");
    add_rule(&m, "10 0 0 0 0 timeout slow");
    begin(&m, 2);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0), z = new_context(b, 1, 0);
    struct krex_sim_command c = run(x, 1, 100, 5);
    c.kernel = kernel("off");
    uint64_t off = send(a, c);
    uint64_t theirs = send(b, run(y, 1, 100, 1000));
    uint64_t elsewhere = send(b, run(z, 1, 100, 1000));
    run_all();
    CHECK(a->done[off].status == KREX_SIM_LOST && b->done[theirs].status == KREX_SIM_LOST);
    CHECK(b->done[elsewhere].status == KREX_SIM_OK);
    engine_context(a->client, 0, 2000);
    CHECK(a->status == KREX_SIM_LOST);
    c = run(z, 1, 3000, 5);
    c.kernel = kernel("slow");
    uint64_t slow = send(b, c);
    run_all();
    CHECK(b->done[slow].status == KREX_SIM_LAUNCH_TIMEOUT);
    end(9000);
    model_free(&m);
}

int main(void) {
    contexts_are_made_one_at_a_time_on_the_whole_machine();
    who_dies_while_waiting_for_a_context_holds_nobody_up();
    no_such_device_or_context();
    memory_is_counted();
    a_context_ends_after_its_work();
    work_of_the_dead_ends_after_the_teardown();
    the_dead_without_work_are_gone_at_once();
    the_dead_do_not_disturb_whose_turn_comes();
    code_loads_behind_what_runs_and_a_held_kernel_blocks_it();
    a_faulty_kernel_spoils_its_context_and_no_other();
    a_hanging_kernel_ends_with_its_process();
    a_lost_device_takes_all_contexts_with_it();
    return 0;
}
