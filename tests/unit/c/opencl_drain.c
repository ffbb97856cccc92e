/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a program's OpenCL work is outstanding: the drain is asked after each step.
 */
#include "opencl_driver.h"

/* The program. */

static cl_command_queue queue, loose; /* one that keeps order, one that does not */

static void given(void) {
    CHECK(live == 0 && krex_cl_unset == 0);
    queue = clCreateCommandQueue((cl_context)&context, (cl_device_id)&device, 0, NULL);
    loose = clCreateCommandQueue((cl_context)&context, (cl_device_id)&device,
                                 CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, NULL);
}

static cl_event unset(void) { return clCreateUserEvent((cl_context)&context, NULL); }

static void set(cl_event event) { CHECK(clSetUserEventStatus(event, CL_COMPLETE) == CL_SUCCESS); }

static void drop(cl_event event) { release((struct object *)event); }

static void complete(struct object *command) { command->status = CL_COMPLETE; }

/* A kernel behind an event or NULL. The program asks for no event. */
static struct object *run(cl_command_queue in, cl_event behind) {
    CHECK(clEnqueueNDRangeKernel(in, NULL, 1, NULL, NULL, NULL, behind != NULL,
                                 behind ? &behind : NULL, NULL) == CL_SUCCESS);
    return last;
}

/* One that the program asks for the event of. */
static cl_event run_known(cl_command_queue in, cl_event behind) {
    cl_event event = NULL;
    CHECK(clEnqueueNDRangeKernel(in, NULL, 1, NULL, NULL, NULL, behind != NULL,
                                 behind ? &behind : NULL, &event) == CL_SUCCESS);
    CHECK(event == (cl_event)last);
    return event;
}

static bool done(bool asks_only) {
    krex_cl_drain_begin(asks_only);
    bool is = krex_cl_drain_done();
    krex_cl_drain_end();
    return is;
}

static bool drained(void) { return done(false); }
static bool idle(void) { return done(true); }

/* The program ends: nothing of the driver's is left with the shim. */
static void then_nothing_is_kept(void) {
    for (struct object *o = last; o; o = o->next)
        complete(o);
    clReleaseCommandQueue(queue);
    clReleaseCommandQueue(loose);
    for (struct object *o = last; o; o = o->next)
        complete(o); /* the markers of the releases */
    CHECK(drained());
    while (last) {
        struct object *o = last;
        last = o->next;
        release(o);
    }
    CHECK(live == 0 && krex_cl_unset == 0);
}

/* The tests. */

static void without_user_events(void) {
    given();
    CHECK(drained());
    struct object *kernel = run(queue, NULL);
    CHECK(!asked_for_event && !drained());
    complete(kernel);
    CHECK(drained());
    then_nothing_is_kept();
}

/* GIVEN kernels before, behind and after a user event in a queue that keeps order THEN only the first
 * is outstanding, and when the event is set, all are. */
static void in_order(void) {
    given();
    struct object *before = run(queue, NULL);
    cl_event event = unset();
    struct object *behind = run(queue, event), *after = run(queue, NULL);
    CHECK(!drained() && !idle());
    complete(before);
    CHECK(drained() && !idle()); /* the program may set it at any moment */
    set(event);
    CHECK(!drained() && !idle());
    complete(behind);
    CHECK(!drained() && !idle());
    complete(after);
    CHECK(drained() && idle());
    drop(event);
    then_nothing_is_kept();
}

static void out_of_order(void) {
    given();
    struct object *before = run(loose, NULL);
    cl_event event = unset();
    struct object *behind = run(loose, event), *beside = run(loose, NULL);
    CHECK(!drained());
    complete(before);
    CHECK(!drained());
    complete(beside);
    CHECK(drained() && behind->status == CL_QUEUED);
    set(event);
    CHECK(!drained());
    complete(behind);
    CHECK(drained());
    drop(event);
    then_nothing_is_kept();
}

