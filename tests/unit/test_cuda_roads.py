# SPDX-License-Identifier: Apache-2.0
"""By whatever road a program finds a function of the CUDA driver, its call passes the gate.

The driver is one that counts (support/cuda_driver.py); the board is the test's own, and counts what
passed the gate.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from support import cuda_driver
from support.board_host import BoardHost
from support.roads import Runner, gated
from support.waiting import short_directory, wait_for

SOURCE = Path(__file__).with_name("cuda_roads.c")
NEWER = cuda_driver.Line("SUBMIT", "cuLaunchNew", "cuLaunchNew", 14000, "LEGACY", "void *a")
NEWER_QUERY = NEWER._replace(symbol="cuMemcpyGetNew", base="cuMemcpyGetNew")
NEWER_ABI = NEWER._replace(symbol="cuLaunchKernel_v2", base="cuLaunchKernel")


@pytest.fixture(scope="module")
def drivers(tmp_path_factory) -> Path:
    """A folder for each driver."""
    folder = tmp_path_factory.mktemp("drivers")
    cuda_driver.build(folder / "usual")
    script = folder / "map"
    script.write_text("CUDA_1.0 { global: *; };\n")
    versions = ("-Wl,-soname,libcuda.so.1", f"-Wl,--version-script={script}")
    cuda_driver.build(folder / "versioned", flags=versions)
    # As it comes: a file of another name, here even without a soname, and somewhere else.
    cuda_driver.build(folder / "elsewhere", "libcuda.so.590.48.01", flags=())
    cuda_driver.build(folder / "private", own_addresses=True)
    older = [x.symbol for x in cuda_driver.LINES if x.version > 11050] + ["cuGetProcAddress_v2"]
    cuda_driver.build(folder / "older", lacks=older)
    cuda_driver.build(folder / "newer", more=[NEWER, NEWER_QUERY, NEWER_ABI])
    return folder


@pytest.fixture(scope="module")
def programs(drivers) -> dict[bool, Path]:
    paths = {}
    for linked in (True, False):
        path = paths[linked] = drivers / f"program-{linked}"
        with_driver = ["-DLINKED", f"-L{drivers / 'usual'}", "-l:libcuda.so.1"] if linked else []
        words = ["cc", "-D_GNU_SOURCE", "-O1", "-o", path, SOURCE, *with_driver, "-ldl"]
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
    return Runner(library, drivers, "libcuda.so.*[0-9]", host)


LAUNCH = ("cuLaunchKernel", "cuLaunchKernel", "4000", "0")
RESOLVERS = ("resolver", "resolver2", "itself", "itself2")


@pytest.mark.parametrize("road", ["direct", "handle", "default", "next", *RESOLVERS])
def test_every_road_of_a_linked_program(run, programs, host, road):
    assert gated(run([programs[True], road, *LAUNCH]), host)


@pytest.mark.parametrize("driver", ["usual", "elsewhere", "private"])
@pytest.mark.parametrize("road", ["handle", *RESOLVERS])
def test_every_road_of_a_program_that_loads_the_driver(run, programs, host, road, driver):
    assert gated(run([programs[False], road, *LAUNCH], driver), host)


def test_the_road_of_a_versioned_lookup(run, programs, host):
    assert gated(run([programs[False], "versioned", *LAUNCH], "versioned"), host)


FORMS = [
    ("cuLaunchKernel_ptsz", "cuLaunchKernel", 7000, 2),
    ("cuLaunchKernel", "cuLaunchKernel", 13000, 1),
    ("cuMemcpyBatchAsync", "cuMemcpyBatchAsync", 12080, 0),
    ("cuMemcpyBatchAsync_v2", "cuMemcpyBatchAsync", 13000, 0),
    ("cuMemcpyBatchAsync_ptsz", "cuMemcpyBatchAsync", 12090, 2),
    ("cuMemcpyBatchAsync_v2_ptsz", "cuMemcpyBatchAsync", 13000, 2),
    ("cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync", 12080, 0),
    ("cuMemcpy3DBatchAsync_v2", "cuMemcpy3DBatchAsync", 13010, 0),
    ("cuMemPrefetchAsync", "cuMemPrefetchAsync", 8000, 0),
    ("cuMemPrefetchAsync_v2", "cuMemPrefetchAsync", 12020, 0),
    ("cuMemPrefetchAsync_ptsz", "cuMemPrefetchAsync", 12010, 2),
    ("cuMemPrefetchAsync_v2_ptsz", "cuMemPrefetchAsync", 13050, 2),
    ("cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoH", 7000, 2),
    ("cuMemcpyHtoD_v2", "cuMemcpyHtoD", 3020, 0),
    ("cuStreamBatchMemOp", "cuStreamBatchMemOp", 8000, 0),
    ("cuStreamBatchMemOp_v2", "cuStreamBatchMemOp", 11070, 0),
    ("cuMemAdvise", "cuMemAdvise", 8000, 2),
]


@pytest.mark.parametrize("driver", ["usual", "private"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
def test_each_form_of_a_function_is_its_own(run, programs, host, form, driver):
    # An ABI taken for another would call the wrong function of the driver.
    words = [programs[False], "resolver2", *map(str, form)]
    found = run(words, driver)
    assert gated(found, host)
    assert (found["result"], found["status"]) == ("0", "0")


@pytest.mark.parametrize("driver", ["usual", "private"])
@pytest.mark.parametrize(
    ("ours", "form"),
    [
        (False, ("cuStreamQuery", "cuStreamQuery", "2000")),  # never gated
        (True, ("cuCtxSynchronize", "cuCtxSynchronize", "2000")),  # likewise, but looked at
        (False, ("cuGetExportTable", "cuGetExportTable", "3000")),  # passed on untouched
        (True, ("cuMemFree_v2", "cuMemFree", "3020")),  # heavy
    ],
)
def test_what_is_no_submission_counts_as_none(run, programs, host, form, ours, driver):
    found = run([programs[False], "resolver2", *form, "0"], driver)
    assert (found["from"] == "libkrex.so", found["calls"]) == (ours, "1")
    assert host.submissions() == 0


CTYPES = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
driver.cuInit(0), driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
print(f"returned={driver.cuLaunchKernel(*[None] * 11)}")
print(f"calls={driver.fake_calls(b'cuLaunchKernel')}")
"""
CFFI = """
import cffi
ffi = cffi.FFI()
ffi.cdef("int cuInit(unsigned); int cuCtxCreate_v2(void **, unsigned, int);"
         "int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,"
         " unsigned, void *, void **, void **); int fake_calls(const char *);")
driver = ffi.dlopen("libcuda.so.1")
driver.cuInit(0), driver.cuCtxCreate_v2(ffi.new("void **"), 0, 0)
null = ffi.NULL
print(f"returned={driver.cuLaunchKernel(null, 1, 1, 1, 1, 1, 1, 0, null, null, null)}")
print(f"calls={driver.fake_calls(b'cuLaunchKernel')}")
"""


