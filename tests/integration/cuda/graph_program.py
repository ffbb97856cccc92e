# SPDX-License-Identifier: Apache-2.0
"""Graphs, one behaviour a scenario (see cu.py)."""

import ctypes

from cu import (
    CAPTURED_EVENT,
    GLOBAL,
    INVALID_VALUE,
    NOT_READY,
    OK,
    UPDATE_FAILURE,
    Address,
    Float,
    Floats,
    Handle,
    Size,
    cu,
    event,
    function,
    get,
    launch,
    main,
    module,
    ok,
    pointers,
    scenario,
    stream,
)

TOPOLOGY_CHANGED, TYPE_CHANGED = 2, 3
KERNEL, COPY, FILL, HOST, GRAPH, EMPTY = range(6)


class KernelParams(ctypes.Structure):
    _fields_ = (
        ("function", Handle),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", Handle),
        ("context", Handle),
    )


class FillParams(ctypes.Structure):
    _fields_ = (
        ("to", Address),
        ("pitch", Size),
        ("value", ctypes.c_uint),
        ("element", ctypes.c_uint),
        ("width", Size),
        ("height", Size),
    )


class HostParams(ctypes.Structure):
    _fields_ = (("function", ctypes.c_void_p), ("argument", ctypes.c_void_p))


class CopyParams(ctypes.Structure):
    _fields_ = (
        *((f"src_{name}", Size) for name in ("x", "y", "z", "lod")),
        ("src_type", ctypes.c_uint),
        ("src_host", ctypes.c_void_p),
        ("src_device", Address),
        ("src_array", ctypes.c_void_p),
        ("reserved0", ctypes.c_void_p),
        ("src_pitch", Size),
        ("src_height", Size),
        *((f"dst_{name}", Size) for name in ("x", "y", "z", "lod")),
        ("dst_type", ctypes.c_uint),
        ("dst_host", ctypes.c_void_p),
        ("dst_device", Address),
        ("dst_array", ctypes.c_void_p),
        ("reserved1", ctypes.c_void_p),
        ("dst_pitch", Size),
        ("dst_height", Size),
        ("width", Size),
        ("height", Size),
        ("depth", Size),
    )


class UpdateResult(ctypes.Structure):
    _fields_ = (("result", ctypes.c_uint), ("node", Handle), ("from_node", Handle))


def kernel_params(kernel, *arguments):
    """With the arguments alive as long as it is."""
    params = KernelParams(kernel, (1, 1, 1), (32, 1, 1), 0)
    params.kept = (arguments, pointers(arguments))
    params.parameters = ctypes.addressof(params.kept[1])
    return params


def add(kind, graph, needs, *more):
    """A new node of a graph."""
    list_of = (Handle * len(needs))(*needs)
    return get(f"cuGraphAdd{kind}", graph, list_of, Size(len(needs)), *more)


def add_kernel(graph, needs, kernel, *arguments):
    params = kernel_params(kernel, *arguments)
    return add("KernelNode_v2", graph, needs, ctypes.byref(params))


