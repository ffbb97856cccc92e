/* SPDX-License-Identifier: Apache-2.0
 *
 * The flat form of a model, which `krex sim model --flat` writes: lines `KEY VALUE`, of which only a
 * name is not a whole number; and a line for each rule:
 *
 *   rule FIXED_NS|- LAUNCH_NS WAVE_NS BLOCKS_PER_MP JITTER_PPM FAULT PATTERN
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "model.h"

struct key {
    const char *name;
    size_t at;
    uint64_t least, most;
};

#define KEY(name, member, least, most) {name, offsetof(struct model, member), least, most}
#define NS UINT64_C(1000000000000000)
#define BYTES (UINT64_C(1) << 50)
#define RATE UINT64_C(1000000000000000)
#define SLOWDOWN 1000000000

static const struct key keys[] = {
    KEY("device.memory_bytes", memory_bytes, 1, BYTES),
    KEY("device.context_bytes", context_bytes, 0, BYTES),
    KEY("device.largest_bytes", largest_bytes, 0, BYTES),
    KEY("device.multiprocessors", multiprocessors, 1, 65536),
    KEY("device.threads_per_mp", threads_per_mp, 1, 65536),
    KEY("device.blocks_per_mp", blocks_per_mp, 1, 65536),
    KEY("device.clock_khz", clock_khz, 1, INT32_MAX),
    KEY("device.memory_clock_khz", memory_clock_khz, 1, INT32_MAX),
    KEY("device.bus_bits", bus_bits, 1, INT32_MAX),
    KEY("device.l2_bytes", l2_bytes, 0, INT32_MAX),
    KEY("device.major", major, 1, 99),
    KEY("device.minor", minor, 0, 9),
    KEY("sharing.slice_ns", slice_ns, 1, NS),
    KEY("sharing.switch_ns", switch_ns, 0, NS),
    KEY("sharing.stream_slowdown_ppm", stream_slowdown_ppm, 0, SLOWDOWN),
    KEY("sharing.context_slowdown_ppm", context_slowdown_ppm, 0, SLOWDOWN),
    KEY("sharing.gap_ns", gap_ns, 0, NS),
    KEY("copies.copy_ns", copy_ns, 0, NS),
    KEY("copies.to_bytes_per_s", to_bytes_per_s, 1, RATE),
    KEY("copies.from_bytes_per_s", from_bytes_per_s, 1, RATE),
    KEY("copies.memory_bytes_per_s", memory_bytes_per_s, 1, RATE),
    KEY("copies.kernel_beside_copy_ppm", kernel_beside_copy_ppm, 0, SLOWDOWN),
    KEY("copies.copy_beside_kernel_ppm", copy_beside_kernel_ppm, 0, SLOWDOWN),
    KEY("contexts.context_ns", context_ns, 0, NS),
    KEY("contexts.teardown_ns", teardown_ns, 0, NS),
    KEY("contexts.load_ns", load_ns, 0, NS),
    KEY("contexts.load_bytes_per_s", load_bytes_per_s, 1, RATE),
};

static const char *const faults[] = {"none", "illegal_address", "timeout", "hang", "lost"};
static const char *const sharings[] = {"timeslice", "concurrent"};

static int index_of(const char *word, const char *const *words, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(word, words[i]))
            return i;
    return -1;
}

static bool number(const char *word, uint64_t most, uint64_t *value) {
    char *end;
    if (!word || *word < '0' || *word > '9')
        return false;
    errno = 0;
    *value = strtoull(word, &end, 10);
    return !*end && !errno && *value <= most;
}

/* The next word, cut out of the line, which is moved behind it; NULL: there is none. */
static char *next_word(char **line) {
    char *word = strsep(line, " ");
    return word && *word ? word : NULL;
}

static const char *read_rule(struct model *m, char *rest) {
    struct rule r = {.fixed_ns = NO_FIXED_NS};
    uint64_t blocks = 0, jitter = 0;
    const char *fixed = next_word(&rest);
    if (!fixed || (strcmp(fixed, "-") != 0 && !number(fixed, NS, &r.fixed_ns)))
        return "a rule's fixed_ns is neither - nor a number of nanoseconds";
    if (!number(next_word(&rest), NS, &r.launch_ns) || !number(next_word(&rest), NS, &r.wave_ns))
        return "a rule's launch_ns or wave_ns is not a number of nanoseconds";
    if (!number(next_word(&rest), 65536, &blocks) || !number(next_word(&rest), 1000000, &jitter))
        return "a rule's blocks_per_mp or jitter_ppm is not a number, or too large";
    const char *name = next_word(&rest);
    int fault = name ? index_of(name, faults, sizeof faults / sizeof *faults) : -1;
    if (fault < 0)
        return "a rule's fault is none of none, illegal_address, timeout, hang, lost";
    if (!rest || !*rest)
        return "a rule has no pattern";
    r.blocks_per_mp = (uint32_t)blocks;
    r.jitter_ppm = (uint32_t)jitter;
    r.fault = (enum fault)fault;
    r.pattern = have(strdup(rest));
    m->rules = grow(m->rules, &m->rule_room, m->rule_count + 1, sizeof *m->rules);
    m->rules[m->rule_count++] = r;
    return NULL;
}

static const char *read_sharing(struct model *m, const char *word) {
    int sharing = index_of(word, sharings, 2);
    if (sharing < 0)
        return "sharing.mode is neither timeslice nor concurrent";
    m->sharing = (uint64_t)sharing;
    return NULL;
}

static const char *read_name(struct model *m, const char *name) {
    if (!*name || strlen(name) >= sizeof m->name)
        return "device.name is empty, or longer than 95 bytes";
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    return NULL;
}

static const char *read_key(struct model *m, const char *name, const char *value) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint64_t *at = (uint64_t *)((char *)m + keys[i].at);
        if (strcmp(name, keys[i].name) != 0)
            continue;
        if (!number(value, keys[i].most, at) || *at < keys[i].least)
            return "not a whole number, or out of range";
        return NULL;
    }
    return "no such key";
}

const char *model_line(struct model *m, char *line) {
    char *end = strchr(line, '\n');
    if (end)
        *end = 0;
    if (!*line || *line == '#')
        return NULL;
    char *rest = line;
    const char *name = next_word(&rest);
    if (!name || !rest)
        return "not of the form KEY VALUE";
    if (!strcmp(name, "rule"))
        return read_rule(m, rest);
    if (!strcmp(name, "device.name"))
        return read_name(m, rest);
    if (!strcmp(name, "sharing.mode"))
        return read_sharing(m, rest);
    return read_key(m, name, rest);
}

bool model_read(struct model *m, const char *path, char *why, size_t size) {
    FILE *file = fopen(path, "re");
    if (!file) {
        (void)snprintf(why, size, "%s: %s", path, strerror(errno));
        return false;
    }
    char *line = NULL;
    size_t room = 0;
    unsigned count = 0;
    const char *wrong = NULL;
    while (!wrong && getline(&line, &room, file) >= 0) {
        count++;
        wrong = model_line(m, line);
    }
    if (wrong)
        (void)snprintf(why, size, "%s:%u: %s: %s", path, count, line, wrong);
    free(line);
    (void)fclose(file);
    return !wrong;
}
