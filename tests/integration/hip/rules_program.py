# SPDX-License-Identifier: Apache-2.0
"""What HIP says that has to happen, one scenario at a time (see test_rules.py)."""

import ctypes
from typing import Any

from hiprt import (
    GLOBAL,
    IMPLICIT,
    INVALID_CONFIGURATION,
    INVALID_DIRECTION,
    INVALID_FUNCTION,
    INVALID_IMAGE,
    INVALID_VALUE,
    LAUNCH_FAILURE,
    NO_BINARY,
    NOT_FOUND,
    NOT_READY,
    NOT_SUPPORTED,
    OK,
    RELAXED,
    UNSUPPORTED,
    Dim3,
    Float,
    Floats,
    Handle,
    Int,
    Size,
    code,
    event,
    function,
    get,
    hip,
    in_thread,
    launch,
    main,
    module,
    ok,
    pointers,
    scenario,
    stream,
)

MS = 1_000_000
LONG = ctypes.c_int64(20 * MS)
ONE = Dim3(1, 1, 1)


def spin(of: Any) -> Any:
    return function(of, "krex_spin")


def filled(of: Any, floats: Floats, value: float, on: Any) -> None:
    kernel = function(of, "krex_fill_f32")
    ok(launch(kernel, on, floats.at, Float(value), floats.count))


@scenario
def null_stream_waits_for_blocking_streams() -> None:
    loaded = module()
    floats, blocking, beside = Floats(0), stream(flags=0), stream()
    ok(launch(spin(loaded), blocking, LONG))
    filled(loaded, floats, 1, blocking)
    # The null stream's copy comes behind it, and none of another stream's would.
    assert floats.read() == [1]
    ok(launch(spin(loaded), beside, LONG))
    filled(loaded, floats, 2, beside)
    assert floats.read() == [1]
    ok(hip.hipDeviceSynchronize())
    assert floats.read() == [2]


@scenario
def spt_forms_take_the_threads_own_stream() -> None:
    loaded = module()
    ok(launch(spin(loaded), stream(flags=0), LONG))
    assert hip.hipStreamQuery_spt(None) == OK
    ok(launch(spin(loaded), None, LONG))
    assert hip.hipStreamQuery(None) == NOT_READY
    per_thread = Handle(2)
    ok(launch(spin(loaded), per_thread, LONG))
    assert hip.hipStreamQuery_spt(None) == NOT_READY
    assert in_thread(lambda: hip.hipStreamQuery_spt(None)) == OK
    ok(hip.hipDeviceSynchronize())


@scenario
def events_order_streams() -> None:
    loaded = module()
    first, second, floats, done = stream(), stream(), Floats(0, 0), event()
    ok(launch(spin(loaded), first, LONG))
    filled(loaded, floats, 3, first)
    ok(hip.hipEventRecord(done, first))
    ok(hip.hipStreamWaitEvent(second, done, 0))
    scale = function(loaded, "krex_scale_f32")
    ok(launch(scale, second, floats.at, Float(2), floats.count))
    assert hip.hipEventQuery(done) == NOT_READY
    ok(hip.hipStreamSynchronize(second))
    assert hip.hipEventQuery(done) == OK
    assert floats.read() == [6, 6]


@scenario
def errors_are_remembered_until_they_are_read() -> None:
    nothing = get("hipMalloc", Size(64))
    assert hip.hipMemcpy(nothing, nothing, 8, 99) == INVALID_DIRECTION
    ok(hip.hipDeviceSynchronize())
    assert hip.hipPeekAtLastError() == INVALID_DIRECTION
    assert in_thread(hip.hipPeekAtLastError) == OK
    assert hip.hipGetLastError() == INVALID_DIRECTION
    assert hip.hipGetLastError() == OK
    loaded, on = module(), stream()
    ok(launch(spin(loaded), on, LONG))
    assert hip.hipStreamQuery(on) == NOT_READY
    assert hip.hipGetLastError() == OK
    assert hip.hipGetErrorName(INVALID_DIRECTION) == b"hipErrorInvalidMemcpyDirection"


