# SPDX-License-Identifier: Apache-2.0
"""What the hooks of the CUDA driver do once they are called: who waits where, and for what.

A Python program under ctypes is the client, with the library preloaded, beside a driver that counts
(support/cuda_driver.py) and on a board of the test's own.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import cuda_driver
from support.board_host import GATE, HEAVY, BoardHost
from support.hooked import Client, says, tell
from support.stop_points import StopPoints
from support.waiting import DEADLINE_S, short_directory, wait_for

BEGIN = """
driver = ctypes.CDLL("libcuda.so.1")
def make():
    assert driver.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0
"""
LAUNCH = "call('cuLaunchKernel', *[None] * 8, ctypes.c_void_p({stream}), None, None)"


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    return cuda_driver.build(tmp_path_factory.mktemp("driver")).parent


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Path:
    number = "int krex_sim_device_number(CUdevice d) { return 3; }"
    return cuda_driver.build(tmp_path_factory.mktemp("simulated"), extra=number).parent


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


def test_every_submission_is_announced_once(client, host):
    symbols = [line.symbol for line in cuda_driver.LINES if line.kind.startswith("SUBMIT")]
    script = f"""
make()
symbols = {symbols}
for symbol in symbols:
    assert call(symbol) == 0, symbol
print([s for s in symbols if driver.fake_calls(s.encode()) != 1])
"""
    assert client.run(script) == "[]"
    assert host.submissions() == len(symbols) > 200


def test_every_other_function_is_none(client, host):
    kinds = ("HEAVY", "CAPTURE", "NEVER", "PASS")
    answering = set(cuda_driver.BODIES)
    lines = [line for line in cuda_driver.LINES if line.kind.startswith(kinds)]
    symbols = [line.symbol for line in lines if line.symbol not in answering]
    script = f"""
make()
for symbol in {symbols}:
    assert call(symbol) == 0, symbol
"""
    client.run(script)
    assert host.submissions() == 0


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
        assert says(program) == "0 cuLaunchKernel"
        assert host.longest_wait_ns() > 0 and host.submissions() == 1


def test_a_captured_launch_does_not(client, host):
    # Held up, it would hold up the end of its capture, which a region has to wait for.
    script = f"""
make()
{LAUNCH.format(stream=0)}
print("ready"); sys.stdin.readline()
print({LAUNCH.format(stream="0xca")}, call("cuMemcpyAsync", 1, 2, 3, ctypes.c_void_p(0xca)))
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
print(call("cuMemAlloc_v2"))
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


def test_what_a_program_tidies_up_at_its_end_waits_for_nobody(client, host):
    # atexit of C, and registered before the library knows of a context: as runtimes do.
    script = """
free = ctypes.CFUNCTYPE(None)(lambda: print(call("cuMemFree_v2", 0), log()[-1]))
ctypes.CDLL(None).__cxa_atexit(free, None, None)
make()
print("ready"); sys.stdin.readline()
sys.stdout.flush()
ctypes.CDLL(None).exit(0)
"""
    with client.start(script) as program:
        assert says(program) == "ready"
        host.swap(HEAVY)
        host.swap(GATE)
        tell(program)
        assert says(program) == "0 cuMemFree_v2"
        assert program.wait(DEADLINE_S) == 0


def test_a_copy_that_waits_in_the_driver_is_drained_not_in_flight(client, host):
    script = """
make()
print("ready"); sys.stdin.readline()
threading.Thread(target=call, args=("cuMemcpyDtoH_v2", None, None, 1)).start()
while "cuMemcpyDtoH_v2" not in log():
    pass
print("inside")
while "cuEventQuery" not in log():
    pass
print(*log())
"""
    with client.start(script, FAKE_SLOW="1") as program:
        assert says(program) == "ready"
        tell(program)
        assert says(program) == "inside"
        # GIVEN a copy inside the driver WHEN the gate closes THEN it is not in flight any more,
        host.swap(GATE)
        assert host.in_flight() == 0 and host.submissions() == 1
        # AND the drain begins when it is back, so that it covers what the copy submitted
        host.ask_drain()
        tell(program)
        wait_for(host.drained)
        done = says(program).split()
        assert done.index("copied") < done.index("cuCtxRecordEvent") < done.index("cuEventQuery")


# --- contexts ---


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({}, "pci:0000:1b:00.0"),
        ({"FAKE_ADDRESS": "0001:AF:1C.0"}, "pci:0001:af:1c.0"),
        ({"FAKE_ADDRESS": "00000000:65:00.0"}, "pci:0000:65:00.0"),
        ({"FAKE_UUID": "18"}, "mig:12121212-1212-1212-1212-121212121212"),
        ({"FAKE_NAME": "NVIDIA H100 MIG 1g.10gb"}, "mig:abababab-abab-abab-abab-abababababab"),
    ],
)
@pytest.mark.parametrize(
    "making",
    ["make()", "driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)"],
    ids=["own", "primary"],
)
def test_the_first_context_registers_its_device(client, host, making, environment, key):
    client.run(f"driver.cuInit(0)\n{making}", **environment)
    assert host.keys == [key] and host.tickets == [key]