/* A marker or barrier without a list waits for all before it, one with a list for that alone. */
static void markers_and_barriers(void) {
    cl_event event, marker, listed, barrier;
    given();
    event = unset();
    cl_event behind = run_known(loose, event);
    struct object *beside = run(loose, NULL);
    clEnqueueMarkerWithWaitList(loose, 0, NULL, &marker);
    clEnqueueMarkerWithWaitList(loose, 1, &(cl_event){(cl_event)beside}, &listed);
    complete(beside);
    complete((struct object *)listed);
    struct object *after_marker = run(queue, marker);
    CHECK(drained() && after_marker->status == CL_QUEUED);
    struct object *free_kernel = run(loose, listed);
    CHECK(!drained());
    complete(free_kernel);
    CHECK(drained());
    clEnqueueBarrierWithWaitList(loose, 1, &behind, &barrier);
    run(loose, NULL);
    CHECK(drained());
    set(event);
    CHECK(!drained());
    drop(event), drop(behind), drop(marker), drop(listed), drop(barrier);
    then_nothing_is_kept();
}

static void older_barriers(void) {
    given();
    cl_event event = unset(), behind = run_known(loose, event);
    clEnqueueBarrier(loose);
    CHECK(!asked_for_event);
    run(loose, NULL);
    CHECK(drained());
    set(event);
    CHECK(!drained());
    for (struct object *o = last; o; o = o->next)
        complete(o);
    drop(event), drop(behind);
    event = unset();
    clEnqueueWaitForEvents(loose, 1, &event);
    CHECK(!asked_for_event);
    run(loose, NULL);
    CHECK(drained());
    set(event);
    CHECK(!drained());
    drop(event);
    then_nothing_is_kept();
}

static void through_other_queues(void) {
    given();
    cl_event event = unset(), first = run_known(queue, event), second = run_known(loose, first);
    struct object *third = run(loose, second);
    CHECK(drained());
    set(event);
    complete((struct object *)first);
    complete((struct object *)second);
    CHECK(!drained());
    complete(third);
    CHECK(drained());
    drop(event), drop(first), drop(second);
    then_nothing_is_kept();
}

static void several_in_one_queue(void) {
    given();
    cl_event one = unset(), two = unset();
    struct object *a = run(queue, one), *b = run(queue, NULL), *c = run(queue, two);
    CHECK(drained());
    set(one);
    CHECK(!drained());
    complete(a);
    CHECK(!drained());
    complete(b);
    CHECK(drained() && c->status == CL_QUEUED);
    set(two);
    CHECK(!drained());
    drop(one), drop(two);
    then_nothing_is_kept();
}

static cl_event shared;

static void set_shared_and_make_another(void) {
    set(shared);
    drop(shared);
    shared = unset();
}

/* GIVEN an event that is set while a command behind it is on its way, and another one made that takes
 * its place THEN the command is not behind that one. The queue stays watched for a third one. */
static void set_meanwhile(void) {
    given();
    cl_event third = unset();
    run(loose, third);
    shared = unset();
    during = set_shared_and_make_another;
    struct object *kernel = run(loose, shared);
    CHECK(krex_cl_unset == 3 && !drained());
    complete(kernel);
    CHECK(drained());
    set(shared), set(third);
    drop(shared), drop(third);
    then_nothing_is_kept();
}

static void stop_the_queue(void) {
    shared = unset();
    run(queue, shared);
}

/* GIVEN a command that is on its way while another thread makes a user event, and stops the queue
 * THEN it may have come in before or after: it is outstanding. */
static void stopped_meanwhile(void) {
    given();
    during = stop_the_queue;
    run(queue, NULL);
    CHECK(!drained());
    set(shared);
    for (struct object *o = last; o; o = o->next)
        complete(o);
    CHECK(drained());
    drop(shared);
    shared = unset(); /* the same, of a command that began when the event was there */
    during = stop_the_queue;
    cl_event first = shared;
    struct object *kernel = run(queue, NULL);
    CHECK(!drained());
    complete(kernel);
    CHECK(drained());
    set(shared), set(first);
    drop(shared), drop(first);
    then_nothing_is_kept();
}

static void an_enqueue_that_fails(void) {
    given();
    cl_event event = unset();
    answer = CL_INVALID_VALUE;
    CHECK(clEnqueueNDRangeKernel(loose, NULL, 1, NULL, NULL, NULL, 1, &event, NULL) ==
          CL_INVALID_VALUE);
    struct object *kernel = run(loose, NULL);
    cl_event marker;
    clEnqueueMarkerWithWaitList(loose, 0, NULL, &marker);
    struct object *after = run(queue, marker);
    complete(kernel);
    CHECK(!drained()); /* what failed is in nobody's way */
    complete(after);
    CHECK(drained());
    set(event);
    drop(event), drop(marker);
    then_nothing_is_kept();
}