@scenario
def launches_are_checked() -> None:
    loaded = module()
    nothing, small = function(loaded, "nothing"), function(loaded, "blocks_of_64")
    ok(launch(nothing, None, threads=1024))
    assert launch(nothing, None, threads=1025) == INVALID_CONFIGURATION
    assert launch(nothing, None, threads=0) == INVALID_CONFIGURATION
    assert launch(nothing, None, blocks=0) == INVALID_VALUE
    assert launch(small, None, Floats(*[0] * 64).at, threads=128) == LAUNCH_FAILURE
    missing = Handle()
    assert hip.hipModuleGetFunction(ctypes.byref(missing), loaded, b"gone") == NOT_FOUND
    assert hip.hipLaunchKernel(ctypes.addressof(missing), ONE, ONE, None, Size(0), None) == (
        INVALID_FUNCTION
    )
    shared = get("hipFuncGetAttribute", 1, small, kind=Int)
    limit = get("hipFuncGetAttribute", 0, small, kind=Int)
    assert (shared.value, limit.value) == (256, 64)


@scenario
def arguments_may_come_packed() -> None:
    class Packed(ctypes.Structure):
        _fields_ = (("n", ctypes.c_int32), ("a", Float), ("x", Handle), ("y", Handle))

    axpy = function(module(), "krex_axpy_f32")
    x, y = Floats(1, 2, 3), Floats(10, 10, 10)
    packed = Packed(3, 2, x.at, y.at)
    size = Size(ctypes.sizeof(packed))
    extra = (Handle * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 3)
    ok(hip.hipModuleLaunchKernel(axpy, 1, 1, 1, 64, 1, 1, 0, None, None, extra))
    assert y.read() == [12, 14, 16]
    both = pointers((ctypes.c_int32(3),))
    assert hip.hipModuleLaunchKernel(axpy, 1, 1, 1, 64, 1, 1, 0, None, both, extra) == INVALID_VALUE


@scenario
def ext_launches_count_threads_and_record_events() -> None:
    loaded, on = module(), stream()
    before, after = event(), event()
    arguments = pointers((ctypes.c_int64(2 * MS),))
    launches = (
        hip.hipExtModuleLaunchKernel,
        hip._Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j,
    )
    for ext in launches:
        ok(launch(spin(loaded), on, LONG))
        sizes = (64, 1, 1, 64, 1, 1, Size(0))
        ok(ext(spin(loaded), *sizes, on, arguments, None, before, after, 0))
        ok(hip.hipEventSynchronize(after))
        took = get("hipEventElapsedTime", before, after, kind=Float).value
        assert abs(took - 2) < 0.02, took


@scenario
def older_launches_gather_arguments() -> None:
    axpy = get("hipGetFuncBySymbol", function(module(), "krex_axpy_f32"))
    x, y = Floats(1, 2), Floats(0, 0)
    ok(hip.hipConfigureCall(ONE, Dim3(64, 1, 1), Size(0), None))
    for value, offset in ((ctypes.c_int32(2), 0), (Float(3), 4), (x.at, 8), (y.at, 16)):
        ok(hip.hipSetupArgument(ctypes.byref(value), Size(ctypes.sizeof(value)), Size(offset)))
    ok(hip.hipLaunchByPtr(axpy))
    assert y.read() == [3, 6]
    assert hip.hipLaunchByPtr(axpy) == INVALID_CONFIGURATION


@scenario
def graphs_are_captured_and_launched() -> None:
    loaded, on, floats = module(), stream(), Floats(0, 0)
    ok(hip.hipStreamBeginCapture(on, GLOBAL))
    filled(loaded, floats, 5, on)
    scale = function(loaded, "krex_scale_f32")
    ok(launch(scale, on, floats.at, Float(2), floats.count))
    assert floats.count.value == 2
    graph = get_second("hipStreamEndCapture", on)
    executable = get("hipGraphInstantiate", graph, None, None, Size(0))
    nodes = Size()
    ok(hip.hipGraphGetNodes(graph, None, ctypes.byref(nodes)))
    assert nodes.value == 2
    assert floats.read() == [0, 0]
    ok(hip.hipGraphLaunch(executable, on))
    ok(hip.hipStreamSynchronize(on))
    assert floats.read() == [10, 10]


