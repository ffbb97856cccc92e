# SPDX-License-Identifier: Apache-2.0
"""api.def is complete, current, and true: against the headers, the loaders and the compiler."""

import collections
import ctypes.util
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPENCL = ROOT / "shim" / "opencl"
INCLUDE = Path(os.environ.get("KREX_TEST_CL_INCLUDE", "/usr/include"))

LINE = re.compile(
    r"KREX_CL_API\((\w+), ([\w ]+\**), (\w+), (-?\d+), ([\w\[\]]+), (\(.*\)), (\(.*\))\)"
)
Entry = collections.namedtuple("Entry", "kind ret name index object params args")

# In api.def, in no loader, and not a submission: why that is right. Anything else is a mistake.
NOT_EXPORTED = {
    r"clCommand\w+KHR": "records into a command buffer",
    r"cl(Create|Finalize|Retain|Release|Get)CommandBuffer(Info)?KHR": "command buffers",
    r"cl(Update|Get)MutableCommand(s|Info)KHR": "command buffers",
    r"cl(Create|Retain|Release|Get)Semaphore\w*KHR": "semaphores",
    r"clCreateProgramWithILKHR": "compiles",
    r"cl(Create|Retain|Release|Get)Accelerator(Info)?INTEL": "a motion-estimation descriptor",
    r"clSetKernel(ArgMemPointerINTEL|ArgSVMPointerARM|ExecInfoARM)": "sets arguments",
    r"clGet\w+(INTEL|QCOM|EXT)": "extension queries",
    r"clGetKernelSuggestedLocalWorkSizeKHR": "extension query",
    r"clIcdGetPlatformIDsKHR": "exported by drivers, for loaders",
    r"cl\w+APPLE": "declared in cl_ext.h, only ever present on macOS",
}


def read_entries():
    lines = (OPENCL / "api.def").read_text().splitlines()
    calls = [line for line in lines if line.startswith("KREX_CL_API(")]
    matches = [LINE.fullmatch(call) for call in calls]
    assert all(matches), calls[matches.index(None)]
    return [Entry(*m.groups())._replace(index=int(m[4])) for m in matches]


ENTRIES = read_entries()
NAMED = {entry.name: entry for entry in ENTRIES}


