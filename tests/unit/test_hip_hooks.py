# SPDX-License-Identifier: Apache-2.0
"""What the hooks of the HIP runtime do once they are called: who waits where, and for what.

A Python program under ctypes is the client, with the library preloaded, beside a runtime that
counts (support/hip_runtime.py) and on a board of the test's own. What all vendors' hooks have in
common (shim/gpu/hooks.h) is tested closer with CUDA's.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import hip_runtime
from support.board_host import GATE, HEAVY, BoardHost
from support.hooked import Client, says, tell
from support.stop_points import StopPoints
from support.waiting import short_directory, wait_for

BEGIN = """
driver = ctypes.CDLL("libamdhip64.so.5")
def make():
    assert driver.hipMalloc(ctypes.byref(ctypes.c_void_p()), 1) == 0
"""
KEY, OTHER = "pci:0000:1b:00.0", "pci:0000:1c:00.0"
LAUNCH = "call('hipModuleLaunchKernel', *[None] * 8, ctypes.c_void_p({stream}), None, None)"


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    return hip_runtime.build(tmp_path_factory.mktemp("runtime")).parent


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Path:
    number = "int krex_sim_device_number(int device) { return 3; }"
    return hip_runtime.build(tmp_path_factory.mktemp("simulated"), extra=number).parent


@pytest.fixture
def place():
    with short_directory() as folder:
        yield folder


@pytest.fixture
def host(place):
    found = BoardHost(place)
    yield found
    found.close()


@pytest.fixture
def points(place) -> Iterator[StopPoints]:
    found = StopPoints(place / "p")
    yield found
    found.close()


@pytest.fixture
def client(library, driver, host):
    return Client(library, driver, host, BEGIN)


# --- every function ---


def by_value(line: hip_runtime.Line) -> bool:
    """It has parameters that ctypes can't make up: structures."""
    return any(name in line.params for name in ("dim3 ", "hipExtent ", "hipMemLocation "))


def symbols_of(*kinds: str) -> list[str]:
    lines = [x for x in hip_runtime.LINES if x.kind.startswith(kinds) and not by_value(x)]
    return [x.symbol for x in lines if x.symbol not in hip_runtime.BODIES]


def test_every_submission_is_announced_once(client, host):
    symbols = symbols_of("SUBMIT")
    script = f"""
make()
symbols = {symbols}
for symbol in symbols:
    assert call(symbol) == 0, symbol
print([s for s in symbols if driver.fake_calls(s.encode()) != 1])
"""
    assert client.run(script) == "[]"
    assert host.submissions() == len(symbols) > 110


def test_every_other_function_is_none(client, host):
    symbols = symbols_of("HEAVY", "INIT", "DEVICE", "RESET", "CAPTURE", "TRACK")
    script = f"""
make()
for symbol in {symbols}:
    # Where it tells a stream, there has to be room for one.
    assert call(symbol, ctypes.create_string_buffer(64), *[None] * 11) == 0, symbol
print([s for s in {symbols} if driver.fake_calls(s.encode()) < 1])
"""
    assert client.run(script) == "[]"
    assert host.submissions() == 0


CALLS_BY_VALUE = """
class dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]
make()
one, stream = dim3(1, 2, 3), ctypes.c_void_p({stream})
for launch in (driver.hipLaunchKernel, driver.hipLaunchKernel_spt):
    launch.argtypes = [ctypes.c_void_p, dim3, dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    assert launch(None, one, one, None, 0, stream) == 0
print(*log())
"""  # noqa: E501


def test_a_launch_of_a_compiled_program_is_announced(client, host):
    # What <<<>>> becomes; its grid is passed by value.
    done = client.run(CALLS_BY_VALUE.format(stream=0)).split()
    assert done[-2:] == ["hipLaunchKernel", "hipLaunchKernel_spt"]
    assert host.submissions() == 2


# --- the gate ---


def test_a_launch_waits_at_a_closed_gate(client, host, points):
    script = f"""
make()
print("ready"); sys.stdin.readline()
print({LAUNCH.format(stream=0)}, *log()[-1:])
"""
    with client.start(script, KREX_TEST_STOP_AT=points.action) as program:
        assert says(program) == "ready"
        # GIVEN a closed gate WHEN the program launches THEN it gets to the gate, and no further
        host.swap(GATE)
        points.arm("at-the-gate")
        tell(program)
        waiting = points.wait()
        assert host.submissions() == 0 and host.in_flight() == 0
        # WHEN the gate opens THEN it goes on
        host.swap(GATE)
        waiting.go_on()
        assert says(program) == "0 hipModuleLaunchKernel"
        assert host.submissions() == 1


