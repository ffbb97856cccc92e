/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of the simulated devices: how long a kernel takes by its rule, and reading them.
 */
#include "check.h"
#include "sim/device/model.h"

static const char *line_of(struct model *m, const char *text) {
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%s\n", text);
    return model_line(m, copy);
}

static uint64_t takes(const struct model *m, const char *kernel, uint64_t blocks,
                      uint32_t threads) {
    return model_kernel_ns(m, model_rule(m, kernel), blocks, threads, 7);
}

static void waves(void) {
    struct model m;
    model_default(&m);
    CHECK(line_of(&m, "device.multiprocessors 10") == NULL);
    CHECK(line_of(&m, "device.threads_per_mp 2048") == NULL);
    CHECK(line_of(&m, "rule - 100 1000 0 0 none gemm_*") == NULL);
    CHECK(line_of(&m, "rule - 100 1000 1 0 none wide") == NULL);
    CHECK(takes(&m, "gemm_f32", 0, 1024) == 100);
    CHECK(takes(&m, "gemm_f32", 1, 1024) == 1100);
    CHECK(takes(&m, "gemm_f32", 20, 1024) == 1100); /* two blocks fit a multiprocessor */
    CHECK(takes(&m, "gemm_f32", 21, 1024) == 2100);
    CHECK(takes(&m, "gemm_f32", 320, 1) == 1100); /* no more than 32 */
    CHECK(takes(&m, "gemm_f32", 321, 1) == 2100);
    CHECK(takes(&m, "wide", 11, 32) == 2100); /* by the rule one */
    CHECK(takes(&m, "gemm_f32", UINT64_MAX, UINT32_MAX) == LONGEST_NS);
    model_free(&m);
}

static void the_first_rule_that_fits(void) {
    struct model m;
    model_default(&m);
    CHECK(line_of(&m, "rule 5 0 0 0 0 none a*") == NULL);
    CHECK(line_of(&m, "rule 7 0 0 0 0 none *") == NULL);
    CHECK(takes(&m, "abc", 1, 1) == 5);
    CHECK(takes(&m, "b", 1, 1) == 7);
    model_free(&m);
}

static void jitter_is_within_its_bounds_and_repeats(void) {
    struct model m;
    model_default(&m);
    CHECK(line_of(&m, "rule 100000 0 0 0 20000 none *") == NULL);
    const struct rule *r = model_rule(&m, "k");
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t salt = 0; salt < 1000; salt++) {
        uint64_t ns = model_kernel_ns(&m, r, 1, 1, salt);
        CHECK(ns == model_kernel_ns(&m, r, 1, 1, salt));
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    CHECK(least >= 98000 && least < 98100 && most <= 102000 && most > 101900);
    model_free(&m);
}

static void wrong_lines_are_refused_and_told(void) {
    static const char *const wrong[] = {
        "device.memory_bytes",
        "device.memory_bytes 0",
        "device.memory_bytes -1",
        "device.memory_bytes 1x",
        "device.memory_bytes 99999999999999999999999",
        "no.such 1",
        "sharing.mode fair",
        "device.name ",
        "rule",
        "rule 1 2",
        "rule x 0 0 0 0 none *",
        "rule 1 0 0 0 9999999 none *",
        "rule 1 0 0 0 0 explodes *",
        "rule 1 0 0 0 0 none",
        "rule 1 0 0 0 0 none ",
    };
    struct model m;
    model_default(&m);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(line_of(&m, wrong[i]) != NULL);
    CHECK(line_of(&m, "# a remark") == NULL && line_of(&m, "") == NULL);
    CHECK(line_of(&m, "sharing.mode concurrent") == NULL && m.sharing == SHARING_CONCURRENT);
    CHECK(line_of(&m, "device.name A B") == NULL && !strcmp(m.name, "A B"));
    model_free(&m);
}

static void a_file_is_read_and_its_wrong_line_named(void) {
    char path[] = "/tmp/krex-sim-model-XXXXXX", why[256];
    struct model m;
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    static const char text[] = "device.name A\ndevice.major 0\n";
    CHECK(write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(fd);
    model_default(&m);
    CHECK(!model_read(&m, path, why, sizeof why));
    CHECK(strstr(why, ":2: device.major") != NULL);
    CHECK(unlink(path) == 0);
    CHECK(!model_read(&m, path, why, sizeof why) && strstr(why, "No such file") != NULL);
    model_free(&m);
}

/* `krex/sim/model.toml` has our defaults. Of TOML it needs sections, and keys with a value each. */
static void the_defaults_are_those_of_the_file(void) {
    FILE *file = fopen("krex/sim/model.toml", "re"); /* checks run in the top folder */
    struct model m, ours;
    char line[512], section[64] = "", key[64], value[256], flat[400];
    int keys = 0;
    CHECK(file != NULL);
    memset(&m, 0, sizeof m);
    model_default(&ours);
    while (fgets(line, sizeof line, file) && strncmp(line, "[[rules]]", 9) != 0) {
        if (sscanf(line, "[%63[a-z]]", section) == 1 ||
            (sscanf(line, "%63[a-z_] = \"%255[^\"]\"", key, value) != 2 &&
             sscanf(line, "%63[a-z0-9_] = %255[0-9_]", key, value) != 2))
            continue;
        char *to = value;
        for (const char *from = value; *from; from++)
            if (*from != '_')
                *to++ = *from;
        *to = 0;
        (void)snprintf(flat, sizeof flat, "%s.%s %s", section, key, value);
        CHECK(line_of(&m, flat) == NULL);
        keys++;
    }
    (void)fclose(file);
    CHECK(keys > 20);
    CHECK(!memcmp(&m, &ours, offsetof(struct model, rules)));
}

int main(void) {
    the_defaults_are_those_of_the_file();
    waves();
    the_first_rule_that_fits();
    jitter_is_within_its_bounds_and_repeats();
    wrong_lines_are_refused_and_told();
    a_file_is_read_and_its_wrong_line_named();
    return 0;
}
