/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a program's HIP work is outstanding, and how the drain asks: what it asks about is written
 * down. The engine that HIP shares with CUDA (shim/gpu) is tested with CUDA's. Each test is a process
 * of its own.
 */
#include "check.h"
#include "hip/device.h"
#include "hip/drain.h"
#include "log.h"
#include "stop.h"

#include "gpu/capture.h"

enum { DEVICES = 2, STREAMS = 4 };

static struct krex_board *board;

/* The runtime. */

static int work[DEVICES];      /* of no known stream, by device; -1: on the null stream */
static bool busy[STREAMS + 1]; /* by handle */
static hipError_t fault;       /* what it says of everything */
static bool has_exchange = true;
static uint32_t waiting;          /* a thread waits in the runtime */
static void (*in_query)(int of);  /* what the program does meanwhile, once */
static char asked[256];           /* a letter for each question */
static __thread int current;      /* device */
static __thread bool relaxed_now; /* the capture mode */

static void note(char letter) { asked[strlen(asked)] = letter; }

static hipError_t exchange_mode(hipStreamCaptureMode *mode) {
    relaxed_now = *mode == hipStreamCaptureModeRelaxed;
    return hipSuccess;
}

static hipError_t set_device(int device) {
    current = device;
    return device < DEVICES ? hipSuccess : 101;
}

static hipError_t query(hipStream_t stream) {
    int handle = (int)(uintptr_t)stream;
    void (*meanwhile)(int) = in_query;
    CHECK(relaxed_now == has_exchange && handle <= STREAMS);
    note(handle ? (char)('0' + handle) : 'n');
    in_query = NULL;
    if (meanwhile)
        meanwhile(handle);
    if (fault)
        return fault;
    return busy[handle] || (!handle && work[current] < 0) ? hipErrorNotReady : hipSuccess;
}

/* As the real one: it does not come back before. */
static hipError_t synchronize(void) {
    note(current ? 'B' : 'A');
    while (krex_load_acquire(&work[current])) {
        krex_store_release(&waiting, 1);
        usleep(100);
    }
    return fault;
}

static hipError_t is_capturing(hipStream_t stream, hipStreamCaptureStatus *status) {
    (void)stream;
    *status = hipStreamCaptureStatusNone;
    return hipSuccess;
}

void *krex_hip_find_any(const char *symbol) {
    if (!strcmp(symbol, "hipThreadExchangeStreamCaptureMode"))
        return has_exchange ? (void *)exchange_mode : NULL;
    if (!strcmp(symbol, "hipSetDevice"))
        return (void *)set_device;
    if (!strcmp(symbol, "hipStreamQuery"))
        return (void *)query;
    if (!strcmp(symbol, "hipDeviceSynchronize"))
        return (void *)synchronize;
    CHECK(!strcmp(symbol, "hipStreamIsCapturing"));
    return (void *)is_capturing;
}

void *krex_hip_current(void) { return krex_hip_handle(current); }

static int warnings;
void krex_warn(const char *format, ...) {
    (void)format;
    warnings++;
}

/* The program. */

static void touch(int device) {
    krex_gpu_context_made(&krex_hip_gpu, krex_hip_handle(device), device);
}

static hipStream_t stream(int handle) { return (hipStream_t)(uintptr_t)handle; }

static bool drained(void) {
    memset(asked, 0, sizeof asked);
    krex_gpu_drain_begin(&krex_hip_gpu);
    memset(asked, 0, sizeof asked);
    return krex_gpu_drain_done(&krex_hip_gpu);
}

static bool asks(const char *letters) { return !strcmp(asked, letters); }

/* The tests. */

static void no_device(void) { CHECK(drained() && asks("")); }

static void one_device(void) {
    touch(0);
    CHECK(drained() && asks("nA"));
    CHECK(drained());
}

static void each_device(void) {
    touch(0);
    touch(1);
    touch(1);
    CHECK(drained() && asks("nBnA"));
}

/* GIVEN a stream that is busy WHEN asked THEN nothing is asked after it, and nobody waits. */
static void a_known_stream(void) {
    touch(0);
    krex_hip_stream_made(stream(1));
    krex_hip_stream_made(stream(2));
    busy[1] = true;
    CHECK(!drained() && asks("21"));
    busy[1] = false;
    CHECK(drained() && asks("21nA"));
}