def get_second(name: str, first: Any) -> Any:
    given = Handle()
    ok(getattr(hip, name)(first, ctypes.byref(given)))
    return given


@scenario
def captures_forbid_what_would_wait() -> None:
    loaded, on = module(), stream(flags=0)
    assert hip.hipStreamBeginCapture(None, RELAXED) == UNSUPPORTED
    ok(hip.hipStreamBeginCapture(on, RELAXED))
    assert launch(spin(loaded), None, LONG) == IMPLICIT
    graph = Handle()
    assert hip.hipStreamEndCapture(on, ctypes.byref(graph)) != OK
    assert not graph.value


@scenario
def graphs_are_made_of_nodes() -> None:
    class Kernel(ctypes.Structure):
        _fields_ = (
            ("block", Dim3),
            ("extra", Handle),
            ("function", Handle),
            ("grid", Dim3),
            ("parameters", Handle),
            ("shared", ctypes.c_uint),
        )

    class Fill(ctypes.Structure):
        _fields_ = (
            ("to", Handle),
            ("element", ctypes.c_uint),
            ("height", Size),
            ("pitch", Size),
            ("value", ctypes.c_uint),
            ("width", Size),
        )

    loaded, x, y = module(), Floats(1, 2), Floats(7, 7)
    graph = get("hipGraphCreate", 0)
    zero = Fill(y.at, 4, 1, 0, 0, 2)
    first = get("hipGraphAddMemsetNode", graph, None, Size(0), ctypes.byref(zero))
    arguments = pointers((ctypes.c_int32(2), Float(3), x.at, y.at))
    axpy = function(loaded, "krex_axpy_f32")
    kernel = Kernel(Dim3(64, 1, 1), None, axpy, ONE, ctypes.cast(arguments, Handle), 0)
    needs = (Handle * 1)(first)
    get("hipGraphAddKernelNode", graph, needs, Size(1), ctypes.byref(kernel))
    executable = get("hipGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
    ok(hip.hipGraphLaunch(executable, None))
    ok(hip.hipStreamSynchronize(None))
    assert y.read() == [3, 6]


@scenario
def words_order_streams() -> None:
    loaded, on, floats = module(), stream(), Floats(0)
    word = get("hipHostMalloc", Size(8), 0)
    at = ctypes.cast(word, ctypes.POINTER(ctypes.c_uint32))
    at[0] = 0xF0
    # Only what the mask leaves is compared.
    ok(hip.hipStreamWaitValue32(on, word, 1, 1, 0x0F))
    filled(loaded, floats, 4, on)
    assert hip.hipStreamQuery(on) == NOT_READY
    at[0] = 0xF1
    ok(hip.hipStreamSynchronize(on))
    assert floats.read() == [4]
    ok(hip.hipStreamWriteValue32(on, word, 9, 0))
    ok(hip.hipStreamSynchronize(on))
    assert at[0] == 9


@scenario
def modules_have_variables() -> None:
    loaded = module()
    address, size = Handle(), Size()
    ok(hip.hipModuleGetGlobal(ctypes.byref(address), ctypes.byref(size), loaded, b"counter"))
    value = ctypes.c_int32()
    ok(hip.hipMemcpy(ctypes.addressof(value), address, 4, 2))
    assert (value.value, size.value) == (7, 4)
    assert hip.hipModuleGetGlobal(ctypes.byref(address), None, loaded, b"krex_spin.kd") == NOT_FOUND


@scenario
def libraries_are_of_no_device() -> None:
    library = get("hipLibraryLoadData", code(), None, None, 0, None, None, 0)
    kernel = get("hipLibraryGetKernel", library, b"krex_fill_f32")
    assert get("hipLibraryGetKernelCount", library, kind=Int).value == 10
    for device in range(2):
        ok(hip.hipSetDevice(device))
        floats = Floats(0, 0)
        ok(launch(kernel, None, floats.at, Float(3), floats.count))
        ok(launch(get("hipKernelGetFunction", kernel), None, floats.at, Float(4), floats.count))
        assert floats.read() == [4, 4]
    ok(hip.hipLibraryUnload(library))


@scenario
def images_are_checked() -> None:
    image, to = code(), Handle()
    wrong = bytearray(image)
    wrong[18] = 190  # the machine: a cubin
    assert hip.hipModuleLoadData(ctypes.byref(to), bytes(wrong)) == INVALID_IMAGE
    host = b"host-x86_64-unknown-linux--"
    numbers = (1, 4096, 0, len(host))
    bundle = b"__CLANG_OFFLOAD_BUNDLE__" + b"".join(n.to_bytes(8, "little") for n in numbers)
    assert hip.hipModuleLoadData(ctypes.byref(to), (bundle + host).ljust(4200, b"\0")) == NO_BINARY
    assert hip.hipModuleLoadData(ctypes.byref(to), b"CCOB" + bytes(60)) == NOT_SUPPORTED


@scenario
def addresses_are_known() -> None:
    class Attributes(ctypes.Structure):
        _fields_ = (
            ("type", Int),
            ("device", Int),
            ("on_device", Handle),
            ("on_host", Handle),
            ("managed", Int),
            ("flags", ctypes.c_uint),
        )

    device, managed = get("hipMalloc", Size(64)), get("hipMallocManaged", Size(64), 1)
    here = (ctypes.c_char * 64)()
    found = {}
    for name, at in (("device", device), ("managed", managed), ("here", ctypes.addressof(here))):
        attributes = Attributes()
        ok(hip.hipPointerGetAttributes(ctypes.byref(attributes), Handle(getattr(at, "value", at))))
        found[name] = (attributes.type, attributes.managed)
    assert found == {"device": (2, 0), "managed": (3, 1), "here": (0, 0)}


@scenario
def contexts_are_devices() -> None:
    first = get("hipDevicePrimaryCtxRetain", 0)
    second = get("hipCtxCreate", 0, 1)
    assert first.value != second.value
    assert get("hipGetDevice", kind=Int).value == 1
    assert get("hipCtxPopCurrent").value == second.value
    assert get("hipGetDevice", kind=Int).value == 0
    ok(hip.hipSetDevice(1))
    assert get("hipCtxGetCurrent").value == second.value
    assert in_thread(lambda: get("hipGetDevice", kind=Int).value) == 0


@scenario
def functions_are_given_out() -> None:
    status = ctypes.c_uint()

    def ask(name: bytes, version: int, flags: int = 0) -> Any:
        given = Handle()
        found = hip.hipGetProcAddress(
            name, ctypes.byref(given), version, ctypes.c_uint64(flags), ctypes.byref(status)
        )
        return given.value if found == OK else None

    def of(name: str) -> Any:
        return ctypes.cast(getattr(hip, name), Handle).value

    assert ask(b"hipMalloc", 0) == of("hipMalloc")
    assert ask(b"hipStreamQuery", 0, 2) == of("hipStreamQuery_spt")
    assert ask(b"hipGetDeviceProperties", 502) == of("hipGetDeviceProperties")
    assert ask(b"hipGetDeviceProperties", 70100000) == of("hipGetDevicePropertiesR0600")
    assert ask(b"hipNever", 0) is None and status.value == 1
    assert ask(b"hipTexRefSetFlags", 0) == of("hipTexRefSetFlags")
    assert hip.hipTexRefSetFlags(None, 0) == NOT_SUPPORTED


@scenario
def faults_end_the_program() -> None:
    loaded = module()
    nowhere = Handle(1 << 40)
    ok(launch(function(loaded, "krex_fill_f32"), None, nowhere, Float(1), ctypes.c_int32(4)))
    hip.hipDeviceSynchronize()


main()
