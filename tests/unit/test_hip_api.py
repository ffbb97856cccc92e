# SPDX-License-Identifier: Apache-2.0
"""api.def of HIP is complete, current, and true: against the headers, a library and the compiler.

The pinned headers and a library are in build/ once `make clients` has fetched them; what Debian's
libraries export is in data/hip_exports.tsv. KREX_TEST_HIP_LIBRARY names another library.
"""

import collections
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import hip_runtime

ROOT = Path(__file__).resolve().parents[2]
HIP = ROOT / "shim" / "hip"
# With headers of programs, for the compiler.
INCLUDES = ("5.2", "7.1")

# Exported, and no function of the runtime's.
OTHERS = {
    r"hiprtc\w+": "compiles, and has a library of its own since",
    r"amd_dbgapi_\w+": "the debugger's",
    r"__gnu_\w+_ieee": "the compiler's",
}


def load(name):
    spec = importlib.util.spec_from_file_location(f"krex_hip_{name}", HIP / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


sys.path.append(str(ROOT / "shim" / "gpu"))
HEADERS = load("hip_headers")
KINDS = load("hip_kinds")
GEN_API = load("gen_api")
INSTALLED = [
    Path(os.environ.get("KREX_TEST_HIP_LIBRARY", "/none")),
    *Path("/usr/lib").glob("*-linux-gnu/libamdhip64.so.?"),
]
LIBRARIES = [*load("hip_library").fetched(), *filter(Path.exists, INSTALLED)]
HeaderError = HEADERS.HeaderError
PINNED = {v: f for v, f in zip(HEADERS.PINS, HEADERS.folders(), strict=True) if f.exists()}
ALL_PINNED = pytest.mark.skipif(
    len(PINNED) < len(HEADERS.PINS),
    reason="not all HIP headers are here (make clients fetches them)",
)

TEXT = (HIP / "api.def").read_text()
ENTRIES = [GEN_API.parse_line(li) for li in TEXT.splitlines() if li.startswith("KREX_HIP_API(")]
SYMBOLS = {entry.symbol: entry for entry in ENTRIES}


def base_of(entry):
    return HEADERS.base_of(entry.symbol)


def run_gen_api(*arguments):
    command = [sys.executable, HIP / "gen_api.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


# --- current ---


@ALL_PINNED
def test_regenerated_is_what_is_committed():
    done = run_gen_api("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_headers_all_but_the_facts_is_regenerated():
    assert GEN_API.regenerate(TEXT) == TEXT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "(SUBMIT, hipError_t, hipModuleLaunchKernel,",
            "(PASS, hipError_t, hipModuleLaunchKernel,",
        ),
        ("hipFunction_t f, unsigned int gridDimX", "hipFunction_t f, unsigned long gridDimX"),
        ("LEGACY, stream, (void **dev_ptr", "LEGACY, KREX_HIP_NO_STREAM, (void **dev_ptr"),
        ("hipError_t, hipFree,", "int, hipFree,"),
    ],
)
def test_without_headers_an_edit_is_noticed(old, new):
    # GIVEN a file with one edit by hand WHEN regenerated from itself THEN it isn't what it is
    assert old in TEXT
    edited = TEXT.replace(old, new, 1)
    try:
        assert GEN_API.regenerate(edited) != edited
    except HeaderError:
        pass  # or it is refused


def test_missing_headers_are_status_2(tmp_path):
    done = run_gen_api("--check", tmp_path)
    assert done.returncode == 2
    assert "no HIP headers" in done.stderr and "Traceback" not in done.stderr


# --- undecided ---

NEW = "hipError_t hipBrandNew(hipStream_t stream);"


def release(text, version="9.9"):
    return HEADERS.Release(version, HEADERS.parse(text, HEADERS.FUNCTION))


def entries(monkeypatch, *releases, **names):
    """The lines for some headers, with decisions on what is exported besides."""
    monkeypatch.setattr(HEADERS, "EXPORTS", {})
    monkeypatch.setattr(KINDS, "NAMES", names)
    return GEN_API.entries(GEN_API.exported(releases))