static void the_null_stream(void) {
    touch(0);
    work[0] = -1;
    CHECK(!drained() && asks("n"));
    work[0] = 0;
    CHECK(drained());
}

static void *end_work(void *unused) {
    while (!krex_load_acquire(&waiting))
        usleep(100);
    krex_store_release(&work[0], 0);
    return unused;
}

/* GIVEN work on a stream that is not known WHEN asked THEN the drain comes back when it is done. */
static void a_hidden_stream(void) {
    touch(0);
    work[0] = 1;
    pthread_t thread = start(end_work, NULL);
    CHECK(drained() && waiting);
    finish(thread);
}

static void a_stream_that_is_destroyed(void) {
    touch(0);
    krex_hip_stream_made(stream(1));
    krex_hip_stream_made(stream(2));
    CHECK(krex_hip_stream_ending(stream(1)) && !krex_hip_stream_ending(stream(3)));
    CHECK(drained() && asks("2nA"));
    krex_hip_streams_forgotten();
    CHECK(drained() && asks("nA"));
}

static pthread_t destroyer;
static int32_t destroyer_tid;

static void *destroy_the_other(void *unused) {
    krex_store_release(&destroyer_tid, own_tid());
    krex_hip_stream_ending(stream(1));
    krex_store_release(&waiting, 2);
    return unused;
}

static void destroy_and_see_it_wait(int of) {
    CHECK(of == 2);
    destroyer = start(destroy_the_other, NULL);
    while (!krex_load_acquire(&destroyer_tid) || !is_asleep(destroyer_tid))
        CHECK(krex_load_acquire(&waiting) != 2);
}

/* GIVEN the drainer in a question WHEN a stream is destroyed THEN its end waits for the drainer, which
 * does not ask about it any more. */
static void destroyed_meanwhile(void) {
    touch(0);
    krex_hip_stream_made(stream(1));
    krex_hip_stream_made(stream(2));
    in_query = destroy_and_see_it_wait;
    drained();
    finish(destroyer);
    CHECK(waiting == 2 && asks("2nA"));
}

static void a_capture_is_open(void) {
    touch(0);
    uint64_t token = krex_capture_enter();
    krex_capture_begun(&krex_hip_gpu, token, stream(1), true);
    CHECK(!drained() && asks(""));
    krex_capture_ended(&krex_hip_gpu, stream(1), true);
    CHECK(drained());
}

/* A reset destroys the streams of a device, and what is captured there; the device stays. */
static void a_capture_ends_with_its_device(void) {
    touch(0);
    krex_capture_begun(&krex_hip_gpu, krex_capture_enter(), stream(1), true);
    krex_captures_lost(&krex_hip_gpu, krex_hip_handle(1));
    CHECK(!drained());
    krex_captures_lost(&krex_hip_gpu, krex_hip_handle(0));
    CHECK(drained() && asks("nA"));
}

static void a_capture_that_nobody_told(void) {
    touch(0);
    fault = hipErrorStreamCaptureUnsupported;
    CHECK(!drained());
    /* Asking again would invalidate the next one. */
    memset(asked, 0, sizeof asked);
    CHECK(!krex_gpu_drain_done(&krex_hip_gpu) && asks(""));
    fault = hipSuccess;
    CHECK(drained());
}

static void a_fault(void) {
    touch(0);
    fault = hipErrorLaunchFailure;
    CHECK(drained());
    fault = 999;
    CHECK(!drained());
}

static void no_capture_mode(void) {
    has_exchange = false;
    touch(0);
    CHECK(drained());
}

static void forked(void) {
    touch(0);
    krex_hip_stream_made(stream(1));
    pid_t child = fork();
    if (!child) {
        attached_board();
        CHECK(drained() && asks(""));
        execl("/bin/true", "true", NULL); /* _exit would call its parent's lists a leak */
    }
    expect_success(child);
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
        no_device,
        one_device,
        each_device,
        a_known_stream,
        the_null_stream,
        a_hidden_stream,
        a_stream_that_is_destroyed,
        destroyed_meanwhile,
        a_capture_is_open,
        a_capture_ends_with_its_device,
        a_capture_that_nobody_told,
        a_fault,
        no_capture_mode,
        forked,
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        alone(tests[i]);
    return 0;
}