def instantiate(graph):
    return get("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))


def run(graph):
    """Launch it once, to its end."""
    s, made = stream(), instantiate(graph)
    ok(cu.cuGraphLaunch(made, s))
    ok(cu.cuStreamSynchronize(s))
    ok(cu.cuGraphExecDestroy(made))


def scaled(graph, needs, x, factor, scale):
    return add_kernel(graph, needs, scale, x.at, Float(factor), x.count)


def captured(s, submit):
    ok(cu.cuStreamBeginCapture_v2(s, GLOBAL))
    submit()
    return get_captured(s)


def get_captured(s):
    graph = Handle()
    ok(cu.cuStreamEndCapture(s, ctypes.byref(graph)))
    return graph


def count(name, of):
    number = Size()
    arguments = (None, None) if name.endswith("Edges") else (None,)
    ok(getattr(cu, name)(of, *arguments, ctypes.byref(number)))
    return number.value


@scenario
def a_launch_does_what_was_captured_each_time():
    x, s = Floats(1, 2, 3), stream()
    scale = function(module(), "krex_scale_f32")
    graph = captured(s, lambda: ok(launch(scale, s, x.at, Float(2), x.count)))
    assert x.read() == [1, 2, 3]
    made = instantiate(graph)
    ok(cu.cuGraphDestroy(graph))
    for _ in range(3):
        ok(cu.cuGraphLaunch(made, s))
    ok(cu.cuStreamSynchronize(s))
    assert x.read() == [8, 16, 24]


@scenario
def a_host_source_is_read_when_the_graph_runs():
    # GIVEN a captured copy from memory that the program changes afterwards
    x, s = Floats(0, 0), stream()
    source = get("cuMemAllocHost_v2", Size(8), kind=ctypes.POINTER(Float))
    source[0], source[1] = 1, 2
    graph = captured(s, lambda: ok(cu.cuMemcpyHtoDAsync_v2(x.at, source, x.bytes, s)))
    source[0], source[1] = 5, 6
    run(graph)
    assert x.read() == [5, 6]


@scenario
def nodes_run_behind_what_they_need():
    # GIVEN nodes that were added against their order, which the edges say
    x = Floats(1)
    scale = function(module(), "krex_scale_f32")
    graph = get("cuGraphCreate", 0)
    last = scaled(graph, [], x, 10, scale)
    fill = FillParams(x.at, 0, 0x40000000, 4, 1, 1)
    context = get("cuCtxGetCurrent")
    first = add("MemsetNode", graph, [], ctypes.byref(fill), context)
    middle = add("EmptyNode", graph, [first])
    ok(cu.cuGraphAddDependencies(graph, ctypes.byref(middle), ctypes.byref(last), Size(1)))
    run(graph)
    assert x.read() == [20]


@scenario
def what_is_in_a_graph():
    graph, kind = get("cuGraphCreate", 0), ctypes.c_int()
    root = add("EmptyNode", graph, [])
    left, right = (add("EmptyNode", graph, [root]) for _ in range(2))
    bottom = add("EmptyNode", graph, [left, right])
    assert count("cuGraphGetNodes", graph) == 4
    assert count("cuGraphGetRootNodes", graph) == 1
    assert count("cuGraphGetEdges", graph) == 4
    assert count("cuGraphNodeGetDependencies", bottom) == 2
    assert count("cuGraphNodeGetDependentNodes", root) == 2
    ok(cu.cuGraphNodeGetType(root, ctypes.byref(kind)))
    assert kind.value == EMPTY
    ok(cu.cuGraphDestroyNode(left))
    assert count("cuGraphGetEdges", graph) == 2
    clone = get("cuGraphClone", graph)
    found = get("cuGraphNodeFindInClone", bottom, clone)
    assert found.value != bottom.value
    assert count("cuGraphNodeGetDependencies", found) == 1


@scenario
def fewer_are_given_than_there_are():
    graph = get("cuGraphCreate", 0)
    only = add("EmptyNode", graph, [])
    room, number = (Handle * 3)(1, 1, 1), Size(3)
    ok(cu.cuGraphGetNodes(graph, room, ctypes.byref(number)))
    assert (number.value, list(room)) == (1, [only.value, None, None])


@scenario
def a_circle():
    graph = get("cuGraphCreate", 0)
    one = add("EmptyNode", graph, [])
    two = add("EmptyNode", graph, [one])
    ok(cu.cuGraphAddDependencies(graph, ctypes.byref(two), ctypes.byref(one), Size(1)))
    made = Handle()
    result = cu.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0))
    assert result == INVALID_VALUE


@scenario
def copies_and_callbacks():
    # GIVEN a graph that copies out what a kernel made, and then calls the program
    x, seen, to = Floats(3, 4), [], (Float * 2)()
    scale = function(module(), "krex_scale_f32")
    graph, context = get("cuGraphCreate", 0), get("cuCtxGetCurrent")
    doubled = scaled(graph, [], x, 2, scale)
    copy = CopyParams(src_type=2, src_device=x.at, dst_type=1, width=8, height=1, depth=1)
    copy.dst_host = ctypes.addressof(to)
    copied = add("MemcpyNode", graph, [doubled], ctypes.byref(copy), context)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(list(to)))
    host = HostParams(ctypes.cast(call, ctypes.c_void_p))
    add("HostNode", graph, [copied], ctypes.byref(host))
    run(graph)
    assert seen == [[6, 8]]


@scenario
def a_graph_in_a_graph():
    x = Floats(1)
    scale = function(module(), "krex_scale_f32")
    child, graph = get("cuGraphCreate", 0), get("cuGraphCreate", 0)
    inner = scaled(child, [], x, 3, scale)
    before = scaled(graph, [], x, 2, scale)
    node = add("ChildGraphNode", graph, [before], child)
    ok(cu.cuGraphDestroy(child))
    own = Handle()
    ok(cu.cuGraphChildGraphNodeGetGraph(node, ctypes.byref(own)))
    assert count("cuGraphGetNodes", own) == 1
    assert cu.cuGraphNodeGetType(inner, ctypes.byref(ctypes.c_int())) == INVALID_VALUE
    run(graph)
    assert x.read() == [6]


@scenario
def a_graph_in_a_capture():
    x, s = Floats(1), stream()
    scale = function(module(), "krex_scale_f32")
    inner = get("cuGraphCreate", 0)
    scaled(inner, [], x, 3, scale)
    made = instantiate(inner)
    graph = captured(s, lambda: ok(cu.cuGraphLaunch(made, s)))
    assert x.read() == [1]
    run(graph)
    assert x.read() == [3]


