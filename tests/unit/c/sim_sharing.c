/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated device when it is shared: turns between contexts, kernels that run at once, copies.
 */
#include "sim_world.h"

static struct tenant *a = &world.tenants[0], *b = &world.tenants[1];

static void contexts_take_turns(void) {
    struct model m = bare_model();
    m.slice_ns = 2 * MS;
    m.switch_ns = MS / 10;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    uint64_t mine = send(a, run(x, 1, 0, 3 * MS));
    uint64_t theirs = send(b, run(y, 1, 0, 3 * MS));
    run_all();
    /* a: 0 to 2; b: 2.1 to 4.1; a: 4.2 to 5.2; b: 5.3 to 6.3 */
    EXPECT_TIMES(a, mine, 0, 52 * MS / 10);
    EXPECT_TIMES(b, theirs, 0, 63 * MS / 10);
    end(10 * MS);
}

static void who_comes_later_waits_for_the_end_of_a_slice_at_most(void) {
    struct model m = bare_model();
    m.slice_ns = 2 * MS;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    uint64_t mine = send(a, run(x, 1, 0, 20 * MS));
    uint64_t in_its_slice = send(b, run(y, 1, MS, MS));
    uint64_t behind_it = send(b, run(y, 1, 10 * MS, MS));
    run_all();
    EXPECT_END(b, in_its_slice, 3 * MS); /* a had the device from 0 to 2 */
    EXPECT_END(b, behind_it, 11 * MS);   /* a had it for longer than a slice */
    EXPECT_END(a, mine, 22 * MS);
    end(50 * MS);
}

static void a_context_keeps_its_turn_from_one_kernel_to_the_next(void) {
    struct model m = bare_model();
    m.slice_ns = 2 * MS;
    m.switch_ns = MS;
    m.gap_ns = 1000;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    uint64_t last = 0;
    for (int i = 0; i < 10; i++)
        last = send(a, run(x, 1, 0, 9000));
    send(b, run(y, 1, 10, 9000));
    run_all();
    EXPECT_END(a, last, 10 * 9000 + 9 * 1000);
    end(50 * MS);
}

static void a_switch_costs_only_who_made_another_wait(void) {
    struct model m = bare_model();
    m.switch_ns = MS;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    send(a, run(x, 1, 0, 1000));
    uint64_t apart = send(b, run(y, 1, 5000, 1000));
    run_all();
    EXPECT_TIMES(b, apart, 5000, 6000);
    end(10 * MS);
}

static void kernels_of_one_context_run_at_once_and_slow_each_other(void) {
    struct model m = bare_model();
    m.stream_slowdown_ppm = 500000;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    uint64_t one = send(a, run(x, 1, 0, 3000));
    uint64_t two = send(a, run(x, 2, 1000, 1000));
    run_all();
    /* Alone to 1000; both at 2/3 of their speed to 2500; then alone again. */
    EXPECT_TIMES(a, two, 1000, 2500);
    EXPECT_TIMES(a, one, 0, 3500);
    end(10 * MS);
}

static void contexts_run_at_once_where_they_are_to(void) {
    struct model m = bare_model();
    m.sharing = SHARING_CONCURRENT;
    m.context_slowdown_ppm = 1000000;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    uint64_t one = send(a, run(x, 1, 0, 3000));
    uint64_t two = send(b, run(y, 1, 0, 1000));
    run_all();
    EXPECT_END(b, two, 2000);
    EXPECT_END(a, one, 4000);
    end(10 * MS);
}

static void what_is_shared_is_exact_again_when_it_is_alone(void) {
    struct model m = bare_model();
    m.stream_slowdown_ppm = 333333; /* leaves fractions */
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    for (uint32_t s = 1; s < 8; s++)
        send(a, run(x, s, UINT64_C(10) * s, UINT64_C(1001) * s));
    run_all();
    uint64_t alone = send(a, run(x, 1, MS, 123457));
    run_all();
    EXPECT_TIMES(a, alone, MS, MS + 123457);
    end(10 * MS);
}

