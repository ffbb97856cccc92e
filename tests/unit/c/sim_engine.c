/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated device's order and times: what waits for what, and that a duration is exact however
 * late, and in whatever portions, the model hears of the commands.
 */
#include "sim_world.h"

static struct tenant *a = &world.tenants[0];

static void streams_keep_order_and_run_beside_each_other(void) {
    struct model m = bare_model();
    m.stream_slowdown_ppm = 0;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    uint64_t first = send(a, run(x, 1, 1000, 500));
    uint64_t second = send(a, run(x, 1, 1010, 300));
    uint64_t other = send(a, run(x, 2, 1020, 10));
    run_all();
    EXPECT_TIMES(a, first, 1000, 1500);
    EXPECT_TIMES(a, second, 1500, 1800);
    EXPECT_TIMES(a, other, 1020, 1030);
    end(5000);
}

static void late_commands_get_the_times_that_they_would_have_had(void) {
    struct model m = bare_model();
    m.gap_ns = 40;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    /* One at a time, each after the one before it is over and done with. */
    uint64_t first = send(a, run(x, 1, 1000, 500));
    run_all();
    uint64_t second = send(a, run(x, 1, 1010, 300)); /* stamped while the first one ran */
    run_all();
    uint64_t mark = send(a, of_kind(KREX_SIM_EVENT, x, 1, 1020));
    uint64_t third = send(a, run(x, 1, 1850, 7)); /* less than the gap behind the second */
    run_all();
    EXPECT_TIMES(a, first, 1000, 1500);
    EXPECT_TIMES(a, second, 1540, 1840);
    EXPECT_TIMES(a, mark, 1840, 1840);
    EXPECT_TIMES(a, third, 1880, 1887);
    end(5000);
}

/* The same commands, told in portions of different size; a digest of all times. */
static uint64_t times_of_a_mix(uint64_t portion) {
    struct model m = bare_model();
    uint64_t digest = 0, random = 12345;
    m.gap_ns = 1500;
    m.copy_ns = 700;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), y = new_context(&world.tenants[1], 0, 0);
    for (uint64_t i = 0; i < 900; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        struct tenant *t = &world.tenants[(random >> 40) & 1];
        struct krex_sim_command c = run(t == a ? x : y, (uint32_t)(random >> 50) % 5,
                                        1000 + i * 400, (random >> 33) % 9000);
        if ((random >> 60) < 6)
            c = of_kind(KREX_SIM_COPY_TO + (uint32_t)(random >> 45) % 5, c.context, c.stream,
                        c.arrival_ns);
        c.amount = (random >> 33) % 9000;
        c.flags |= (random >> 55) & 4 ? KREX_SIM_BLOCKING : 0;
        if (c.kind == KREX_SIM_HOST)
            c.kind = KREX_SIM_EVENT;
        send(t, c);
        if (portion && i % portion == 0)
            engine_run(world.engine, c.arrival_ns);
    }
    run_all();
    for (int i = 0; i < 2; i++)
        for (uint64_t seq = 1; seq <= world.tenants[i].seq; seq++) {
            CHECK(is_done(&world.tenants[i], seq));
            digest = digest * 31 + world.tenants[i].done[seq].start_ns;
            digest = digest * 31 + world.tenants[i].done[seq].end_ns;
        }
    end(NEVER / 2);
    return digest;
}

static void portions_do_not_matter(void) {
    uint64_t whole = times_of_a_mix(0);
    CHECK(times_of_a_mix(1) == whole);
    CHECK(times_of_a_mix(37) == whole);
}

static void legacy_and_blocking_streams_wait_for_each_other(void) {
    struct model m = bare_model();
    m.stream_slowdown_ppm = 0;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    struct krex_sim_command blocking = run(x, 1, 100, 1000);
    blocking.flags |= KREX_SIM_BLOCKING;
    uint64_t before = send(a, blocking);
    uint64_t aside =
        send(a, run(x, 2, 100, 5000)); /* not blocking: of no concern to the legacy one */
    uint64_t legacy = send(a, run(x, 0, 100, 50));
    blocking.stream = 3;
    uint64_t behind = send(a, blocking);
    uint64_t free_one = send(a, run(x, 4, 100, 10));
    run_all();
    EXPECT_TIMES(a, before, 100, 1100);
    EXPECT_TIMES(a, aside, 100, 5100);
    EXPECT_TIMES(a, legacy, 1100, 1150);
    EXPECT_TIMES(a, behind, 1150, 2150);
    EXPECT_TIMES(a, free_one, 100, 110);
    end(9000);
}

static void all_is_behind_everything_before_and_nothing_after(void) {
    struct model m = bare_model();
    m.stream_slowdown_ppm = 0;
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    send(a, run(x, 1, 100, 1000));
    send(a, run(x, 2, 100, 2000));
    struct krex_sim_command all = of_kind(KREX_SIM_EVENT, x, 9, 100);
    all.flags |= KREX_SIM_ALL;
    uint64_t event = send(a, all);
    send(a, run(x, 1, 100, 9000));
    run_all();
    EXPECT_END(a, event, 2100);
    end(99999);
}

static void after_waits_for_what_it_names_across_contexts_and_devices(void) {
    struct model m = bare_model();
    begin(&m, 2);
    uint32_t x = new_context(a, 0, 0), y = new_context(a, 1, 0);
    uint64_t first = send(a, run(x, 1, 100, 1000));
    struct krex_sim_command c = run(y, 1, 100, 10);
    c.after[0] = first;
    c.after[1] = 77777; /* nothing of that name: not waited for */
    uint64_t second = send(a, c);
    run_all();
    EXPECT_TIMES(a, second, 1100, 1110);
    end(5000);
}