@scenario
def parameters_can_be_changed():
    x = Floats(1)
    scale = function(module(), "krex_scale_f32")
    graph = get("cuGraphCreate", 0)
    node = scaled(graph, [], x, 2, scale)
    made, s = instantiate(graph), stream()
    params = kernel_params(scale, x.at, Float(5), x.count)
    ok(cu.cuGraphExecKernelNodeSetParams_v2(made, node, ctypes.byref(params)))
    ok(cu.cuGraphLaunch(made, s))
    ok(cu.cuStreamSynchronize(s))
    assert x.read() == [5]
    run(graph)  # what it was made of is as it was
    assert x.read() == [10]


@scenario
def an_update_of_the_same_shape():
    x, s, outcome = Floats(1), stream(), UpdateResult()
    scale = function(module(), "krex_scale_f32")
    graphs = [
        captured(s, lambda f=f: ok(launch(scale, s, x.at, Float(f), x.count))) for f in (2, 7)
    ]
    made = instantiate(graphs[0])
    ok(cu.cuGraphExecUpdate_v2(made, graphs[1], ctypes.byref(outcome)))
    assert outcome.result == 0
    ok(cu.cuGraphLaunch(made, s))
    ok(cu.cuStreamSynchronize(s))
    assert x.read() == [7]


@scenario
def an_update_of_another_shape():
    graph, longer, other = (get("cuGraphCreate", 0) for _ in range(3))
    x, outcome = Floats(1), UpdateResult()
    scale = function(module(), "krex_scale_f32")
    scaled(graph, [], x, 2, scale)
    scaled(longer, [scaled(longer, [], x, 2, scale)], x, 2, scale)
    node = add("EmptyNode", other, [])
    made = instantiate(graph)
    assert cu.cuGraphExecUpdate_v2(made, longer, ctypes.byref(outcome)) == UPDATE_FAILURE
    assert outcome.result == TOPOLOGY_CHANGED
    assert cu.cuGraphExecUpdate_v2(made, other, ctypes.byref(outcome)) == UPDATE_FAILURE
    assert (outcome.result, outcome.node) == (TYPE_CHANGED, node.value)


@scenario
def an_event_in_a_graph():
    s, recorded = stream(), event()
    graph = get("cuGraphCreate", 0)
    spin = function(module(), "krex_spin")
    slow = add_kernel(graph, [], spin, ctypes.c_uint64(1_000_000))
    add("EventRecordNode", graph, [slow], recorded)
    made, begin, ms = instantiate(graph), event(), Float()
    ok(cu.cuEventRecord(begin, s))
    ok(cu.cuGraphLaunch(made, s))
    assert cu.cuEventQuery(recorded) in (OK, NOT_READY)
    assert cu.cuEventQuery(recorded) != CAPTURED_EVENT
    ok(cu.cuEventSynchronize(recorded))
    ok(cu.cuEventElapsedTime(ctypes.byref(ms), begin, recorded))
    assert ms.value >= 1


@scenario
def a_module_is_kept_by_the_graphs_that_run_it():
    x, loaded, s = Floats(1), module(), stream()
    graph = get("cuGraphCreate", 0)
    scaled(graph, [], x, 2, function(loaded, "krex_scale_f32"))
    made = instantiate(graph)
    ok(cu.cuGraphDestroy(graph))
    ok(cu.cuModuleUnload(loaded))
    module()
    ok(cu.cuGraphLaunch(made, s))
    ok(cu.cuStreamSynchronize(s))
    assert x.read() == [2]
    ok(cu.cuGraphExecDestroy(made))


@scenario
def a_chain_that_is_long():
    # GIVEN more nodes than the launch queue has places
    x, nodes = Floats(0, 0), 3000
    add_f32 = function(module(), "krex_add_f32")
    one = Floats(1, 1)
    graph, node = get("cuGraphCreate", 0), None
    for _ in range(nodes):
        needs = [node] if node else []
        node = add_kernel(graph, needs, add_f32, x.at, one.at, x.at, x.count)
    run(graph)
    assert x.read() == [nodes, nodes]


@scenario
def handles_that_are_none():
    graph = get("cuGraphCreate", 0)
    ok(cu.cuGraphDestroy(graph))
    assert cu.cuGraphDestroy(graph) == INVALID_VALUE
    assert cu.cuGraphLaunch(Handle(64), None) == INVALID_VALUE
    other, own = get("cuGraphCreate", 0), get("cuGraphCreate", 0)
    node, made = add("EmptyNode", other, []), Handle()
    result = cu.cuGraphAddEmptyNode(ctypes.byref(made), own, ctypes.byref(node), Size(1))
    assert result == INVALID_VALUE


if __name__ == "__main__":
    main()