def test_a_new_function_asks_for_a_decision(monkeypatch):
    with pytest.raises(HeaderError, match=r"no kind.*hipBrandNew"):
        entries(monkeypatch, release(NEW))


def test_a_decision_on_nothing_is_refused(monkeypatch):
    with pytest.raises(HeaderError, match=r"not in the headers: hipGone"):
        entries(monkeypatch, release(NEW), SUBMIT="hipBrandNew hipGone")


def test_two_decisions_are_refused(monkeypatch):
    with pytest.raises(HeaderError, match=r"twice.*hipBrandNew"):
        entries(monkeypatch, release(NEW), SUBMIT="hipBrandNew", PASS="hipBrandNew")


def test_a_kind_must_fit_the_parameters(monkeypatch):
    without = release(NEW.replace("hipStream_t", "hipEvent_t"))
    with pytest.raises(HeaderError, match="it has no stream"):
        entries(monkeypatch, without, CAPTURE="hipBrandNew")


def test_a_hook_needs_a_result(monkeypatch):
    with pytest.raises(HeaderError, match="it returns void"):
        entries(monkeypatch, release(NEW.replace("hipError_t", "void")), SUBMIT="hipBrandNew")


@pytest.mark.parametrize(
    "changed", ["hipError_t hipBrandNew(int flags, hipStream_t stream);", "int hipBrandNew(void);"]
)
def test_an_abi_that_changes_under_its_symbol_is_refused(monkeypatch, changed):
    with pytest.raises(HeaderError, match=r"hipBrandNew is not the same in HIP 10\.0"):
        entries(monkeypatch, release(NEW), release(changed, "10.0"), SUBMIT="hipBrandNew")


def test_all_forms_of_a_name_are_decided_at_once(monkeypatch):
    both = release(NEW + "\n" + NEW.replace("New(", "New_spt("))
    found = entries(monkeypatch, both, SUBMIT="hipBrandNew")
    assert [(e.symbol, e.kind, e.flag) for e in found] == [
        ("hipBrandNew", "SUBMIT", "LEGACY"),
        ("hipBrandNew_spt", "SUBMIT", "SPT"),
    ]


# --- complete ---


def without_others(names):
    return {n for n in names if not any(re.fullmatch(p, n) for p in OTHERS)}


@pytest.mark.parametrize(
    ("release", "exported", "of_the_runtime"),
    [("5.2", 409, 393), ("5.7", 459, 436), ("6.4", 502, 479)],
)
def test_list_has_what_debians_libraries_export(release, exported, of_the_runtime):
    exports = hip_runtime.read_exports(release)
    names = without_others(exports)
    assert (len(exports), len(names)) == (exported, of_the_runtime)
    assert names - SYMBOLS.keys() == set()


def versions_of(library):
    """Each exported function of a library, and its version node."""
    elffile = pytest.importorskip("elftools.elf.elffile", reason="needs pyelftools")
    with open(library, "rb") as stream:  # noqa: PTH123
        elf = elffile.ELFFile(stream)
        numbers = elf.get_section_by_name(".gnu.version")
        defined = elf.get_section_by_name(".gnu.version_d").iter_versions()
        nodes = {entry["vd_ndx"]: next(names).name for entry, names in defined}
        symbols = enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
        return {
            s.name: nodes[numbers.get_symbol(i)["ndx"]]
            for i, s in symbols
            if s["st_info"]["type"] == "STT_FUNC" and s["st_shndx"] != "SHN_UNDEF"
        }


@pytest.mark.skipif(not LIBRARIES, reason="no libamdhip64.so (make clients, on Debian 12)")
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_a_real_library_exports_nothing_else(library):
    found = versions_of(library)
    assert without_others(found) - SYMBOLS.keys() == set()
    # And what was noted of its release, if anything was, is true: so.5.2.21153 is of 5.2.
    release = ".".join(library.resolve().name.split(".")[2:4])
    assert found == (hip_runtime.read_exports(release) or found)