@pytest.mark.parametrize("script", [CTYPES, CFFI], ids=["ctypes", "cffi"])
def test_roads_of_python(run, host, script):
    assert run([sys.executable, "-c", script]) == {"returned": "0", "calls": "1"}
    assert host.submissions() == 1


QUIET = """
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
int cuCtxCreate_v2(void **, unsigned, int), cuMemFree_v2(void *), cuLaunchKernel();
int cuGetProcAddress_v2(const char *, void **, int, unsigned long, unsigned *);
int main(void) {
    void *context, *found = &context;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    dlsym(driver, "cuLaunchKernel");
    printf("hooked=%d\\n", dlerror() == NULL);
    dlsym(driver, "cuLaunchNothing");
    errno = 99;
    cuCtxCreate_v2(&context, 0, 0), cuMemFree_v2(0);
    cuLaunchKernel(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    printf("resolved=%d\\n", cuGetProcAddress_v2("cuLaunchKernel", &found, 7000, 2, NULL));
    found = &context;
    printf("probe=%d\\n", cuGetProcAddress_v2("", &found, 0, 0, NULL));
    printf("untouched=%d\\n", found == &context);
    printf("errno=%d\\n", errno);
    const char *error = dlerror();
    printf("named=%d\\n", error && strstr(error, "cuLaunchNothing") != NULL);
    printf("once=%d\\n", dlerror() == NULL);
    return 0;
}
"""


def test_dlerror_and_errno_are_the_programs_own(run, tmp_path):
    source = tmp_path / "quiet.c"
    source.write_text(QUIET)
    linked = [f"-L{run.drivers / 'usual'}", "-l:libcuda.so.1", "-ldl"]
    words = ["cc", "-w", "-o", tmp_path / "quiet", source, *linked]
    subprocess.run(words, check=True, timeout=60)
    found = run([tmp_path / "quiet"])
    assert found.pop("probe") == "500" and found.pop("errno") == "99"
    assert found == {
        "hooked": "1", "resolved": "0", "untouched": "1", "named": "1", "once": "1"
    }  # fmt: skip


# --- releases ---


@pytest.mark.parametrize("road", ["handle", "resolver", "default"])
def test_an_older_driver_lacks_what_it_lacks(run, programs, host, road):
    # GIVEN a program for a newer driver WHEN it looks for what this one has not THEN there is none
    words = [programs[False], road, "cuLaunchKernelEx", "cuLaunchKernelEx", "11060", "0"]
    found = run(words, "older")
    assert found["from"] == "none"
    assert found.get("result", "500") == "500"
    # AND the rest is there, and gated
    assert gated(run([programs[False], "resolver", *LAUNCH], "older"), host)


def test_a_link_to_what_an_older_driver_lacks_is_told_so(run, tmp_path):
    # GIVEN a program that is linked with what only a newer driver has: our export lets it start
    source = tmp_path / "p.c"
    source.write_text(
        "#include <stdio.h>\n"
        "int cuInit(unsigned), cuLaunchKernelEx(void *, void *, void *, void *);"
        'int main(void) { cuInit(0); printf("r=%d\\n", cuLaunchKernelEx(0, 0, 0, 0)); return 0; }'
    )
    linked = [f"-L{run.drivers / 'usual'}", "-l:libcuda.so.1"]
    words = ["cc", "-w", "-o", tmp_path / "p", source, *linked]
    subprocess.run(words, check=True, timeout=60)
    assert run([tmp_path / "p"], "older") == {"r": "801"}


@pytest.mark.parametrize(
    ("road", "symbol", "what"),
    [
        ("handle", "cuLaunchNew", ()),
        ("resolver2", "cuLaunchNew", ("cuLaunchNew", "14000", "0")),
        ("resolver2", "cuLaunchKernel_v2", ("cuLaunchKernel", "14000", "0")),
    ],
)
def test_what_a_newer_driver_has_is_passed_on_and_reported(run, programs, host, road, symbol, what):
    # GIVEN a submission that we do not know WHEN somebody asks THEN it gets the driver's own
    found = run([programs[False], road, symbol, *what], "newer")
    assert (found["from"], found["calls"]) == ("libcuda.so.1", "1")
    # AND the controller hears of it once; what is listed, or no submission, is not reported
    wait_for(lambda: host.notes)
    assert host.notes == [("unlisted_submission", what[0] if what else symbol)]
    run([programs[False], "handle", "cuMemcpyGetNew"], "newer")
    assert gated(run([programs[False], "resolver2", *LAUNCH], "newer"), host)
    assert len(host.notes) == 1
