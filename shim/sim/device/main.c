/* SPDX-License-Identifier: Apache-2.0
 *
 * krex-sim-device: the process of the simulated devices.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

static const char usage[] =
    "usage: krex-sim-device --socket PATH [--devices N] [--log FILE] [--model FILE] [--seed N]\n"
    "                       [--linger SECONDS] [--parent-fd N]\n"
    "\n"
    "Serves simulated devices to programs that load the libcuda.so.1 beside it, with\n"
    "KREX_SIM_SOCKET=PATH. Ends SECONDS (10) after its last client, though not before the other "
    "end\n"
    "of the descriptor N hangs up, if one is given. `krex sim model --flat` writes FILE.\n";

enum { SOCKET, DEVICES, LOG, MODEL, SEED, LINGER, PARENT_FD, HELP };

static const struct option names[] = {
    {"socket", required_argument, NULL, SOCKET},
    {"devices", required_argument, NULL, DEVICES},
    {"log", required_argument, NULL, LOG},
    {"model", required_argument, NULL, MODEL},
    {"seed", required_argument, NULL, SEED},
    {"linger", required_argument, NULL, LINGER},
    {"parent-fd", required_argument, NULL, PARENT_FD},
    {"help", no_argument, NULL, HELP},
    {0},
};

static bool number(const char *text, uint64_t least, uint64_t most, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *value >= least && *value <= most;
}

static bool set(struct options *o, int name) {
    uint64_t n = 0;
    bool good = true;
    switch (name) {
    case SOCKET:
        o->socket = optarg;
        break;
    case LOG:
        o->log = optarg;
        break;
    case MODEL:
        o->model = optarg;
        break;
    case DEVICES:
        good = number(optarg, 1, KREX_SIM_DEVICES, &n);
        o->devices = (uint32_t)n;
        break;
    case SEED:
        good = number(optarg, 0, UINT64_MAX, &o->seed);
        break;
    case LINGER:
        good = number(optarg, 0, 1000000000, &n);
        o->linger_ns = n * 1000000000u;
        break;
    case PARENT_FD:
        good = number(optarg, 0, INT32_MAX, &n);
        o->parent_fd = (int)n;
        break;
    default:
        return false;
    }
    if (!good)
        (void)fprintf(stderr, "krex-sim-device: --%s %s: not a number that fits\n",
                      names[name].name, optarg);
    return good;
}

/* What stands for hardware has not to queue for a core behind the programs that wait for it. It sleeps
 * nearly always, so it may have real-time priority; without the right to it, it goes on without. */
static void raise_priority(void) {
    struct sched_param priority = {.sched_priority = 1};
    (void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
}

int main(int argc, char **argv) {
    struct options o = {.devices = 1, .seed = 1, .linger_ns = 10000000000, .parent_fd = -1};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (name == HELP) {
            (void)fputs(usage, stdout);
            return 0;
        }
        if (!set(&o, name)) {
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (optind < argc || !o.socket) {
        (void)fputs(usage, stderr);
        return 2;
    }
    raise_priority();
    return server_run(&o);
}
