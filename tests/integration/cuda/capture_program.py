# SPDX-License-Identifier: Apache-2.0
"""Stream captures, one rule a scenario (see cu.py)."""

import ctypes

from cu import (
    ACTIVE,
    CAPTURED_EVENT,
    GLOBAL,
    ILLEGAL_STATE,
    IMPLICIT,
    INVALID,
    INVALIDATED,
    ISOLATION,
    MERGE,
    NONE,
    OK,
    RELAXED,
    THREAD_LOCAL,
    UNJOINED,
    UNMATCHED,
    UNSUPPORTED,
    WRONG_THREAD,
    Address,
    Handle,
    Size,
    cu,
    event,
    function,
    get,
    in_thread,
    launch,
    main,
    module,
    ok,
    scenario,
    stream,
)

LEGACY = Handle(1)


def begun(mode=GLOBAL, flags=1):
    """A stream that captures."""
    s = stream(flags)
    ok(cu.cuStreamBeginCapture_v2(s, mode))
    return s


def status(s):
    found = ctypes.c_int(-1)
    ok(cu.cuStreamIsCapturing(s, ctypes.byref(found)))
    return found.value


def end(s):
    """The result, and the graph."""
    graph = Handle(1)
    return cu.cuStreamEndCapture(s, ctypes.byref(graph)), graph.value


def nodes(graph):
    count = Size()
    ok(cu.cuGraphGetNodes(Handle(graph), None, ctypes.byref(count)))
    return count.value


def edges(graph):
    count = Size()
    ok(cu.cuGraphGetEdges(Handle(graph), None, None, ctypes.byref(count)))
    return count.value


def nothing():
    return function(module(), "nothing")


def query(of):
    return cu.cuEventQuery(of)


def allocate():
    return cu.cuMemAlloc_v2(ctypes.byref(Address()), Size(64))


def set_mode(mode):
    value = ctypes.c_int(mode)
    ok(cu.cuThreadExchangeStreamCaptureMode(ctypes.byref(value)))
    return value.value


def broken(s):
    """The capture is invalid: it says so, takes nothing more, and its end gives no graph."""
    assert status(s) == INVALID
    assert launch(nothing(), s) == INVALIDATED
    assert end(s) == (INVALIDATED, None)
    assert status(s) == NONE
    ok(cu.cuStreamSynchronize(s))
    return True


def intact(s):
    assert status(s) == ACTIVE
    result, graph = end(s)
    return result == OK and graph is not None


@scenario
def what_is_captured_does_not_run():
    # GIVEN a kernel that never ends by itself, captured
    k = function(module(), "krex_wait_flag")
    s = begun()
    assert status(s) == ACTIVE
    ok(launch(k, s, Address(8)))
    result, graph = end(s)
    # THEN the device has nothing to do, and the graph has it
    ok(result)
    assert status(s) == NONE
    ok(cu.cuCtxSynchronize())
    assert nodes(graph) == 1


@scenario
def order_in_a_stream_is_an_edge():
    k, s = nothing(), begun()
    for _ in range(3):
        ok(launch(k, s))
    _, graph = end(s)
    assert (nodes(graph), edges(graph)) == (3, 2)


@scenario
def a_fork_that_joins():
    # GIVEN work in a second stream, behind an event of the first, and the first behind it
    k, s, other = nothing(), begun(), stream()
    forked, joined = event(), event()
    ok(launch(k, s))
    ok(cu.cuEventRecord(forked, s))
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    assert status(other) == ACTIVE
    ok(launch(k, other))
    ok(launch(k, s))
    ok(cu.cuEventRecord(joined, other))
    ok(cu.cuStreamWaitEvent(s, joined, 0))
    ok(launch(k, s))
    # THEN the graph is a diamond, and neither stream captures any more
    result, graph = end(s)
    ok(result)
    assert (nodes(graph), edges(graph)) == (4, 4)
    assert status(other) == NONE
    ok(launch(k, other))
    ok(cu.cuStreamSynchronize(other))


@scenario
def a_fork_that_does_not_join():
    k, s, other, forked = nothing(), begun(), stream(), event()
    ok(cu.cuEventRecord(forked, s))
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    ok(launch(k, other))
    assert end(s) == (UNJOINED, None)
    assert status(other) == NONE


@scenario
def a_fork_without_work_need_not_join():
    s, other, forked = begun(), stream(), event()
    ok(launch(nothing(), s))
    ok(cu.cuEventRecord(forked, s))
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    assert intact(s)


@scenario
def a_forked_stream_may_be_destroyed_once_joined():
    k, s, other, forked, joined = nothing(), begun(), stream(), event(), event()
    ok(cu.cuEventRecord(forked, s))
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    ok(launch(k, other))
    ok(cu.cuEventRecord(joined, other))
    ok(cu.cuStreamDestroy_v2(other))
    ok(cu.cuStreamWaitEvent(s, joined, 0))
    assert intact(s)


