/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of devices for a test, with nobody but the test as its clients, and all that it said.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "check.h"
#include "sim/device/engine.h"
#include "sim/device/heap.h"

enum { CLIENTS = 16, SEQS = 4096, INTERVALS = 4096 };
#define MS UINT64_C(1000000)

struct tenant {
    struct client *client;
    uint64_t seq;
    struct krex_sim_result done[SEQS]; /* by number; seq is 0: it is not complete */
    struct krex_sim_result turn[SEQS];
    int answers;
    uint32_t status, context; /* of the last answer */
};

static struct {
    struct engine *engine;
    struct tenant tenants[CLIENTS];
    struct interval intervals[INTERVALS];
    size_t interval_count;
    uint64_t results;
    int gone;
} world;

static void keep_interval(void *owner, const struct interval *i) {
    CHECK(owner == &world);
    CHECK(i->start_ns <= i->end_ns);
    world.intervals[world.interval_count++ % INTERVALS] = *i;
}

static void keep_result(void *owner, const struct krex_sim_result *r) {
    struct tenant *t = owner;
    struct krex_sim_result *at = r->what == KREX_SIM_COMPLETE ? t->done : t->turn;
    CHECK(r->seq && r->seq <= t->seq);
    CHECK(at[r->seq % SEQS].seq != r->seq); /* told once */
    CHECK(r->what != KREX_SIM_COMPLETE || r->start_ns <= r->end_ns);
    at[r->seq % SEQS] = *r;
    world.results++;
}

static void keep_answer(void *owner, uint32_t status, uint32_t context) {
    struct tenant *t = owner;
    t->answers++;
    t->status = status;
    t->context = context;
}

static void keep_gone(void *owner) {
    CHECK(owner == &world);
    world.gone++;
}

/* What is exact is easier to see without what is added to everything. */
static inline struct model bare_model(void) {
    struct model m;
    model_default(&m);
    m.gap_ns = m.switch_ns = m.copy_ns = m.context_ns = m.context_bytes = 0;
    m.kernel_beside_copy_ppm = m.copy_beside_kernel_ppm = 0;
    return m;
}

static inline void begin(const struct model *m, uint32_t devices) {
    struct engine_events events = {&world, keep_interval, keep_result, keep_answer, keep_gone};
    memset(&world, 0, sizeof world);
    world.engine = engine_new(m, devices, 1, &events);
    for (int i = 0; i < CLIENTS; i++)
        world.tenants[i].client = engine_client(world.engine, &world.tenants[i], 100 + i);
}

/* All clients end, and all that they left; nothing may be left over (which the sanitizers look for). */
static inline void end(uint64_t now) {
    for (int i = 0; i < CLIENTS; i++)
        if (world.tenants[i].client)
            engine_client_gone(world.tenants[i].client, now);
    engine_run(world.engine, NEVER - 1);
    CHECK(engine_next(world.engine) == NEVER);
    CHECK(engine_is_idle(world.engine));
    engine_free(world.engine);
}

static inline void leave(struct tenant *t, uint64_t now) {
    engine_client_gone(t->client, now);
    t->client = NULL;
}

static inline uint32_t new_context(struct tenant *t, uint32_t device, uint64_t now) {
    int answers = t->answers;
    engine_context(t->client, device, now);
    engine_run(world.engine, now);
    CHECK(t->answers == answers + 1 && t->status == KREX_SIM_OK);
    return t->context;
}

static inline uint64_t send(struct tenant *t, struct krex_sim_command c) {
    c.seq = ++t->seq;
    t->done[c.seq % SEQS].seq = t->turn[c.seq % SEQS].seq = 0;
    CHECK(engine_submit(t->client, &c));
    return c.seq;
}

static inline uint32_t kernel(const char *name) {
    uint32_t number;
    CHECK(engine_kernel(world.engine, name, &number) == KREX_SIM_OK);
    return number;
}

/* A kernel that takes so long. */
static inline struct krex_sim_command run(uint32_t context, uint32_t stream, uint64_t at,
                                          uint64_t ns) {
    return (struct krex_sim_command){.kind = KREX_SIM_RUN,
                                     .flags = KREX_SIM_EXPLICIT,
                                     .context = context,
                                     .stream = stream,
                                     .arrival_ns = at,
                                     .amount = ns,
                                     .kernel = kernel("spin"),
                                     .blocks = 1,
                                     .threads = 1};
}

static inline struct krex_sim_command of_kind(uint32_t kind, uint32_t context, uint32_t stream,
                                              uint64_t at) {
    struct krex_sim_command c = run(context, stream, at, 0);
    c.kind = kind;
    c.flags = 0;
    return c;
}

static inline void host_done(struct tenant *t, uint64_t seq, uint64_t at) {
    struct krex_sim_command c = of_kind(KREX_SIM_HOST_DONE, 0, 0, at);
    c.amount = seq;
    send(t, c);
}

static inline bool is_done(const struct tenant *t, uint64_t seq) {
    return t->done[seq % SEQS].seq == seq;
}

#define EXPECT_END(tenant, seq, end)                                                               \
    do {                                                                                           \
        CHECK(is_done(tenant, seq));                                                               \
        CHECK((tenant)->done[(seq) % SEQS].end_ns == (uint64_t)(end));                             \
    } while (0)

#define EXPECT_TIMES(tenant, seq, start, end)                                                      \
    do {                                                                                           \
        EXPECT_END(tenant, seq, end);                                                              \
        CHECK((tenant)->done[(seq) % SEQS].start_ns == (uint64_t)(start));                         \
    } while (0)

static inline void run_all(void) { engine_run(world.engine, UINT64_C(1) << 60); }

#endif