@ALL_PINNED
def test_every_declared_name_is_listed():
    """By the plain text of the headers: another way than the generator's."""
    declared = set()
    for folder in PINNED.values():
        for path in (*folder.rglob("hip_runtime_api.h"), *folder.rglob("*_pt_api.h")):
            text = path.read_text(errors="replace")
            declared |= set(re.findall(r"^hipError_t +(hip[A-Z]\w*) *\(", text, re.M))
    assert len(declared) > 480
    assert declared - SYMBOLS.keys() == set()


# --- true to the compiler ---

# To one header these take a pointer to pointers, to another a pointer: the same to a hook.
UNSURE = {"hipLibraryLoadData", "hipLibraryLoadFromFile"}
TAGS = ("hipLimit_t", "hipTextureAddressMode", "hipTextureFilterMode")


def compile_with(include, source, tmp_path):
    path = tmp_path / "check.c"
    head = "#include <hip/hip_runtime_api.h>\n#include <hip/amd_detail/amd_hip_runtime_pt_api.h>\n"
    # These are of C++ by that name.
    head += "".join(f"typedef enum {tag} {tag};\n" for tag in TAGS)
    head += "typedef struct hipResourceViewDesc hipResourceViewDesc;\n"
    path.write_text(f"#define __HIP_PLATFORM_AMD__\n#include <stddef.h>\n{head}{source}")
    command = ["gcc", "-std=gnu11", "-fsyntax-only", "-w", f"-I{include}", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[:4000]


def assert_all(conditions):
    return "".join(f'_Static_assert({c}, "{c.replace(chr(34), "")[:200]}");\n' for c in conditions)


@ALL_PINNED
def test_prototypes_are_the_headers(tmp_path):
    """With the header's types, each line of a declared function is that function."""
    include = PINNED["7.1"]
    declared = HEADERS.parse(HEADERS.preprocess(include), HEADERS.FUNCTION)
    same = []
    for name in (declared.keys() & SYMBOLS.keys()) - UNSURE:
        e = SYMBOLS[name]
        params = ", ".join(map(GEN_API.declare, e.params)) or "void"
        ours = f"{e.ret} (*)({params})"
        same.append(f"__builtin_types_compatible_p(__typeof__(&{name}), {ours})")
    assert len(same) > 480
    compile_with(include, assert_all(same), tmp_path)


@ALL_PINNED
@pytest.mark.parametrize("version", INCLUDES)
def test_types_and_values_are_the_headers(tmp_path, version):
    """Ours and theirs side by side in one file: ours are renamed while types.h is read."""
    include = PINNED[version]
    theirs = HEADERS.preprocess(include)
    text = (HIP / "types.h").read_text()

    def known(names):
        return [name for name in names if re.search(rf"\b{name}\b", theirs)]

    macros = {
        k: known(re.findall(rf"^KREX_HIP_{k}\((\w+)\);", text, re.M)) for k in ("HANDLE", "ENUM")
    }
    every = re.findall(r"^\} (\w+);", text, re.M)
    structs = known(every)
    values = known(re.findall(r"^#define (hipS?E?\w+) ", text, re.M))
    assert len(macros["HANDLE"]) > 18 and len(macros["ENUM"]) > 18 and len(structs) > 8
    same = [f"sizeof({t}) == sizeof(void *)" for t in macros["HANDLE"]]
    same += [f"sizeof({t}) == 4" for t in macros["ENUM"]]
    same += [f"sizeof({t}) == sizeof(ours_{t})" for t in structs]
    same += [f"_Alignof({t}) == _Alignof(ours_{t})" for t in structs]
    fields = {t: f for t, f in GEN_API.CONFIGS.items() if t in structs}
    same += [f"offsetof({t}, {f}) == offsetof(ours_{t}, {f})" for t, f in fields.items()]
    same += [f"(long)({v}) == ours_{v}" for v in values]
    constants = [c for c in re.findall(r"^#define (hip\w+) (.+)$", text, re.M) if c[0] in values]
    source = [
        *(f"enum {{ ours_{name} = (long)({value}) }};" for name, value in constants),
        *(f"#define {t} ours_{t}" for t in every),
        *re.findall(r"^typedef struct \{.*?^\} \w+;", text, re.M | re.S),
        *(f"#undef {t}" for t in every),
        assert_all(same),
    ]
    compile_with(include, "\n".join(source), tmp_path)


# --- in itself ---


def test_kinds_are_known_and_used():
    assert {e.kind for e in ENTRIES} == KINDS.KINDS.keys() == KINDS.NAMES.keys()


def test_all_forms_of_a_function_are_of_one_kind():
    kinds = collections.defaultdict(set)
    for e in ENTRIES:
        kinds[base_of(e)].add(e.kind)
    assert [base for base, found in kinds.items() if len(found) > 1] == []


def types(entry):
    return [re.sub(r"\bunsigned int\b", "uint32_t", p.type) for p in entry.params]


def test_per_thread_forms_are_their_legacy_forms_twins():
    spt = [e for e in ENTRIES if e.flag == "SPT"]
    assert len(spt) == 39
    for e in spt:
        legacy = SYMBOLS[e.symbol.removesuffix("_spt")]
        assert types(legacy) == types(e), e.symbol


def test_the_list_is_in_the_order_of_its_symbols():
    assert [e.symbol for e in ENTRIES] == sorted(e.symbol for e in ENTRIES)


@pytest.mark.parametrize(
    ("pattern", "classes"),
    [
        (r"hip(|Ext|Hcc|Drv)(Launch|Module(Launch|Cooperative)|Memcpy|Memset)\w*", {"SUBMIT"}),
        (r"hipStream(Wait|Write|BatchMemOp|AddCallback|Attach)\w*|hipM\w+Async\w*", {"SUBMIT"}),
        (r"hip(Event|ExecutionCtx)Record\w*|hip(Signal|Wait)External\w+", {"SUBMIT"}),
        (r"hip(Malloc|Free|HostMalloc|HostFree|Array)(3D|Create|Destroy|Pitch)?", {"HEAVY"}),
        (r"hip(Module|Library)(Load\w*|Unload)|hipGraphInstantiate\w*", {"HEAVY"}),
        (r"hip(Ext)?Stream(Create|Destroy)\w*", {"HEAVY"}),
        (r"hipLink\w+|__hip\w+", {"PASS"}),
        (r"hipStream(Begin|End)\w+", {"CAPTURE"}),
        (r"hip\w+(Synchronize|Query)", {"NEVER", "TRACK"}),
        (r"hip(Device|Ctx|Stream|Event|Mem|Pointer|Graph)Get\w+", {"PASS", "NEVER"}),
        (r"hipGet(ProcAddress|DriverEntryPoint)", {"RESOLVE"}),
    ],
)
def test_names_say_the_class(pattern, classes):
    found = {base_of(e): e.kind.partition("_")[0] for e in ENTRIES}
    found = {base: kind for base, kind in found.items() if re.fullmatch(pattern, base)}
    assert found
    assert {base for base, kind in found.items() if kind not in classes} == set()


@pytest.mark.parametrize(
    ("symbol", "stream"),
    [
        ("hipModuleLaunchKernel", "stream"),
        ("hipLaunchKernelExC", "KREX_HIP_STREAM_OF(config, stream)"),
        ("hipLaunchCooperativeKernelMultiDevice", "KREX_HIP_STREAM_OF(launchParamsList, stream)"),
        ("hipMemcpy", "KREX_HIP_NULL_STREAM"),
        ("hipMemcpy_spt", "KREX_HIP_NULL_STREAM"),
        ("hipLaunchByPtr", "KREX_HIP_NO_STREAM"),
        ("hipMalloc", "KREX_HIP_NO_STREAM"),
    ],
)
def test_streams_are_found(symbol, stream):
    assert GEN_API.stream_of(SYMBOLS[symbol]) == stream