@scenario
def a_forked_stream_destroyed_without_a_join():
    k, s, other, forked = nothing(), begun(), stream(), event()
    ok(cu.cuEventRecord(forked, s))
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    ok(launch(k, other))
    ok(cu.cuStreamDestroy_v2(other))
    assert end(s) == (UNJOINED, None)


@scenario
def only_where_it_began():
    s, other, forked = begun(), stream(), event()
    ok(cu.cuEventRecord(forked, s))
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    assert end(other) == (UNMATCHED, None)
    assert intact(s)


@scenario
def only_in_the_thread_that_began():
    s = begun(THREAD_LOCAL)
    assert in_thread(lambda: end(s)) == (WRONG_THREAD, None)
    assert intact(s)
    relaxed = begun(RELAXED)
    ok(in_thread(lambda: end(relaxed))[0])


@scenario
def one_at_a_time():
    s = begun()
    assert cu.cuStreamBeginCapture_v2(s, GLOBAL) == ILLEGAL_STATE
    assert intact(s)
    assert end(s) == (ILLEGAL_STATE, None)
    assert cu.cuStreamBeginCapture_v2(LEGACY, GLOBAL) == UNSUPPORTED


@scenario
def waiting_for_the_stream_breaks_it():
    for call in (cu.cuStreamSynchronize, cu.cuStreamQuery):
        s = begun(RELAXED)
        assert call(s) == UNSUPPORTED
        assert broken(s)


@scenario
def waiting_for_the_context_breaks_it():
    # GIVEN a capture that minds nothing that other threads do
    for mode in (THREAD_LOCAL, RELAXED):
        s = begun(mode)

        # WHEN another thread, which may do what is unsafe, waits for all of the context
        def wait():
            set_mode(RELAXED)
            return cu.cuCtxSynchronize()

        # THEN that fails, and breaks the capture
        assert in_thread(wait) == UNSUPPORTED
        assert broken(s)


@scenario
def the_context_event_breaks_it():
    s, e = begun(RELAXED), event()
    assert cu.cuCtxRecordEvent(get("cuCtxGetCurrent"), e) == UNSUPPORTED
    assert broken(s)


@scenario
def a_context_without_captures_may_be_waited_for():
    s = begun(THREAD_LOCAL)
    first = get("cuCtxGetCurrent")
    get("cuCtxCreate_v2", 0, 0)
    ok(cu.cuCtxSynchronize())
    ok(cu.cuCtxSetCurrent(first))
    assert intact(s)


@scenario
def unsafe_calls():
    """Which of them breaks a capture: by the capture's mode, whose thread, and that thread's."""
    recorded = event()
    ok(cu.cuEventRecord(recorded, None))
    ok(cu.cuStreamSynchronize(None))
    allowed = {}
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        for own in (True, False):
            for threads in (GLOBAL, THREAD_LOCAL, RELAXED):

                def call(threads=threads):
                    before = set_mode(threads)
                    results = {allocate(), query(recorded)}
                    set_mode(before)
                    return results

                s = begun(mode)
                results = call() if own else in_thread(call)
                assert results in ({OK}, {UNSUPPORTED})
                allowed[mode, own, threads] = results == {OK}
                assert intact(s) if results == {OK} else broken(s)
    minded = {place for place, is_allowed in allowed.items() if not is_allowed}
    assert minded == {
        *((mode, True, threads) for mode in (GLOBAL, THREAD_LOCAL) for threads in (0, 1)),
        (GLOBAL, False, GLOBAL),
    }


@scenario
def the_legacy_stream_with_a_blocking_one():
    # GIVEN a blocking stream that captures WHEN the legacy one is used THEN it would depend on it
    k, buffer = nothing(), get("cuMemAlloc_v2", Size(64), kind=Address)
    for use in (
        lambda: launch(k, None),
        lambda: cu.cuStreamSynchronize(None),
        lambda: cu.cuStreamQuery(LEGACY),
        lambda: cu.cuMemsetD8_v2(buffer, 0, Size(4)),
    ):
        s = begun(RELAXED, flags=0)
        assert use() == IMPLICIT
        assert broken(s)


@scenario
def the_legacy_stream_with_another_one():
    k, s = nothing(), begun(RELAXED)
    ok(launch(k, None))
    ok(cu.cuStreamSynchronize(None))
    assert intact(s)


@scenario
def asking_the_legacy_stream_breaks_nothing():
    s, found = begun(flags=0), ctypes.c_int()
    assert cu.cuStreamIsCapturing(None, ctypes.byref(found)) == IMPLICIT
    assert cu.cuStreamGetCaptureInfo(None, ctypes.byref(found), None) == IMPLICIT
    assert intact(s)


