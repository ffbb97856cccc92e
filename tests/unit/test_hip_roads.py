# SPDX-License-Identifier: Apache-2.0
"""By whatever road a program finds a function of the HIP runtime, its call passes the gate.

The runtime is one that counts (support/hip_runtime.py), with the real one's version nodes; the
board is the test's own, and counts what passed the gate.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from support import hip_runtime
from support.board_host import BoardHost
from support.roads import Runner, gated
from support.waiting import short_directory, wait_for

SOURCE = Path(__file__).with_name("hip_roads.c")
EXT = hip_runtime.LINES[2].symbol
NEWER = hip_runtime.Line("SUBMIT", "hipError_t", "hipLaunchNew", "LEGACY", "void *a")
NEWER_QUERY = NEWER._replace(symbol="hipMemcpyGetNew")


@pytest.fixture(scope="module")
def drivers(tmp_path_factory) -> Path:
    """A folder for each runtime."""
    folder = tmp_path_factory.mktemp("drivers")
    hip_runtime.build(folder / "usual")
    # As a framework's wheel brings it.
    hip_runtime.build(folder / "wheel", "libamdhip64.so", flags=["-Wl,-soname,libamdhip64.so"])
    # By another name, and without a soname.
    hip_runtime.build(folder / "elsewhere", "libamdhip64-0a1b2c3d.so.7.1", flags=[])
    exports = hip_runtime.read_exports("5.2")
    older = [x.symbol for x in hip_runtime.LINES if x.symbol not in exports]
    hip_runtime.build(folder / "older", lacks=older)
    hip_runtime.build(folder / "newer", more=[NEWER, NEWER_QUERY])
    return folder


@pytest.fixture(scope="module")
def programs(drivers) -> dict[bool, Path]:
    paths = {}
    for linked in (True, False):
        path = paths[linked] = drivers / f"program-{linked}"
        usual = ["-DLINKED", f"-L{drivers / 'usual'}", "-l:libamdhip64.so.5"] if linked else []
        words = ["cc", "-D_GNU_SOURCE", "-O1", "-o", path, SOURCE, *usual, "-ldl"]
        subprocess.run(words, check=True, timeout=60)
    return paths


@pytest.fixture
def host():
    with short_directory() as folder:
        found = BoardHost(folder)
        yield found
        found.close()


@pytest.fixture
def run(library, drivers, host):
    return Runner(library, drivers, "libamdhip64*[0-9o]", host)


LAUNCH = ("hipModuleLaunchKernel", "hipModuleLaunchKernel", "0")
RESOLVERS = ("resolver", "itself", "entry")


@pytest.mark.parametrize("road", ["direct", "handle", "default", "next", "versioned", *RESOLVERS])
def test_every_road_of_a_linked_program(run, programs, host, road):
    # Its references have the library's version, which our hooks have not.
    assert gated(run([programs[True], road, *LAUNCH]), host)


def test_references_are_versioned(programs):
    done = subprocess.run(["nm", "-D", programs[True]], capture_output=True, text=True, check=True)
    assert "hipModuleLaunchKernel@hip_4.2" in done.stdout


@pytest.mark.parametrize("driver", ["usual", "wheel", "elsewhere"])
@pytest.mark.parametrize("road", ["handle", "versioned", *RESOLVERS])
def test_every_road_of_a_program_that_loads_the_runtime(run, programs, drivers, host, road, driver):
    (path,) = (drivers / driver).glob("libamdhip64*[0-9o]")
    assert gated(run([programs[False], road, *LAUNCH], driver, FAKE_SELF=str(path)), host)


@pytest.mark.parametrize(("road", "linked"), [("mangled", True), ("handle", False)])
def test_what_is_exported_as_cpp_is_gated_too(run, programs, host, road, linked):
    assert "hipExtModuleLaunchKernel" in EXT
    assert gated(run([programs[linked], road, EXT]), host)


FORMS = [
    ("resolver", "hipMemcpyAsync", "hipMemcpyAsync", "0"),
    ("resolver", "hipMemcpyAsync_spt", "hipMemcpyAsync", "2"),
    ("resolver_spt", "hipMemcpyAsync_spt", "hipMemcpyAsync", "0"),
    ("entry", "hipEventRecord_spt", "hipEventRecord", "2"),
    ("resolver", "hipExtModuleLaunchKernel", "hipExtModuleLaunchKernel", "2"),
    ("resolver", "hipGraphLaunch_spt", "hipGraphLaunch_spt", "0"),
]


@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_each_form_of_a_function_is_its_own(run, programs, host, form):
    # The runtime looks its functions up itself: it has to get its own, whose addresses are known.
    found = run([programs[False], *form])
    assert gated(found, host) and found["result"] == "0"
    assert host.notes == []


@pytest.mark.parametrize(
    ("ours", "symbol"),
    [
        (False, "hipGetLastError"),  # never gated
        (False, "__hipRegisterFatBinary"),  # loads nothing yet
        (True, "hipFree"),  # heavy
    ],
)
def test_what_is_no_submission_counts_as_none(run, programs, host, symbol, ours):
    found = run([programs[False], "handle", symbol])
    assert (found["from"] == "libkrex.so", found["calls"]) == (ours, "1")
    assert host.submissions() == 0


CTYPES = """
import ctypes
driver = ctypes.CDLL("libamdhip64.so.5")
driver.hipInit(0), driver.hipMalloc(ctypes.byref(ctypes.c_void_p()), 1)
print(f"returned={driver.hipModuleLaunchKernel(*[None] * 11)}")
print(f"calls={driver.fake_calls(b'hipModuleLaunchKernel')}")
"""


def test_the_road_of_python(run, host):
    assert run([sys.executable, "-c", CTYPES]) == {"returned": "0", "calls": "1"}
    assert host.submissions() == 1


# --- releases ---


@pytest.mark.parametrize("road", ["handle", "resolver", "default"])
def test_an_older_runtime_lacks_what_it_lacks(run, programs, host, road):
    # GIVEN a program for a newer runtime WHEN it looks for what this one has not THEN there is none
    hooked = {"handle": "hipLaunchKernelExC", "default": "hipLaunchKernelExC"}
    if road == "resolver":  # that came later itself
        assert run([programs[False], "handle", "hipGetProcAddress"], "older")["from"] == "none"
    else:
        assert run([programs[False], road, hooked[road]], "older")["from"] == "none"
    # AND the rest is there, and gated
    assert gated(run([programs[False], "handle", *LAUNCH], "older"), host)


def test_a_link_to_what_an_older_runtime_lacks_is_told_so(run, tmp_path):
    # GIVEN a program that is linked with what only a newer runtime has: our export lets it start
    source = tmp_path / "p.c"
    source.write_text(
        "#include <stdio.h>\n"
        "int hipInit(unsigned), hipDrvLaunchKernelEx(void *, void *, void *, void *);"
        "int main(void) { hipInit(0); "
        'printf("r=%d\\n", hipDrvLaunchKernelEx(0, 0, 0, 0)); return 0; }'
    )
    flags = [f"-L{run.drivers / 'usual'}", "-l:libamdhip64.so.5", "-Wl,-z,lazy"]
    subprocess.run(["cc", "-w", "-o", tmp_path / "p", source, *flags], check=True, timeout=60)
    assert run([tmp_path / "p"], "older") == {"r": "801"}


def test_without_any_runtime_there_is_no_device(library):
    script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).hipMalloc(None, 1))"
    words = [sys.executable, "-c", script, library]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "100\n"


def test_what_a_newer_runtime_has_is_passed_on_and_reported(run, programs, host):
    # GIVEN a submission that we do not know WHEN somebody asks THEN it gets the runtime's own
    found = run([programs[False], "handle", "hipLaunchNew"], "newer")
    assert (found["from"], found["calls"]) == ("libamdhip64.so.5", "1")
    # AND the controller hears of it once; what is listed, or no submission, is not reported
    wait_for(lambda: host.notes)
    assert host.notes == [("unlisted_submission", "hipLaunchNew")]
    run([programs[False], "handle", "hipMemcpyGetNew"], "newer")
    assert gated(run([programs[False], "resolver", *LAUNCH], "newer"), host)
    assert len(host.notes) == 1


def test_a_resolver_hands_out_what_it_does_not_know_and_reports_it(run, programs, host):
    found = run([programs[False], "resolver", "hipLaunchNew", "hipLaunchNew", "0"], "newer")
    assert (found["from"], found["calls"]) == ("libamdhip64.so.5", "1")
    wait_for(lambda: host.notes)
    assert host.notes == [("unlisted_submission", "hipLaunchNew")]


def test_two_runtimes_in_one_process_are_reported(run, programs, drivers, host):
    # GIVEN a program that has one runtime, and gets functions of another
    script = f"""
import ctypes
first = ctypes.CDLL("libamdhip64.so.5")
first.hipMalloc(ctypes.byref(ctypes.c_void_p()), 1)
second = ctypes.CDLL({str(drivers / "wheel" / "libamdhip64.so")!r})
print(f"returned={{second.hipModuleLaunchKernel(*[None] * 11)}}")
print(f"calls={{second.fake_calls(b'hipModuleLaunchKernel')}}")
"""
    # THEN its own function is called, and whoever reads the record is told
    assert run([sys.executable, "-c", script]) == {"returned": "0", "calls": "1"}
    assert host.submissions() == 0
    wait_for(lambda: host.notes)
    assert host.notes == [("unlisted_submission", "hipModuleLaunchKernel")]