def test_a_simulated_device_has_its_number(library, simulated, host):
    Client(library, simulated, host, BEGIN).run("make()")
    assert host.keys == ["sim:3"]


def test_initialising_alone_is_no_context(client, host):
    # Nobody knows on which device it would be.
    client.run("driver.cuInit(0)")
    assert host.keys == []


def test_a_primary_context_that_is_active_needs_no_ticket(client, host):
    script = "driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)\n"
    client.run(script + LAUNCH.format(stream=0), FAKE_ACTIVE="1")
    # It is handed out and not made; the process is registered for it all the same.
    assert host.tickets == [] and host.keys == ["pci:0000:1b:00.0"] and host.submissions() == 1


def test_a_context_made_past_the_hooks_is_learnt_at_the_first_submission(client, host):
    # GIVEN a context that came by a table of functions
    script = """
driver.fake_function.restype = ctypes.c_void_p
create = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
create(driver.fake_function(b"cuCtxCreate_v2"))(ctypes.byref(ctypes.c_void_p()), 0, 0)
"""
    client.run(script + LAUNCH.format(stream=0))
    assert host.keys == ["pci:0000:1b:00.0"] and host.submissions() == 1


def test_a_context_on_another_device_is_reported(place, client, host):
    client.run("make(); ctypes.CDLL(None).setenv(b'FAKE_ADDRESS', b'0:2:0.0', 1); make(); make()")
    assert host.keys == ["pci:0000:1b:00.0"]
    assert host.notes == [("context_on_other_device", "pci:0000:02:00.0")]


ENDS = """
{make}
{launch}
{end}
print("ready"); sys.stdin.readline()
print(*log())
"""
OWN = "made = ctypes.c_void_p(); driver.cuCtxCreate_v2(ctypes.byref(made), 0, 0)"
RETAIN = "driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)"


@pytest.mark.parametrize(
    ("make", "end", "active", "gone"),
    [
        (OWN, "driver.cuCtxDestroy_v2(made)", 0, True),
        (OWN, "driver.cuCtxDestroy(made)", 0, True),
        (RETAIN, "driver.cuDevicePrimaryCtxRelease_v2(0)", 0, True),
        (RETAIN, "driver.cuDevicePrimaryCtxRelease_v2(0)", 1, False),  # somebody else keeps it
        (RETAIN, "driver.cuDevicePrimaryCtxReset_v2(0)", 1, True),
        (OWN, "driver.cuDevicePrimaryCtxReset_v2(0)", 0, False),  # another one
    ],
)
def test_a_context_that_is_gone_is_left_alone(client, host, make, end, active, gone):
    # GIVEN a context that has ended, or not WHEN the process is drained
    script = ENDS.format(make=make, launch=LAUNCH.format(stream=0), end=end)
    with client.start(script, FAKE_ACTIVE=str(active)) as program:
        assert says(program) == "ready"
        host.ask_drain()
        wait_for(host.drained)
        tell(program)
        # THEN the drain has touched it only if it is still there
        assert ("cuCtxRecordEvent" in says(program).split()) is not gone


# --- the program's own business ---


def test_a_resolver_asked_before_anything_else_answers(client, host):
    script = """
found = ctypes.c_void_p()
assert driver.cuGetProcAddress_v2(b"cuInit", ctypes.byref(found), 2000, 0, None) == 0
print(found.value == ctypes.cast(driver.cuInit, ctypes.c_void_p).value)
"""
    assert client.run(script) == "True"
    assert host.keys == []


def test_another_preload_that_wraps_a_launch_is_called_and_gated(client, host, tmp_path):
    source, wrapper = tmp_path / "w.c", tmp_path / "libw.so"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\nint wrapped;"
        "int cuLaunchKernel(void *a) { wrapped++;"
        ' return ((int (*)(void *))dlsym(RTLD_NEXT, "cuLaunchKernel"))(a); }'
    )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", wrapper, source, "-ldl"], check=True, timeout=60
    )
    script = """
make()
program = ctypes.CDLL(None)
program.cuLaunchKernel(None)
print(ctypes.c_int.in_dll(program, "wrapped").value, log().count("cuLaunchKernel"))
"""
    both = f"{wrapper}:{client.library}"
    assert client.run(script, LD_PRELOAD=both) == "1 1"
    assert host.submissions() == 1