@scenario
def two_captures_do_not_merge():
    s, other, e = begun(), begun(), event()
    ok(cu.cuEventRecord(e, s))
    assert cu.cuStreamWaitEvent(other, e, 0) == MERGE
    assert broken(s)
    assert broken(other)


@scenario
def no_wait_for_what_is_outside():
    e = event()
    ok(cu.cuEventRecord(e, None))
    s = begun()
    assert cu.cuStreamWaitEvent(s, e, 0) == ISOLATION
    assert broken(s)


@scenario
def an_event_that_was_never_recorded():
    s = begun()
    ok(cu.cuStreamWaitEvent(s, event(), 0))
    assert intact(s)


@scenario
def a_captured_event_is_no_work():
    # GIVEN an event whose newest record is captured
    s, e = begun(RELAXED), event()
    set_mode(RELAXED)
    ok(cu.cuEventRecord(e, s))
    # THEN nobody may ask for it, or wait for it, even when the capture has ended
    assert cu.cuEventQuery(e) == CAPTURED_EVENT
    end(s)
    assert cu.cuEventSynchronize(e) == CAPTURED_EVENT
    assert cu.cuStreamWaitEvent(s, e, 0) == ISOLATION
    # WHEN it is recorded outside THEN it is an event like any
    ok(cu.cuEventRecord(e, s))
    ok(cu.cuEventSynchronize(e))


@scenario
def asking_for_a_captured_event_breaks_it():
    for call in (cu.cuEventQuery, cu.cuEventSynchronize):
        s, e = begun(RELAXED), event()
        ok(cu.cuEventRecord(e, s))
        assert call(e) == CAPTURED_EVENT
        assert broken(s)


@scenario
def a_stream_that_is_destroyed():
    s, e = begun(), event()
    ok(launch(nothing(), s))
    ok(cu.cuEventRecord(e, s))
    ok(cu.cuStreamDestroy_v2(s))
    ok(allocate())
    ok(cu.cuEventDestroy_v2(e))


@scenario
def a_context_that_is_destroyed():
    context = get("cuCtxGetCurrent")
    begun()
    ok(cu.cuCtxDestroy_v2(context))
    get("cuCtxCreate_v2", 0, 0)
    ok(allocate())


@scenario
def a_stream_of_another_context():
    # GIVEN a capture that has forked into a stream of another context
    s, forked = begun(RELAXED), event()
    ok(cu.cuEventRecord(forked, s))
    first, second = get("cuCtxGetCurrent"), get("cuCtxCreate_v2", 0, 0)
    other = stream()
    ok(cu.cuStreamWaitEvent(other, forked, 0))
    assert status(other) == ACTIVE
    ok(launch(nothing(), other))
    # WHEN that context is destroyed THEN its work was not joined, and the first goes on
    ok(cu.cuCtxDestroy_v2(second))
    ok(cu.cuCtxSetCurrent(first))
    assert end(s)[1] is None
    ok(cu.cuCtxSynchronize())


@scenario
def what_the_capture_is():
    k, s = nothing(), begun()
    ok(launch(k, s))
    ok(launch(k, s))
    found, number, graph = ctypes.c_int(), ctypes.c_uint64(), Handle()
    needs, count = ctypes.POINTER(ctypes.c_void_p)(), Size()
    ok(
        cu.cuStreamGetCaptureInfo_v2(
            s,
            *map(ctypes.byref, (found, number, graph, needs, count)),
        )
    )
    assert found.value == ACTIVE
    assert number.value > 0
    assert nodes(graph.value) == 2
    assert count.value == 1
    # WHEN the next node is to come after nothing THEN it is another root, and nobody minds
    ok(cu.cuStreamUpdateCaptureDependencies(s, None, Size(0), 1))
    ok(launch(k, s))
    result, ended = end(s)
    assert result == UNJOINED or edges(ended) == 1
    assert cu.cuStreamUpdateCaptureDependencies(s, None, Size(0), 1) == ILLEGAL_STATE


@scenario
def into_a_graph_that_there_is():
    graph, root = get("cuGraphCreate", 0), Handle()
    ok(cu.cuGraphAddEmptyNode(ctypes.byref(root), graph, None, Size(0)))
    s = stream()
    ok(cu.cuStreamBeginCaptureToGraph(s, graph, ctypes.byref(root), None, Size(1), GLOBAL))
    ok(launch(nothing(), s))
    assert cu.cuGraphDestroy(graph) != OK
    result, ended = end(s)
    ok(result)
    assert ended == graph.value
    assert (nodes(ended), edges(ended)) == (2, 1)


@scenario
def callbacks_that_are_told_of_errors():
    s = begun()
    kind = ctypes.CFUNCTYPE(None, Handle, ctypes.c_int, Handle)
    assert cu.cuStreamAddCallback(s, kind(lambda *_: None), None, 0) == UNSUPPORTED


if __name__ == "__main__":
    main()
