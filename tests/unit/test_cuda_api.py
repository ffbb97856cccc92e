# SPDX-License-Identifier: Apache-2.0
"""api.def of CUDA is complete, current, and true: against the headers, libraries and the compiler.

The pinned headers are in build/cuda-headers once `make regen` has fetched them; toolkits that lie
around are used too. tests/unit/c/cuda_api.c expands the list as the hooks will.
"""

import collections
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CUDA = ROOT / "shim" / "cuda"
TOOLKITS = sorted(
    {
        path.resolve()
        for path in (
            Path(os.environ.get("KREX_TEST_CUDA_HOME", ".")),
            *Path("/usr/local").glob("cuda*"),
        )
        if (path / "include" / "cuda.h").exists()
    }
)
LIBRARIES = [
    *(path for kit in TOOLKITS for path in kit.glob("**/stubs/libcuda.so")),
    *Path("/usr/lib").glob("*-linux-gnu/libcuda.so.1"),
    *Path("/usr/lib64").glob("libcuda.so.1"),
]

# In the export list of a library or of CUPTI, in no header that a program includes.
UNDECLARED = {
    r"cudbg\w+": "the debugger's",
    r"cu64\w+": "dead since CUDA 3.2; CUPTI keeps their numbers",
    r"cu\w*(D3D9|D3D10|D3D11|WGL|NVN)\w*": "of other systems",
    r"cuEGL(Api)?Init": "declared by nothing",
    r"cuSurfRef(Create|Destroy|[GS]etFormat)|cuBinaryFree|cuCompilePtx": "never came out",
    r"cuMemPeer\w+|cuMemHostAlloc_v2|cuMemcpy_v2|cuStreamSetFlags(_ptsz)?": "never came out",
    r"cuSemaphore\w+|cuMultiKernel\w+|cuNNSetAllocator": "never came out",
    r"cuStreamCreateForCaptureToCig|cuDriverGetGpuCodeIsaVersion": "never came out",
}