def test_a_captured_launch_does_not(client, host):
    script = f"""
make()
{LAUNCH.format(stream=0)}
print("ready"); sys.stdin.readline()
print({LAUNCH.format(stream="0xca")}, call("hipMemcpyAsync", 1, 2, 3, 4, ctypes.c_void_p(0xca)))
"""
    with client.start(script) as program:
        assert says(program) == "ready"
        host.swap(GATE)
        tell(program)
        assert says(program) == "0 0"
        assert host.submissions() == 1  # the one before


def test_a_heavy_call_waits_at_its_own_gate(client, host, points):
    script = f"""
make()
print("ready"); sys.stdin.readline()
print({LAUNCH.format(stream=0)})
print(call("hipMalloc"))
"""
    with client.start(script, KREX_TEST_STOP_AT=points.action) as program:
        assert says(program) == "ready"
        host.swap(HEAVY)
        points.arm("at-the-gate")
        tell(program)
        assert says(program) == "0"  # the launch, past the other gate
        waiting = points.wait()
        host.swap(HEAVY)
        waiting.go_on()
        assert says(program) == "0"


def test_a_wait_and_a_query_pass_both_gates(client, host):
    script = f"""
make()
{LAUNCH.format(stream=0)}
print("ready"); sys.stdin.readline()
assert driver.hipSetDevice(0) == 0
for name in {symbols_of("NEVER", "TRACK_WAIT", "TRACK_GONE")}:
    assert call(name) == 0, name
print("passed")
"""
    with client.start(script) as program:
        assert says(program) == "ready"
        host.swap(HEAVY)
        host.swap(GATE)
        tell(program)
        assert says(program) == "passed"


# --- the drain ---


def test_a_copy_that_waits_in_the_runtime_is_drained_not_in_flight(client, host):
    script = """
make()
print("ready"); sys.stdin.readline()
threading.Thread(target=call, args=("hipMemcpyDtoH", None, None, 1)).start()
while "hipMemcpyDtoH" not in log():
    pass
print("inside")
while "hipDeviceSynchronize" not in log():
    pass
print(*log())
"""
    with client.start(script, FAKE_SLOW="1") as program:
        assert says(program) == "ready"
        tell(program)
        assert says(program) == "inside"
        # GIVEN a copy inside the runtime WHEN the gate closes THEN it is not in flight any more,
        host.swap(GATE)
        assert host.in_flight() == 0 and host.submissions() == 1
        # AND the drain begins when it is back, so that it covers what the copy submitted
        host.ask_drain()
        tell(program)
        wait_for(host.drained)
        done = says(program).split()
        assert done.index("copied") < done.index("hipDeviceSynchronize")


def test_the_drainer_does_not_wait_in_the_runtime_while_a_stream_is_busy(client, host):
    # There it would hold a lock that the program's own calls need.
    script = """
make()
assert driver.hipStreamCreate(ctypes.byref(ctypes.c_void_p())) == 0
print("ready"); sys.stdin.readline()
while log().count("hipStreamQuery") < 3:
    pass
print("hipDeviceSynchronize" in log())
ctypes.CDLL(None).setenv(b"FAKE_BUSY", b"0", 1)
sys.stdin.readline()
print("hipDeviceSynchronize" in log())
"""
    with client.start(script, FAKE_BUSY="1") as program:
        assert says(program) == "ready"
        # GIVEN a stream that is busy WHEN the process is asked to drain
        host.ask_drain()
        tell(program)
        # THEN it asks, and asks again, and is not drained
        assert says(program) == "False"
        # AND when the stream is empty it waits for the device, and is
        wait_for(host.drained)
        tell(program)
        assert says(program) == "True"


@pytest.mark.parametrize(
    "end", ["call('hipStreamDestroy', stream)", "driver.hipDeviceReset()"], ids=["stream", "device"]
)
def test_a_stream_that_is_gone_is_not_asked_about(client, host, end):
    # GIVEN a stream that is busy for ever WHEN it is destroyed, or all streams of its device are
    script = f"""
make()
stream = ctypes.c_void_p()
assert driver.hipStreamCreate(ctypes.byref(stream)) == 0
assert {end} == 0
print("ready"); sys.stdin.readline()
"""
    with client.start(script, FAKE_BUSY="1") as program:
        assert says(program) == "ready"
        # THEN it keeps nobody waiting
        host.ask_drain()
        wait_for(host.drained)