static struct krex_sim_command copy(uint32_t kind, uint32_t context, uint32_t stream, uint64_t at,
                                    uint64_t bytes) {
    struct krex_sim_command c = of_kind(kind, context, stream, at);
    c.amount = bytes;
    return c;
}

static void copies_queue_by_direction_for_all_contexts(void) {
    struct model m = bare_model();
    m.copy_ns = 10;
    m.to_bytes_per_s = m.from_bytes_per_s = 1000000000; /* a byte a nanosecond */
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(b, 0, 0);
    uint64_t to = send(a, copy(KREX_SIM_COPY_TO, x, 1, 0, 1000));
    uint64_t from = send(a, copy(KREX_SIM_COPY_FROM, x, 2, 0, 500));
    uint64_t behind = send(b, copy(KREX_SIM_COPY_TO, y, 1, 5, 90));
    run_all();
    EXPECT_TIMES(a, to, 0, 1010);
    EXPECT_TIMES(a, from, 0, 510);
    EXPECT_TIMES(b, behind, 1010, 1110);
    end(10 * MS);
}

static void copies_and_kernels_slow_each_other(void) {
    struct model m = bare_model();
    m.to_bytes_per_s = 1000000000;
    m.kernel_beside_copy_ppm = 100000;
    m.copy_beside_kernel_ppm = 200000;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    uint64_t kernel = send(a, run(x, 1, 0, 22000));
    uint64_t to = send(a, copy(KREX_SIM_COPY_TO, x, 2, 0, 10000));
    run_all();
    EXPECT_END(a, to, 12000);
    /* Slowed by 1.1 while the copy lasted, which took 12000 of its time. */
    CHECK(a->done[kernel].end_ns >= 23090 && a->done[kernel].end_ns <= 23092);
    end(10 * MS);
}

static void fills_and_copies_within_count_as_kernels(void) {
    struct model m = bare_model();
    m.memory_bytes_per_s = 1000000000;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    uint64_t fill = send(a, copy(KREX_SIM_FILL, x, 1, 0, 100));
    uint64_t within = send(a, copy(KREX_SIM_COPY_WITHIN, x, 1, 0, 100)); /* reads and writes */
    run_all();
    EXPECT_TIMES(a, fill, 0, 100);
    EXPECT_TIMES(a, within, 100, 300);
    end(10 * MS);
}

static void what_is_on_the_device_is_reported(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    world.interval_count = 0;
    send(a, of_kind(KREX_SIM_EVENT, x, 1, 5));
    uint64_t seq = send(a, run(x, 3, 10, 100));
    run_all();
    CHECK(world.interval_count == 1);
    const struct interval *i = &world.intervals[0];
    CHECK(i->pid == 100 && i->context == x && i->device == 0 && i->stream == 3 && i->seq == seq);
    CHECK(i->arrival_ns == 10 && i->start_ns == 10 && i->end_ns == 110);
    CHECK(i->status == KREX_SIM_OK && i->kind == KREX_SIM_RUN && !strcmp(i->name, "spin"));
    send(a, run(x, 3, 1000, 100));
    engine_run(world.engine, 1050);
    engine_report_running(world.engine, 1060);
    CHECK(world.interval_count == 2 && world.intervals[1].status == STATUS_RUNNING);
    CHECK(world.intervals[1].end_ns == 1060);
    end(10 * MS);
}

int main(void) {
    contexts_take_turns();
    who_comes_later_waits_for_the_end_of_a_slice_at_most();
    a_context_keeps_its_turn_from_one_kernel_to_the_next();
    a_switch_costs_only_who_made_another_wait();
    kernels_of_one_context_run_at_once_and_slow_each_other();
    contexts_run_at_once_where_they_are_to();
    what_is_shared_is_exact_again_when_it_is_alone();
    copies_queue_by_direction_for_all_contexts();
    copies_and_kernels_slow_each_other();
    fills_and_copies_within_count_as_kernels();
    what_is_on_the_device_is_reported();
    return 0;
}
