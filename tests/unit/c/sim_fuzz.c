/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated device under sequences of calls that nobody thought of: every command of a living
 * client completes once, in its stream's order, and in the end nothing is left.
 */
#include "sim_world.h"

enum { TENANTS = 6, DEVICES = 2, CONTEXTS = 3, STREAMS = 4, STEPS = 600 };

static uint64_t state;
static uint32_t contexts[TENANTS][CONTEXTS]; /* 0: none */
/* What a tenant waits for: a context at that place, or something else. One at a time. */
enum { NOTHING = -1, OTHER = CONTEXTS };
static int asked[TENANTS];
static uint64_t now;

static uint64_t any(uint64_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static struct model any_model(void) {
    struct model m;
    model_default(&m);
    m.sharing = any(2);
    m.slice_ns = 1 + any(5000);
    m.switch_ns = any(3) * any(500);
    m.gap_ns = any(2) * any(300);
    m.context_ns = any(2000);
    m.teardown_ns = any(2) * any(3000);
    m.copy_ns = any(900);
    m.stream_slowdown_ppm = any(1500000);
    m.context_slowdown_ppm = any(1500000);
    m.load_ns = any(500);
    char line[] = "rule 700 0 0 0 0 illegal_address bad", hang[] = "rule 700 0 0 0 0 hang hang";
    char lost[] = "rule 300 0 0 0 0 lost lost", rest[] = "rule 400 0 0 0 500000 none *";
    CHECK(!model_line(&m, line) && !model_line(&m, hang) && !model_line(&m, lost) &&
          !model_line(&m, rest));
    return m;
}

/* What was answered for a context in the meantime. */
static void look_at_answers(int i) {
    struct tenant *t = &world.tenants[i];
    if (!t->answers)
        return;
    CHECK(t->answers == 1 && asked[i] != NOTHING);
    if (asked[i] != OTHER)
        contexts[i][asked[i]] = t->status == KREX_SIM_OK ? t->context : 0;
    asked[i] = NOTHING;
    t->answers = 0;
}

static void submit_any(int i, uint32_t context) {
    struct tenant *t = &world.tenants[i];
    static const char *const names[] = {"a", "b", "a", "b", "bad", "hang", "lost"};
    struct krex_sim_command c =
        run(context, (uint32_t)any(STREAMS), now - any(2) * any(50), any(2000));
    if (any(3) == 0)
        c.kind = KREX_SIM_RUN + (uint32_t)any(7);
    c.flags = (uint32_t)any(16) & ~(c.kind == KREX_SIM_RUN ? 0u : KREX_SIM_HELD);
    c.kernel = kernel(names[any(any(40) ? 4 : 7)]);
    for (int n = 0; n < KREX_SIM_AFTER; n++)
        c.after[n] = any(3) ? 0 : any(t->seq + 2);
    send(t, c);
}

/* Does what the device asked the host for: of a random one. */
static void do_a_turn(int i) {
    struct tenant *t = &world.tenants[i];
    uint64_t seq = t->seq ? 1 + any(t->seq) : 0;
    if (seq && t->turn[seq].seq == seq)
        host_done(t, seq, now);
}

static void make_or_end_a_context(int i) {
    struct tenant *t = &world.tenants[i];
    int place = (int)any(CONTEXTS);
    if (asked[i] != NOTHING)
        return;
    asked[i] = contexts[i][place] ? OTHER : place;
    if (!contexts[i][place]) {
        engine_context(t->client, (uint32_t)any(DEVICES), now);
    } else if (any(4) == 0) {
        engine_context_end(t->client, contexts[i][place], now);
        contexts[i][place] = 0;
    } else {
        engine_load(t->client, contexts[i][place], any(1000), now);
    }
}

static void die(int i) {
    struct tenant *t = &world.tenants[i];
    leave(t, now);
    *t = (struct tenant){.client = engine_client(world.engine, t, 1000 + (int)any(1000))};
    memset(contexts[i], 0, sizeof contexts[i]);
    asked[i] = NOTHING;
}

static void step(void) {
    int i = (int)any(TENANTS);
    uint64_t what = any(100);
    uint32_t context = contexts[i][any(CONTEXTS)];
    now += any(400);
    if (what < 70)
        submit_any(i, context ? context : (uint32_t)any(9));
    else if (what < 80)
        do_a_turn(i);
    else if (what < 92)
        make_or_end_a_context(i);
    else if (what < 99)
        engine_run(world.engine, now);
    else
        die(i);
    for (int n = 0; n < TENANTS; n++)
        look_at_answers(n);
}

static void copies_do_not_overlap(void) {
    uint64_t end[DEVICES][2] = {{0}};
    size_t count = world.interval_count < INTERVALS ? world.interval_count : 0;
    for (size_t n = 0; n < count; n++) {
        const struct interval *v = &world.intervals[n];
        if (v->kind != KREX_SIM_COPY_TO && v->kind != KREX_SIM_COPY_FROM)
            continue;
        CHECK(v->start_ns >= end[v->device][v->kind == KREX_SIM_COPY_TO]);
        end[v->device][v->kind == KREX_SIM_COPY_TO] = v->end_ns;
    }
}

/* All that can end has: what is left waits for the host, or hangs, until its process ends. */
static void settle(void) {
    for (int round = 0; round < 50; round++) {
        now += 100000;
        engine_run(world.engine, now);
        for (int i = 0; i < TENANTS; i++)
            for (uint64_t seq = 1; seq <= world.tenants[i].seq; seq++)
                if (world.tenants[i].turn[seq].seq == seq && !is_done(&world.tenants[i], seq))
                    host_done(&world.tenants[i], seq, now);
    }
}

static uint64_t history(uint64_t seed) {
    state = seed;
    struct model m = any_model();
    uint64_t left, all, digest = 0;
    begin(&m, DEVICES);
    memset(contexts, 0, sizeof contexts);
    for (int i = 0; i < TENANTS; i++)
        asked[i] = NOTHING;
    now = 1000;
    for (int n = 0; n < STEPS; n++)
        step();
    settle();
    copies_do_not_overlap();
    for (size_t n = 0; n < world.interval_count && n < INTERVALS; n++)
        digest = digest * 31 + world.intervals[n].end_ns + world.intervals[n].status;
    for (int i = 0; i < CLIENTS; i++)
        leave(&world.tenants[i], now);
    run_all();
    for (uint32_t d = 0; d < DEVICES; d++) {
        (void)engine_memory(world.engine, d, &left, &all);
        CHECK(left == all);
    }
    end(now);
    model_free(&m);
    return digest;
}

int main(void) {
    uint64_t different = 0, last = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)rounds(400); seed++) {
        uint64_t digest = history(seed);
        CHECK(seed % 20 || history(seed) == digest);
        different += digest != last;
        last = digest;
    }
    CHECK(different > 1);
    return 0;
}
