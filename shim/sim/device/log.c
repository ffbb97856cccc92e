/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "grow.h"
#include "heap.h"

#define FLUSH_NS UINT64_C(50000000)

struct log {
    FILE *file;
    char buffer[1 << 16];
    uint64_t due;
    bool failed;
};

static const char *const kinds[] = {
    [KREX_SIM_RUN] = "run",
    [KREX_SIM_COPY_TO] = "copy_to",
    [KREX_SIM_COPY_FROM] = "copy_from",
    [KREX_SIM_COPY_WITHIN] = "copy_within",
    [KREX_SIM_FILL] = "fill",
    [KIND_CONTEXT] = "context",
    [KIND_LOAD] = "load",
};

static const char *const statuses[] = {
    [KREX_SIM_OK] = "ok",
    [KREX_SIM_OUT_OF_MEMORY] = "out_of_memory",
    [KREX_SIM_INVALID] = "invalid",
    [KREX_SIM_ILLEGAL_ADDRESS] = "illegal_address",
    [KREX_SIM_LAUNCH_TIMEOUT] = "launch_timeout",
    [KREX_SIM_LOST] = "lost",
    [KREX_SIM_ENDED] = "ended",
    [STATUS_RUNNING] = "running",
};

/* A log with a gap proves nothing: its reader has to see that. It has no line that says "covered"
 * behind the gap. */
static void complain(struct log *log) {
    if (!log->failed)
        (void)fprintf(stderr, "krex-sim-device: cannot write the log: %s\n", strerror(errno));
    log->failed = true;
}

struct log *log_open(const char *path) {
    FILE *file = fopen(path, "ae");
    struct stat s;
    if (!file)
        return NULL;
    struct log *log = make(sizeof *log);
    log->file = file;
    log->due = NEVER;
    (void)setvbuf(file, log->buffer, _IOFBF, sizeof log->buffer);
    if (fstat(fileno(file), &s) == 0 && s.st_size == 0)
        (void)fputs(
            "device\tcontext\tpid\tkind\tstream\tseq\tarrival_ns\tstart_ns\tend_ns\tstatus\t"
            "name\n",
            file);
    if (fflush(file))
        complain(log);
    return log;
}

/* A kernel's name is its program's to choose. */
static void put_name(FILE *file, const char *name) {
    for (; *name; name++)
        (void)putc((unsigned char)*name < ' ' ? '?' : *name, file);
    (void)putc('\n', file);
}

void log_interval(struct log *log, const struct interval *i, uint64_t now) {
    int n =
        fprintf(log->file,
                "sim:%u\t%u\t%d\t%s\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t",
                i->device, i->context, i->pid, kinds[i->kind], i->stream, i->seq, i->arrival_ns,
                i->start_ns, i->end_ns, statuses[i->status]);
    put_name(log->file, i->name);
    if (n < 0 || ferror(log->file))
        complain(log);
    if (log->due == NEVER)
        log->due = now + FLUSH_NS;
}

void log_left(struct log *log) { log->due = 0; }

uint64_t log_due(const struct log *log) { return log->due; }

void log_flush(struct log *log, uint64_t covered) {
    log->due = NEVER;
    if (covered && !log->failed)
        (void)fprintf(log->file, "# covered %" PRIu64 "\n", covered);
    if (fflush(log->file))
        complain(log);
}

void log_close(struct log *log) {
    if (fclose(log->file))
        complain(log);
    free(log);
}