# --- devices ---


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({}, KEY),
        ({"FAKE_ADDRESS": "0001:AF:1C.0"}, "pci:0001:af:1c.0"),
    ],
)
@pytest.mark.parametrize(
    "touch",
    [
        "make()",
        "call('hipModuleLoadData')",
        "call('hipStreamCreate', ctypes.byref(ctypes.c_void_p()))",
        "call('hipModuleLaunchKernel')",
        "call('hipMemcpy')",
        "call('hipStreamBeginCapture', ctypes.c_void_p(1), 0)",
    ],
)
def test_the_first_touch_registers_its_device_with_a_ticket(client, host, touch, environment, key):
    client.run(f"driver.hipInit(0)\n{touch}\n{touch}\nmake()", **environment)
    assert host.keys == [key] and host.tickets == [key]


def test_a_first_touch_that_is_a_submission_is_announced_too(client, host):
    client.run("call('hipModuleLaunchKernel'); call('hipModuleLaunchKernel')")
    assert host.keys == [KEY] and host.submissions() == 2


def test_a_simulated_device_has_its_number(library, simulated, host):
    Client(library, simulated, host, BEGIN).run("make()")
    assert host.keys == ["sim:3"]


def test_looking_through_the_devices_touches_none(client, host):
    client.run(
        "call('hipInit', 0); call('hipGetDeviceCount', ctypes.byref(ctypes.c_int()))\n"
        "for i in (0, 1): driver.hipSetDevice(i), call('hipGetDevicePropertiesR0600', None, i)"
    )
    assert host.keys == [] and host.notes == []


def test_without_a_device_a_call_is_passed_on(client, host):
    assert client.run("print(call('hipMalloc'), log()[-1])", FAKE_DEVICES="0") == "0 hipMalloc"
    assert host.keys == []


def test_what_we_ask_is_not_the_programs_last_error(client, host):
    # GIVEN a launch that is looked at, and a question about it that fails
    script = f"""
make()
{LAUNCH.format(stream=0)}
print("ready"); sys.stdin.readline()
print({LAUNCH.format(stream="0xcb")}, driver.hipGetLastError())
"""
    with client.start(script) as program:
        assert says(program) == "ready"
        host.swap(GATE)
        tell(program)
        # THEN the program hears nothing of it
        assert says(program) == "0 0"
    assert client.run("call('hipMalloc'); print(driver.hipGetLastError())", FAKE_DEVICES="0") == "0"


def test_the_device_is_the_threads_current_one(client, host):
    client.run("driver.hipSetDevice(1); make()")
    assert host.keys == [OTHER]


def test_a_second_device_is_reported(client, host):
    # Whoever makes it the current one may launch there: a launch is not looked at any more.
    client.run("make(); driver.hipSetDevice(1); driver.hipSetDevice(0); driver.hipSetDevice(1)")
    assert host.keys == [KEY] and host.notes == [("context_on_other_device", OTHER)]


def test_the_drain_covers_a_second_device(client, host):
    script = """
make(); driver.hipSetDevice(1)
print("ready"); sys.stdin.readline()
print(log().count("hipDeviceSynchronize"))
"""
    with client.start(script) as program:
        assert says(program) == "ready"
        host.ask_drain()
        wait_for(host.drained)
        tell(program)
        assert says(program) == "2"


# --- the program's own business ---


def test_memory_that_is_refused_is_reported(client, host):
    script = "print(call('hipMalloc', None, ctypes.c_size_t(123)))"
    assert client.run(script, FAKE_MALLOC="2") == "2"
    assert host.notes == [("allocation_refused", "123")]


def test_a_resolver_asked_before_anything_else_answers(client, host):
    script = """
found = ctypes.c_void_p()
assert driver.hipGetProcAddress(b"hipInit", ctypes.byref(found), 502, ctypes.c_uint64(0), None) == 0
print(found.value == ctypes.cast(driver.hipInit, ctypes.c_void_p).value)
"""
    assert client.run(script) == "True"
    assert host.keys == []


def test_the_hook_of_a_launch_can_be_measured(library):
    # GIVEN no runtime WHEN krex eval overhead asks THEN what the hook calls is a stand-in
    script = """
import ctypes, sys
ns = (ctypes.c_double * 5)()
calls, rounds = ctypes.c_uint64(100), ctypes.c_uint32(1)
print(ctypes.CDLL(sys.argv[1]).krex_eval_overhead(b"hip", calls, rounds, ns), min(ns) > 0)
"""
    words = [sys.executable, "-c", script, library]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0 True\n"