static void devices_do_not_hold_each_other_up(void) {
    struct model m = bare_model();
    begin(&m, 2);
    uint32_t x = new_context(a, 0, 0), y = new_context(a, 1, 0);
    send(a, run(x, 1, 90000, 1000));
    run_all(); /* device 0 is at 91000 */
    uint64_t late = send(a, run(y, 1, 500, 10));
    run_all();
    EXPECT_TIMES(a, late, 500, 510);
    end(100000);
}

static void a_host_function_holds_its_stream_until_it_is_done(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    uint64_t host = send(a, of_kind(KREX_SIM_HOST, x, 1, 100));
    uint64_t behind = send(a, run(x, 1, 110, 10));
    run_all();
    CHECK(a->turn[host].what == KREX_SIM_YOUR_TURN && a->turn[host].start_ns == 100);
    CHECK(!is_done(a, host) && !is_done(a, behind));
    host_done(a, host, 7000);
    run_all();
    EXPECT_TIMES(a, host, 100, 7000);
    EXPECT_TIMES(a, behind, 7000, 7010);
    end(9000);
}

static void a_held_kernel_ends_when_it_may_and_its_time_is_over(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    struct krex_sim_command held = run(x, 1, 100, 1000);
    held.flags |= KREX_SIM_HELD;
    uint64_t early = send(a, held);
    engine_run(world.engine, 100);
    CHECK(a->turn[early].what == KREX_SIM_YOUR_TURN);
    host_done(a, early, 300);
    run_all();
    EXPECT_TIMES(a, early, 100, 1100);
    held.arrival_ns = 2000;
    uint64_t late = send(a, held);
    run_all();
    CHECK(!is_done(a, late) && !engine_is_idle(world.engine));
    host_done(a, late, 8000);
    run_all();
    EXPECT_TIMES(a, late, 2000, 8000);
    end(9000);
}

static void an_improper_client_is_told_apart(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0), theirs = new_context(&world.tenants[1], 0, 0);
    struct krex_sim_command c = run(x, 1, 100, 10);
    uint64_t good = send(a, c);
    c.seq = good; /* again */
    CHECK(!engine_submit(a->client, &c));
    c.seq = 0;
    CHECK(!engine_submit(a->client, &c));
    c.seq = ++a->seq;
    c.kind = 99;
    CHECK(!engine_submit(a->client, &c));
    c = run(theirs, 1, 100, 10);
    CHECK(a->done[send(a, c)].status == KREX_SIM_INVALID);
    c = run(x, 1, 100, 10);
    c.kernel = 12345;
    CHECK(a->done[send(a, c)].status == KREX_SIM_INVALID);
    host_done(a, 4711, 100);
    end(500);
}

static void more_than_the_launch_queue_holds_is_improper(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    for (int i = 0; i < KREX_SIM_RING; i++)
        send(a, run(x, 1, 100, 10));
    struct krex_sim_command c = run(x, 1, 100, 10);
    c.seq = a->seq + 1;
    CHECK(!engine_submit(a->client, &c));
    end(500);
}

static void streams_that_are_no_longer_used_take_no_room(void) {
    struct model m = bare_model();
    begin(&m, 1);
    uint32_t x = new_context(a, 0, 0);
    int count = rounds(100000);
    for (int i = 1; i < count; i++) {
        uint64_t at = 1000 * (uint64_t)i;
        uint64_t seq = send(a, run(x, (uint32_t)i, at, 10));
        engine_run(world.engine, at + 10);
        EXPECT_END(a, seq, at + 10);
    }
    end(NEVER / 2);
}

/* Sixteen processes, their launch queues full, in many streams with all kinds of dependencies. */
static void a_million_commands_take_seconds(void) {
    struct model m;
    model_default(&m);
    m.context_ns = 0;
    begin(&m, 1);
    uint32_t context[CLIENTS];
    uint64_t each = (uint64_t)rounds(1000000) / CLIENTS, sent = 0;
    for (int i = 0; i < CLIENTS; i++)
        context[i] = new_context(&world.tenants[i], 0, 0);
    for (uint64_t n = 0; n < each; n++) {
        for (int i = 0; i < CLIENTS; i++, sent++) {
            struct tenant *t = &world.tenants[i];
            struct krex_sim_command c = run(context[i], (uint32_t)(n % 7), 1000 + n, 100 + n % 50);
            c.flags |= n % 3 ? KREX_SIM_BLOCKING : 0;
            if (n % 11 == 0)
                c.kind = KREX_SIM_EVENT;
            if (n % 13 == 0)
                c.kind = KREX_SIM_COPY_TO;
            if (n % 101 == 0)
                c.flags |= KREX_SIM_ALL;
            c.after[0] = t->seq > 3 ? t->seq - 3 : 0;
            while (t->seq >= KREX_SIM_RING - 1 && !is_done(t, t->seq - (KREX_SIM_RING - 2)))
                engine_run(world.engine, engine_next(world.engine));
            send(t, c);
        }
    }
    run_all();
    CHECK(world.results == sent);
    end(NEVER / 2);
}

int main(void) {
    streams_keep_order_and_run_beside_each_other();
    late_commands_get_the_times_that_they_would_have_had();
    portions_do_not_matter();
    legacy_and_blocking_streams_wait_for_each_other();
    all_is_behind_everything_before_and_nothing_after();
    after_waits_for_what_it_names_across_contexts_and_devices();
    devices_do_not_hold_each_other_up();
    a_host_function_holds_its_stream_until_it_is_done();
    a_held_kernel_ends_when_it_may_and_its_time_is_over();
    an_improper_client_is_told_apart();
    more_than_the_launch_queue_holds_is_improper();
    streams_that_are_no_longer_used_take_no_room();
    a_million_commands_take_seconds();
    return 0;
}