@pytest.fixture(scope="module")
def gen_api():
    spec = importlib.util.spec_from_file_location("gen_api", OPENCL / "gen_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def include(gen_api):
    """The folder with CL/; nothing but its absence is a reason to skip."""
    missing = [name for name in gen_api.HEADERS if not (INCLUDE / "CL" / name).exists()]
    if missing:
        pytest.skip(f"no OpenCL headers in {INCLUDE} (install opencl-headers)")
    return INCLUDE


def exports(library):
    elffile = pytest.importorskip("elftools.elf.elffile", reason="needs pyelftools")
    with open(library, "rb") as stream:  # noqa: PTH123
        symbols = elffile.ELFFile(stream).get_section_by_name(".dynsym").iter_symbols()
        return {
            s.name
            for s in symbols
            if s["st_shndx"] != "SHN_UNDEF"
            and s["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC")
            and re.match("cl[A-Z]", s.name)
        }


def system_loader():
    folders = [*Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib")]
    name = ctypes.util.find_library("OpenCL")
    return next((f / name for f in folders if name and (f / name).exists()), None)


def wheel_loader():
    spec = importlib.util.find_spec("pyopencl")
    folders = [Path(f) for f in spec.submodule_search_locations] if spec else []
    for folder in folders:
        for libs in (folder / ".libs", folder.parent / "pyopencl.libs"):
            yield from libs.glob("libOpenCL*.so*")


def find_loader(which):
    found = system_loader() if which == "system" else next(wheel_loader(), None)
    return found or pytest.skip(f"no OpenCL loader: {which}")


def compile_c(source, *flags, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc") or pytest.skip("no C compiler")
    path = tmp_path / "check.c"
    path.write_text(source)
    command = [compiler, "-std=gnu11", "-fsyntax-only", f"-I{OPENCL}", *flags, str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[:4000]


# --- against the headers ---


def test_regenerated_is_what_is_committed(include):
    command = [sys.executable, OPENCL / "gen_api.py", "--check", "--include", include]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_missing_headers_are_status_2(tmp_path):
    command = [sys.executable, OPENCL / "gen_api.py", "--check", "--include", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert "cl.h" in result.stderr and "Traceback" not in result.stderr


def test_a_new_function_asks_for_a_decision(gen_api):
    header = "extern CL_API_ENTRY cl_int CL_API_CALL clBrandNew(cl_context c) CL_API_SUFFIX__X;"
    with pytest.raises(gen_api.HeaderError, match="clBrandNew"):
        gen_api.entries(gen_api.parse_functions(header), {})


def test_an_enqueue_with_a_new_shape_is_refused(gen_api):
    header = "extern CL_API_ENTRY cl_int CL_API_CALL clEnqueueNew(cl_command_queue command_queue);"
    entry = gen_api.Entry("ENQUEUE", 7, gen_api.parse_functions(header)["clEnqueueNew"])
    with pytest.raises(gen_api.HeaderError, match="can't be ENQUEUE"):
        gen_api.check_shape(entry)


def test_dispatch_indices_are_the_compilers(include, tmp_path):
    """The generator counts members; the compiler knows where they are."""
    asserts = "".join(
        f"_Static_assert(offsetof(cl_icd_dispatch, {e.name}) == {e.index} * sizeof(void *), "
        f'"{e.name}");\n'
        for e in ENTRIES
        if e.index >= 0
    )
    source = f"#include <stddef.h>\n#include <CL/cl_icd.h>\n{asserts}"
    compile_c(source, "-w", f"-I{include}", tmp_path=tmp_path)


def test_the_whole_dispatch_table_is_covered(include, gen_api):
    table = gen_api.parse_dispatch((include / "CL" / "cl_icd.h").read_text())
    windows = {name for name in table if re.search("D3D1[01]|DX9", name)}
    assert table.keys() - windows == {e.name for e in ENTRIES if e.index >= 0}


# --- against the loaders ---


@pytest.mark.parametrize("which", ["system", "wheel"])
def test_every_export_is_listed(which):
    assert exports(find_loader(which)) - NAMED.keys() == set()


@pytest.mark.parametrize("which", ["system", "wheel"])
def test_every_listed_function_is_exported(which):
    exported = exports(find_loader(which))
    missing = {e.name for e in ENTRIES if not e.kind.startswith("EXT_")} - exported
    assert {n for n in missing if not any(re.fullmatch(p, n) for p in NOT_EXPORTED)} == set()


@pytest.mark.parametrize("which", ["system", "wheel"])
def test_nothing_exported_is_left_without_prototype(which):
    assert [n for n in exports(find_loader(which)) if NAMED[n].index < 0] == []


# --- in itself ---


def test_lines_are_unique_and_kinds_known(gen_api):
    assert len(NAMED) == len(ENTRIES)
    assert {e.kind for e in ENTRIES} == set(gen_api.KINDS)


def test_extensions_carry_no_prototype():
    for e in ENTRIES:
        bare = (e.ret, e.object, e.params, e.args) == ("void", "0", "()", "()")
        assert bare == (e.index < 0), e.name


def test_waits_and_queries_are_never_gated(gen_api):
    hooked = {e.name for e in ENTRIES if e.kind in gen_api.HOOKED}
    passed = {e.name for e in ENTRIES if e.kind in {"RESOLVE_HAND", "TRACK_HAND"}}
    found = {n for n in hooked if re.match("clGet|clWait|clFinish|clFlush", n)}
    assert found <= passed
    assert {"clFinish", "clWaitForEvents", "clGetEventProfilingInfo"} <= found
    assert {n for n in NAMED if n.startswith("clEnqueue") and n not in hooked} == {
        e.name for e in ENTRIES if e.kind == "EXT_SUBMIT" and e.name.startswith("clEnqueue")
    }


def test_compiles_without_headers(tmp_path):
    """The file as it is, each line as a prototype, a call and a look at the dispatch table."""
    source = """
#include "types.h"
#define KREX_CL_API(kind, ret, name, index, object, params, args) \\
    typedef ret (*krex_pfn_##name) params; \\
    ret name params; \\
    static inline ret krex_call_##name params { \\
        krex_pfn_##name real = name; \\
        return real args; \\
    } \\
    static inline void *const *krex_table_##name params { \\
        return (object) ? ((const struct krex_cl_object *)(object))->dispatch : 0; \\
    }
#include "api.def"
"""
    flags = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function")
    compile_c(source, *flags, tmp_path=tmp_path)


# --- against the headers' types ---

ALL_VERSIONS = "\n".join(
    f"#define CL_USE_DEPRECATED_OPENCL_{v}_APIS" for v in ("1_0", "1_1", "1_2", "2_0", "2_1", "2_2")
)
REAL = f"""
#define CL_TARGET_OPENCL_VERSION 300
{ALL_VERSIONS}
#include <CL/cl.h>
#include <CL/cl_gl.h>
#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
"""


def test_prototypes_are_the_headers(include, tmp_path):
    """With the header's own types, each prototype of ours is the header's declaration."""
    text = (OPENCL / "types.h").read_text()
    callbacks = re.findall(r"^typedef void \(\*krex_cl_\w+\)\(.*\);$", text, re.M)
    assert callbacks
    asserts = "".join(
        f"_Static_assert(__builtin_types_compatible_p(__typeof__({e.name}), {e.ret} {e.params}), "
        f'"{e.name}");\n'
        for e in ENTRIES
        if e.index >= 0
    )
    source = REAL + "\n".join(callbacks) + "\n" + asserts
    compile_c(source, "-w", f"-I{include}", tmp_path=tmp_path)


def test_types_and_values_are_the_headers(include, tmp_path):
    """Ours and theirs side by side in one file: ours are renamed while types.h is read."""
    text = (OPENCL / "types.h").read_text()
    handles = re.findall(r"^KREX_CL_HANDLE\((\w+)\)", text, re.M)
    scalars = re.findall(r"^typedef (?!struct|void)[\w ]+ (cl_\w+|CL\w+);", text, re.M)
    pointers = re.findall(r"^typedef (?:void|struct \w+) \*(\w+);", text, re.M)
    opaque = re.findall(r"^typedef struct \w+ (cl_\w+);", text, re.M)
    structs = re.findall(r"^\} (\w+);", text, re.M)
    values = re.findall(r"^#define (CL_\w+) (.+?)(?: /\*.*)?$", text, re.M)
    assert len(handles) == 9 and len(scalars) > 40 and len(values) > 50 and len(structs) == 2
    types = handles + scalars + pointers + opaque + structs
    values = [(name, value) for name, value in values if not name.endswith("_NV")]
    same = [f"__builtin_types_compatible_p({t}, ours_{t})" for t in scalars]
    same += [f"sizeof({t}) == sizeof(ours_{t})" for t in handles + pointers + structs]
    same += [f"({name}) == ({value})" for name, value in values]
    parts = [
        REAL,
        *(f"#define {t} ours_{t}" for t in types),
        "".join(line + "\n" for line in text.splitlines() if not line.startswith("#define CL_")),
        *(f"#undef {t}" for t in types),
        *(f'_Static_assert({s}, "{s}");' for s in same),
    ]
    compile_c("\n".join(parts), "-w", f"-I{include}", tmp_path=tmp_path)