static void more_than_fit(void) {
    cl_event events[KREX_CL_USER_EVENTS + 1];
    given();
    for (int i = 0; i <= KREX_CL_USER_EVENTS; i++)
        events[i] = unset();
    run(loose, events[KREX_CL_USER_EVENTS - 1]);
    CHECK(drained());
    run(queue, events[KREX_CL_USER_EVENTS]);
    CHECK(!drained());
    for (int i = 0; i <= KREX_CL_USER_EVENTS; i++) {
        set(events[i]);
        drop(events[i]);
    }
    then_nothing_is_kept();
}

static void never_set(void) {
    given();
    for (int i = 0; i < 1000; i++)
        drop(unset());
    CHECK(live <= 2 + KREX_CL_USER_EVENTS);
    CHECK(drained() && !krex_cl_unset);
    cl_event event = unset();
    struct object *kernel = run(queue, event);
    drop(event); /* the kernel never runs */
    CHECK(drained() && krex_cl_unset);
    CHECK(kernel->status == CL_QUEUED);
    retain((struct object *)event); /* what no program may do: to end this test */
    set(event);
    drop(event);
    then_nothing_is_kept();
}

static void other_statuses(void) {
    given();
    cl_event event = unset();
    struct object *kernel = run(queue, event);
    CHECK(clSetUserEventStatus(event, CL_RUNNING) == CL_INVALID_VALUE);
    CHECK(drained());
    CHECK(clSetUserEventStatus(event, CL_OUT_OF_RESOURCES) == CL_SUCCESS);
    CHECK(!drained());
    kernel->status = CL_OUT_OF_RESOURCES; /* what was behind it ends so too */
    CHECK(drained());
    drop(event);
    event = unset();
    run(queue, event);
    CHECK(drained());
    complete((struct object *)event); /* set past the hooks */
    CHECK(!drained());
    drop(event);
    then_nothing_is_kept();
}

static void a_queue_that_is_released(void) {
    given();
    cl_command_queue gone =
        clCreateCommandQueue((cl_context)&context, (cl_device_id)&device, 0, NULL);
    retain((struct object *)gone); /* the driver's, for its commands */
    cl_event event = unset();
    struct object *before = run(gone, NULL), *behind = run(gone, event);
    clReleaseCommandQueue(gone);
    CHECK(!drained());
    complete(before);
    CHECK(drained());
    set(event);
    CHECK(!drained());
    complete(behind);
    CHECK(drained());
    drop(event);
    release((struct object *)gone);
    then_nothing_is_kept();
}

/* A program that keeps a user event unset for hours, and goes on working beside it. */
static void for_hours(void) {
    given();
    cl_event event = unset();
    run(loose, event);
    for (int i = 0; i < 5000; i++) {
        struct object *kernel = run(loose, NULL);
        last = kernel->next;
        complete(kernel);
        release(kernel);
        CHECK(live < 300);
    }
    CHECK(drained());
    set(event);
    drop(event);
    then_nothing_is_kept();
}

static void a_queue_made_by_an_extension(void) {
    static const char name[] = "clCreateCommandQueueWithPropertiesKHR";
    given();
    krex_fn_clCreateCommandQueueWithProperties create =
        (krex_fn_clCreateCommandQueueWithProperties)clGetExtensionFunctionAddressForPlatform(
            (cl_platform_id)&platform, name);
    cl_command_queue made = create((cl_context)&context, (cl_device_id)&device, NULL, NULL);
    struct object *kernel = run(made, NULL);
    CHECK(!drained());
    complete(kernel);
    CHECK(drained());
    clReleaseCommandQueue(made);
    then_nothing_is_kept();
}

int main(void) {
    fill_dispatch();
    without_user_events();
    in_order();
    out_of_order();
    markers_and_barriers();
    older_barriers();
    through_other_queues();
    several_in_one_queue();
    set_meanwhile();
    stopped_meanwhile();
    an_enqueue_that_fails();
    more_than_fit();
    never_set();
    other_statuses();
    a_queue_that_is_released();
    for_hours();
    a_queue_made_by_an_extension();
    return 0;
}