def load(name):
    spec = importlib.util.spec_from_file_location(name, CUDA / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sys.path.append(str(ROOT / "shim" / "gpu"))
HEADERS = load("cuda_headers")
KINDS = load("cuda_kinds")
GEN_API = load("gen_api")
PINNED = [path for path in HEADERS.folders() if HEADERS.is_complete(path)]
FOLDERS = [*PINNED, *(kit / "include" for kit in TOOLKITS)]

TEXT = (CUDA / "api.def").read_text()
ENTRIES = [GEN_API.parse_line(li) for li in TEXT.splitlines() if li.startswith("KREX_CU_API(")]
SYMBOLS = {entry.symbol: entry for entry in ENTRIES}
BASES = {entry.base for entry in ENTRIES}


def class_of(entry):
    return entry.kind.partition("_")[0]


def of_each_folder(test):
    """Run a test for every set of headers there is; only their absence is a reason to skip."""
    why = pytest.mark.skip(reason="no CUDA headers (make regen fetches them)")
    folders = FOLDERS or [pytest.param(None, marks=why)]
    return pytest.mark.parametrize("include", folders, ids=str)(test)


def run_gen_api(*arguments):
    command = [sys.executable, CUDA / "gen_api.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def release(declarations, version=99000, aliases=""):
    text = f"krex_version {version}\n{aliases}\n{declarations}"
    return HEADERS.parse(text)


# --- current ---


@pytest.mark.skipif(len(PINNED) < len(HEADERS.PINS), reason="not all pinned headers are here")
def test_regenerated_is_what_is_committed():
    done = run_gen_api("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_headers_all_but_the_facts_is_regenerated():
    assert GEN_API.regenerate(TEXT) == TEXT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SUBMIT, CUresult, cuLaunchKernel,", "PASS, CUresult, cuLaunchKernel,"),
        ("cuMemcpyBatchAsync, 12080,", "cuMemcpyBatchAsync, 13000,"),
        ("CUfunction f, unsigned int gridDimX", "CUfunction f, unsigned long gridDimX"),
        ("LEGACY, hStream, (CUevent hEvent", "LEGACY, KREX_CU_NO_STREAM, (CUevent hEvent"),
    ],
)
def test_without_headers_an_edit_is_noticed(old, new):
    # GIVEN a file with one edit by hand WHEN regenerated from itself THEN it isn't what it is
    assert old in TEXT
    edited = TEXT.replace(old, new, 1)
    assert GEN_API.regenerate(edited) != edited


def test_without_headers_a_line_that_is_gone_is_noticed():
    first = next(li for li in TEXT.splitlines(keepends=True) if ", cuMemAlloc_v2," in li)
    shorter = TEXT.replace(first, "")
    assert GEN_API.regenerate(shorter) != shorter


def test_without_headers_a_new_decision_is_noticed(monkeypatch):
    monkeypatch.setitem(KINDS.NAMES, "PASS", KINDS.NAMES["PASS"] + " cuMemAdvise")
    submit = KINDS.NAMES["SUBMIT"].replace("cuMemAdvise ", "")
    monkeypatch.setitem(KINDS.NAMES, "SUBMIT", submit)
    assert GEN_API.regenerate(TEXT) != TEXT


def test_missing_headers_are_status_2(tmp_path):
    done = run_gen_api("--check", tmp_path)
    assert done.returncode == 2
    assert "cuda.h" in done.stderr and "Traceback" not in done.stderr


# --- undecided ---

NEW = """
CUresult cuBrandNew(CUstream hStream);
typedef CUresult ( *PFN_cuBrandNew_v99000)(CUstream hStream);
"""


def only(monkeypatch, **names):
    monkeypatch.setattr(KINDS, "NAMES", {kind: names.get(kind, "") for kind in KINDS.KINDS})


def test_a_new_function_asks_for_a_decision(monkeypatch):
    only(monkeypatch)
    with pytest.raises(HEADERS.HeaderError, match=r"no kind.*cuBrandNew"):
        GEN_API.entries([release(NEW)])


def test_a_decision_on_nothing_is_refused(monkeypatch):
    only(monkeypatch, SUBMIT="cuBrandNew cuGone")
    with pytest.raises(HEADERS.HeaderError, match=r"not in the headers: cuGone"):
        GEN_API.entries([release(NEW)])


def test_two_decisions_are_refused(monkeypatch):
    only(monkeypatch, SUBMIT="cuBrandNew", PASS="cuBrandNew")
    with pytest.raises(HEADERS.HeaderError, match=r"twice.*cuBrandNew"):
        GEN_API.entries([release(NEW)])


def test_a_kind_must_fit_the_parameters(monkeypatch):
    only(monkeypatch, CAPTURE="cuBrandNew")
    with pytest.raises(HEADERS.HeaderError, match="it has no stream"):
        GEN_API.entries([release(NEW.replace("CUstream", "CUcontext"))])


def test_an_abi_that_changes_under_its_symbol_is_refused(monkeypatch):
    only(monkeypatch, SUBMIT="cuBrandNew")
    changed = release(NEW.replace("(CUstream", "(int flags, CUstream"), version=99010)
    with pytest.raises(HEADERS.HeaderError, match="not what it was"):
        GEN_API.entries([release(NEW), changed])


def test_another_name_of_a_type_is_no_change(monkeypatch):
    only(monkeypatch, SUBMIT="cuBrandNew")
    renamed = NEW.replace("(CUstream", "(CUqueue")
    renamed = release(renamed, version=99010, aliases="typedef CUstream CUqueue;")
    assert [e.symbol for e in GEN_API.entries([release(NEW), renamed])] == ["cuBrandNew"]


@pytest.mark.parametrize(
    "declarations",
    [
        NEW + "CUresult cuBrandNew_v2(CUstream hStream);",
        NEW + "typedef CUresult ( *PFN_cuBrandNew_v99010)(CUstream hStream);",
        NEW.replace("_v99000)(", "_v99000)(int flags, "),
    ],
)
def test_functions_and_versions_must_agree(monkeypatch, declarations):
    only(monkeypatch, SUBMIT="cuBrandNew")
    with pytest.raises(HEADERS.HeaderError, match="cuBrandNew"):
        GEN_API.entries([release(declarations)])


def test_what_cant_be_read_is_an_error():
    with pytest.raises(HEADERS.HeaderError, match="FUNCTION"):
        release("CUresult cuOdd(void (*callback)(void), int (*other)(void)) noexcept;")


# --- complete, in both directions ---


@of_each_folder
def test_every_declared_name_is_listed(include):
    """By the plain text of the headers: another way than the generator's."""
    texts = [(include / name).read_text(errors="replace") for name in HEADERS.HEADERS]
    declared = {n for t in texts for n in re.findall(r"CUDAAPI\s+(cu[A-Z]\w*)\s*\(", t)}
    assert len(declared) > 400
    other = {n for n in declared if any(re.fullmatch(p, n) for p in UNDECLARED)}
    # An inline function of the header's own.
    assert declared - other - SYMBOLS.keys() - BASES <= {"cuGetProcAddress_v2_ptsz"}


@pytest.mark.skipif(not PINNED, reason="no pinned CUDA headers (make regen fetches them)")
def test_every_listed_name_is_declared():
    names = (*HEADERS.HEADERS, *HEADERS.TYPEDEFS)
    texts = [(p / n).read_text(errors="replace") for p in PINNED for n in names]
    words = {word for text in texts for word in re.findall(r"\b(?:PFN_)?cu[A-Z]\w*", text)}
    words |= {re.sub(r"^PFN_(\w+?)_v\d+\w*$", r"\1", word) for word in words}
    assert BASES - words == set()


def exports(library):
    elffile = pytest.importorskip("elftools.elf.elffile", reason="needs pyelftools")
    with open(library, "rb") as stream:  # noqa: PTH123
        symbols = elffile.ELFFile(stream).get_section_by_name(".dynsym").iter_symbols()
        return {
            s.name
            for s in symbols
            if s["st_shndx"] != "SHN_UNDEF"
            and s["st_info"]["type"] == "STT_FUNC"
            and s.name.startswith("cu")
        }


def version_in(include):
    return int(re.search(r"#define CUDA_VERSION (\d+)", (include / "cuda.h").read_text())[1])


def version_of_library(library):
    """Ask a driver; a stub is as old as its toolkit."""
    if "stubs" in library.parts:
        kit = next(p for p in library.parents if (p / "include" / "cuda.h").exists())
        return version_in(kit / "include")
    code = (
        "import ctypes as c, sys; v = c.c_int(); c.CDLL(sys.argv[1]).cuDriverGetVersion(c.byref(v))"
    )
    code += "; print(v.value)"
    done = subprocess.run([sys.executable, "-c", code, library], capture_output=True, text=True)
    return int(done.stdout)


def check_both_ways(names, version):
    """Names that exist in a version against those of the list that should."""
    names = {n for n in names if not any(re.fullmatch(p, n) for p in UNDECLARED)}
    newest = max(entry.version for entry in ENTRIES)
    if version <= newest:
        assert names - SYMBOLS.keys() == set()
    assert {e.symbol for e in ENTRIES if e.version <= version} - names == set()


@pytest.mark.skipif(not LIBRARIES, reason="no libcuda.so, real or stub")
@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_list_is_what_a_library_exports(library):
    check_both_ways(exports(library), version_of_library(library))


def cupti_lists():
    return [k for k in TOOLKITS if (k / "include" / "cupti_driver_cbid.h").exists()]


@pytest.mark.skipif(not cupti_lists(), reason="no CUPTI headers")
@pytest.mark.parametrize("toolkit", cupti_lists(), ids=str)
def test_list_is_what_cupti_traces(toolkit):
    """CUPTI has a number for each function that the driver exports: a list made independently."""
    include = toolkit / "include"
    text = (include / "cupti_driver_cbid.h").read_text()
    traced = set(re.findall(r"\bCUPTI_DRIVER_TRACE_CBID_(cu\w+)", text))
    check_both_ways(traced, version_in(include))


# --- true to the compiler ---

SHARING = {
    "GL/gl.h": "typedef unsigned int GLuint, GLenum;",
    "EGL/egl.h": "typedef int EGLint;",
    "EGL/eglext.h": "typedef void *EGLStreamKHR, *EGLImageKHR, *EGLSyncKHR;",
    "vdpau/vdpau.h": "#include <stdint.h>\n"
    "typedef uint32_t VdpDevice, VdpOutputSurface, VdpVideoSurface;\n"
    "typedef int VdpGetProcAddress(VdpDevice, uint32_t, void **);",
    "cudaProfiler.h": "#pragma once\ntypedef enum CUoutput_mode_enum { CU_OUT_CSV } CUoutput_mode;",
}


def includes(include):
    """What a program that wants every name includes."""
    names = [n for n in (*HEADERS.HEADERS, *HEADERS.TYPEDEFS) if (include / n).exists()]
    return "".join(f"#include <{name}>\n" for name in (*SHARING, *names))


def compile_with(include, source, tmp_path):
    for name, text in SHARING.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    compiler = shutil.which("gcc") or shutil.which("cc") or pytest.skip("no C compiler")
    path = tmp_path / "check.c"
    path.write_text("#define __CUDA_API_VERSION_INTERNAL\n" + includes(include) + source)
    command = [compiler, "-std=gnu11", "-fsyntax-only", "-w", f"-I{include}", f"-I{tmp_path}", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[:4000]


def assert_all(conditions):
    return "".join(f'_Static_assert({c}, "{c.replace(chr(34), "")[:200]}");\n' for c in conditions)


@of_each_folder
def test_prototypes_and_versions_are_the_headers(include, tmp_path):
    """With the header's types, each line is its function, and what PFN_name_vVERSION points to."""
    declared = HEADERS.read(include)
    typed = {(t.base, t.version, t.flag) for t in declared.typedefs}
    same = []
    for e in ENTRIES:
        params = ", ".join(map(GEN_API.declare, e.params)) or "void"
        suffix = "" if e.flag == "LEGACY" else "_" + e.flag.lower()
        ours = f"CUresult (*)({params})"
        if e.symbol in declared.functions:
            same.append(f"__builtin_types_compatible_p(__typeof__(&{e.symbol}), {ours})")
        if (e.base, e.version, e.flag) in typed:
            pointer = f"PFN_{e.base}_v{e.version}{suffix}"
            same.append(f"__builtin_types_compatible_p({pointer}, {ours})")
    assert len(same) > 1000
    compile_with(include, assert_all(same), tmp_path)


@pytest.mark.skipif(len(PINNED) < len(HEADERS.PINS), reason="not all pinned headers are here")
def test_types_and_values_are_the_headers(tmp_path):
    """Ours and theirs side by side in one file: ours are renamed while types.h is read."""
    text = (CUDA / "types.h").read_text()
    kinds = ("HANDLE", "ENUM", "STRUCT")
    macros = {kind: re.findall(rf"^KREX_CU_{kind}\((\w+)\);", text, re.M) for kind in kinds}
    structs = re.findall(r"^\} (\w+);", text, re.M)
    scalars = re.findall(r"^typedef (?!struct|void)[\w ]+ (\w+);", text, re.M)
    callbacks = re.findall(r"^typedef \w+ \(\*(\w+)\)\(", text, re.M)
    values = re.findall(r"^#define (CU\w+) ", text, re.M)
    assert len(macros["HANDLE"]) > 25 and len(macros["ENUM"]) > 45 and len(macros["STRUCT"]) > 55
    assert len(structs) == 7 and len(scalars) > 11 and len(callbacks) == 7 and len(values) > 15
    renamed = [*macros["ENUM"], *structs, *scalars]
    handles = [f"sizeof({t}) == sizeof(void *)" for t in macros["HANDLE"]]
    same = [f"sizeof({t}) == 4 && ({t})-1 > 0" for t in macros["ENUM"]]
    same += [f"__builtin_types_compatible_p({t}, ours_{t})" for t in scalars]
    same += [f"sizeof({t}) == sizeof(ours_{t})" for t in structs]
    same += [f"_Alignof({t}) == _Alignof(ours_{t})" for t in structs]
    configs = ("CUlaunchConfig", "CUDA_LAUNCH_PARAMS")
    same += [f"offsetof({t}, hStream) == offsetof(ours_{t}, hStream)" for t in configs]
    same += [f"({v}) == ours_{v}" for v in values]
    constants = re.findall(r"^#define (CU\w+) (.+)$", text, re.M)
    source = [
        "#include <stddef.h>",
        *(f"enum {{ ours_{name} = (long)({value}) }};" for name, value in constants),
        *(f"#define {t} ours_{t}" for t in renamed),
        *definitions(text),
        *(f"#undef {t}" for t in renamed),
        assert_all(handles + same),
        *their_callbacks(text),
    ]
    compile_with(PINNED[-1], "\n".join(source), tmp_path)


def definitions(text):
    """The typedefs of types.h that are more than a name: scalars, and structures."""
    yield from re.findall(r"^typedef (?!struct|void|size_t)[\w ]+ \w+;", text, re.M)
    yield from re.findall(r"^typedef struct \{.*?^\} \w+;", text, re.M | re.S)


def their_callbacks(text):
    """Each callback of types.h with the vendor's parameter types, beside the vendor's own."""
    for whole, name in re.findall(r"^(typedef \w+ \(\*(\w+)\)\(.*?\);)", text, re.M | re.S):
        ours = whole.replace(f"(*{name})", f"(*ours_{name})")
        yield ours + f'_Static_assert(__builtin_types_compatible_p({name}, ours_{name}), "{name}");'


# --- in itself ---


def test_kinds_are_known_and_used():
    assert {e.kind for e in ENTRIES} == KINDS.KINDS.keys() == KINDS.NAMES.keys()


def test_all_forms_of_a_function_are_of_one_kind():
    kinds = collections.defaultdict(set)
    for e in ENTRIES:
        kinds[e.base].add(e.kind)
    assert [base for base, found in kinds.items() if len(found) > 1] == []


def types(entry):
    return [param.type for param in entry.params]


def test_per_thread_forms_are_their_legacy_forms_twins():
    for e in ENTRIES:
        if e.flag != "LEGACY":
            legacy = SYMBOLS[e.symbol.removesuffix("_" + e.flag.lower())]
            assert types(legacy) == types(e) and legacy.flag == "LEGACY", e.symbol
            assert legacy.version <= e.version, e.symbol


@pytest.mark.parametrize(
    ("pattern", "classes"),
    [
        (r"cu(Launch|Memcpy|Memset|FabricCpy)\w*|cuGraph(Launch|Upload)", {"SUBMIT"}),
        (r"cuStream(Wait|Write|BatchMemOp|AddCallback|Attach)\w*|cuMem\w+Async", {"SUBMIT"}),
        (r"cu(Event|Ctx|GreenCtx)Record\w*|cu(Signal|Wait)External\w+", {"SUBMIT"}),
        (r"cu(Mem|Array|Mipmapped)\w*(Alloc|Free|Create|Destroy)", {"HEAVY"}),
        (r"cu(Module|Library)(Load\w*|Unload)|cuGraphInstantiate\w*", {"HEAVY"}),
        (r"cuLink\w+", {"PASS"}),
        (
            r"cu\w*Ctx(Create|Destroy|Detach|PrimaryCtxRe\w+)|cuGreenCtx(Create|Destroy)",
            {"CONTEXT"},
        ),
        (r"cuStream(Begin|End)\w+", {"CAPTURE"}),
        (r"cu\w+(Synchronize|Query)", {"TRACK", "NEVER", "PASS"}),
        (r"cu(Device|Ctx|Stream|Event|Mem|Pointer|Graph)Get\w+", {"PASS", "NEVER"}),
        (r"cuGetProcAddress", {"RESOLVE"}),
    ],
)
def test_names_say_the_class(pattern, classes):
    found = {e.base: class_of(e) for e in ENTRIES if re.fullmatch(pattern, e.base)}
    assert found
    assert {base for base, name in found.items() if name not in classes} == set()


def test_waits_and_the_end_of_a_capture_are_not_gated():
    for name in ("cuCtxSynchronize_v2", "cuEventElapsedTime_v2", "cuEventDestroy_v2"):
        assert class_of(SYMBOLS[name]) == "TRACK"
    for name in (
        "cuStreamQuery_ptsz",
        "cuThreadExchangeStreamCaptureMode",
        "cuCheckpointProcessUnlock",
    ):
        assert SYMBOLS[name].kind == "NEVER"
    assert SYMBOLS["cuStreamEndCapture"].kind == "CAPTURE_END"
    assert SYMBOLS["cuGetExportTable"].kind == "PASS"


@pytest.mark.parametrize(
    ("base", "versions"),
    [
        ("cuMemcpyBatchAsync", [12080, 13000]),
        ("cuMemcpy3DBatchAsync", [12080, 13000]),
        ("cuMemPrefetchAsync", [8000, 12020]),
        ("cuMemAdvise", [8000, 12020]),
        ("cuCtxCreate", [2000, 3020, 11040, 12050]),
        ("cuCtxSynchronize", [2000, 13000]),
        ("cuGetProcAddress", [11030, 12000]),
        ("cuGraphInstantiate", [10000, 11000]),
        ("cuGraphAddNode", [12020, 12030, 13040]),
        ("cuGraphExecUpdate", [10020, 12000]),
        ("cuStreamBatchMemOp", [8000, 11070]),
        ("cuStreamWaitValue32", [8000, 11070]),
        ("cuStreamBeginCapture", [10000, 10010]),
        ("cuStreamGetCaptureInfo", [10010, 11030, 12030]),
        ("cuStreamGetCtx", [9020, 12050]),
        ("cuEventElapsedTime", [2000, 12080]),
        ("cuLaunchHostFunc", [10000, 13010]),
    ],
)
def test_each_abi_of_a_name_has_its_line(base, versions):
    lines = sorted((e.version, e.symbol) for e in ENTRIES if (e.base, e.flag) == (base, "LEGACY"))
    assert [version for version, _ in lines] == versions
    suffixes = ["", *(f"_v{n}" for n in range(2, len(lines) + 1))]
    assert [symbol for _, symbol in lines] == [base + s for s in suffixes]
