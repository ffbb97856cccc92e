# SPDX-License-Identifier: Apache-2.0
"""Get the HIP headers and read what they say; none of their text goes anywhere.

Three releases, each from a package that has what is to be read, by its hash:

    5.2   Debian's libamdhip64-dev: hip_runtime_api.h, which the preprocessor reads for us
    7.1   Triton's wheel: hip_api_trace.hpp, with a typedef for each function of the dispatch
          tables, behind which lies every function that the library exports as C
    10.0  rocm-bindings-hip's wheel: cyhip.pxd, with a declaration of each public function

What a library exports and no header declares as C is in MANGLED and EXPORTS.
"""

import os
import re
import shlex
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from api_source import (
    ATTRIBUTE,
    HeaderError,
    Param,
    download_package,
    download_wheel,
    parse_params,
    spell,
)

FOLDER = Path(__file__).resolve().parents[2] / "build" / "hip-headers"
# A folder of headers has one of these.
RUNTIME, TRACE, BINDINGS = "hip_runtime_api.h", "hip_api_trace.hpp", "cyhip.pxd"


class Function(NamedTuple):
    """A function that the library exports."""

    ret: str
    params: tuple[Param, ...]


class Release(NamedTuple):
    """What the headers of one release declare."""

    version: str
    functions: dict[str, Function]
    has_names: bool = False  # of all types


class Pin(NamedTuple):
    """Where the headers of a release come from."""

    what: str  # a requirement
    digest: str
    file: str  # the one that is read
    member: str  # the folder that it and its neighbours lie in


PINS = {
    "5.2": Pin(
        "libamdhip64-dev=5.2.3-8",
        "1f87b72e5aa86025c6cb96312c75ee7f549c42475f4bc51049ab7b67cc4e762e",
        RUNTIME,
        "usr/include/",
    ),
    "7.1": Pin(
        "triton==3.9.0",
        "1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e",
        TRACE,
        "triton/backends/amd/include/",
    ),
    "10.0": Pin(
        "rocm-bindings-hip==10.0.0.0.1.2",
        "b288d26fac3ab77d2f25f4b832397abb1d01157871f23226f9dd389e92b22ee4",
        BINDINGS,
        "rocm/bindings/",
    ),
}

# The same functions as C++ mangles them.
LAUNCH = "P18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_"
MANGLED = {
    f"_Z24hipExtModuleLaunchKernel{LAUNCH}j": "hipExtModuleLaunchKernel",
    f"_Z24hipHccModuleLaunchKernel{LAUNCH}": "hipHccModuleLaunchKernel",
    "_Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc": "hipCreateSurfaceObject",
    "_Z23hipDestroySurfaceObjectP13__hip_surface": "hipDestroySurfaceObject",
}
GGL = "_ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv"
# Exported, and declared nowhere or only as C++: what it returns, and its parameters. What the first
# one returns nobody reads.
EXPORTS = {
    GGL: (
        "hipError_t",
        (
            "uintptr_t function_address, const dim3 *numBlocks, const dim3 *dimBlocks, "
            "uint32_t sharedMemBytes, hipStream_t stream, void **kernarg"
        ),
    ),
    "__hipGetPCH": ("void", "const char **pch, unsigned int *size"),
    "hipGetDeviceProperties": ("hipError_t", "void *prop, int deviceId"),
    "hipChooseDeviceR0600": (
        "hipError_t",
        "int *device, const hipDeviceProp_tR0600 *properties",
    ),
    "hipRegisterTracerCallback": ("void", "void *function"),
    "hipRegisterApiCallback": ("hipError_t", "uint32_t id, void *fun, void *arg"),
    "hipRemoveApiCallback": ("hipError_t", "uint32_t id"),
    "hipRegisterActivityCallback": ("hipError_t", "uint32_t id, void *fun, void *arg"),
    "hipRemoveActivityCallback": ("hipError_t", "uint32_t id"),
    "hipInitActivityCallback": (
        "void",
        "void *id_callback, void *op_callback, void *arg",
    ),
    "hipEnableActivityCallback": ("bool", "unsigned int op, bool enable"),
    "hipGetCmdName": ("const char *", "unsigned int op"),
}


def base_of(symbol: str) -> str:
    """The public name of a symbol's function."""
    if symbol in MANGLED:
        return MANGLED[symbol]
    return "hipLaunchKernelGGLImpl" if symbol == GGL else symbol.removesuffix("_spt")


# --- fetching ---


def folders() -> list[Path]:
    """Where the headers of each pinned release are, once they are fetched."""
    return [FOLDER / f"{version}-{pin.digest[:8]}" for version, pin in PINS.items()]


def is_complete(folder: Path) -> bool:
    """Tell whether a folder has something to read."""
    return any(find(folder, name) for name in (RUNTIME, TRACE, BINDINGS))


def find(folder: Path, name: str) -> Path | None:
    """A file below a folder."""
    return next(iter(sorted(folder.rglob(name))), None)


def fetch() -> None:
    """Fetch what of the pinned headers is not here."""
    for folder, pin in zip(folders(), PINS.values(), strict=True):
        if not find(folder, pin.file):
            with tempfile.TemporaryDirectory() as scratch:
                _fetch_one(pin, folder, Path(scratch))


def _fetch_one(pin: Pin, folder: Path, scratch: Path) -> None:
    if "==" in pin.what:
        with zipfile.ZipFile(download_wheel(pin.what, pin.digest, scratch)) as archive:
            archive.extractall(scratch, [n for n in archive.namelist() if n.startswith(pin.member)])
    else:
        package = download_package(pin.what, pin.digest, scratch)
        subprocess.run(["dpkg-deb", "-x", package, scratch], check=True)
    for path in (scratch / pin.member).rglob("*"):
        if path.suffix in (".h", ".hpp", ".pxd"):
            target = folder / path.relative_to(scratch / pin.member)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    if not find(folder, pin.file):
        raise HeaderError(f"{pin.what} lacks {pin.file}")


# --- reading ---

NAME = r"(?:__)?hip[A-Z]\w*"
FUNCTION = re.compile(rf"^(\w[\w ]*?[\s*]+)({NAME})\s*\(([^;{{}}()]*)\)\s*;", re.M)
TYPEDEF = re.compile(
    rf"\btypedef\s+([^;()]+?)\(\s*\*\s*t_({NAME})\)\s*\(([^;{{}}()]*)\)\s*;",
)
BINDING = re.compile(rf"^cdef (\w[\w *]*?)\b({NAME})\(([^()\n]*)\) ", re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
DEFINED = re.compile(r"^#define HIP_VERSION_(MAJOR|MINOR) (\d+)$", re.M)


def parse(text: str, pattern: re.Pattern[str]) -> dict[str, Function]:
    """The functions that a text declares, as a pattern finds them."""
    functions: dict[str, Function] = {}
    for ret, name, params in pattern.findall(text):
        found = Function(spell(ret.removeprefix("struct ")), _params(params))
        if functions.setdefault(name, found) != found:
            raise HeaderError(f"{name} is declared twice, differently")
    return functions


def _params(text: str) -> tuple[Param, ...]:
    """Parameters, without what says nothing to the ABI."""
    text = re.sub(r"\b(struct|enum)\s+|\s+__dparm\(\w+\)", "", text)
    text = re.sub(r"(\w+)\[\w*\]", r"*\1", text)
    params = parse_params(text)
    if len({param.name for param in params}) < len(params):
        raise HeaderError(f"two parameters of one name: {text}")
    return params


def preprocess(include: Path) -> str:
    """Everything that the runtime's header declares to a C program, without comments and macros."""
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    source = (
        "#include <hip/hip_runtime_api.h>\n#include <hip/amd_detail/amd_hip_runtime_pt_api.h>\n"
    )
    command = [*compiler, "-E", "-P", "-xc", "-D__HIP_PLATFORM_AMD__", f"-I{include}", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HeaderError(done.stderr.strip())
    return ATTRIBUTE.sub(" ", done.stdout)


def read(include: Path) -> Release:
    """Read the headers in a folder."""
    if file := find(include, TRACE):
        functions = parse(COMMENT.sub(" ", file.read_text()), TYPEDEF)
        return Release(_version(include), functions, has_names=True)
    if file := find(include, BINDINGS):
        functions = parse(file.read_text(), BINDING)
    else:
        functions = parse(preprocess(include), FUNCTION)
    return Release(_version(include), functions)


def _version(include: Path) -> str:
    """What the headers say, or who fetched them."""
    file = find(include, "hip_version.h")
    if not file:
        return include.name.partition("-")[0]
    found = dict(DEFINED.findall(file.read_text()))
    return f"{found['MAJOR']}.{found['MINOR']}"


def merge(releases: Iterable[Release]) -> dict[str, Function]:
    """Each function of all releases; none may have changed.

    It is spelt as in the release that has names of all types, if that has it.
    """
    merged: dict[str, Function] = {}
    for release in sorted(releases, key=lambda r: r.has_names):
        for symbol, function in release.functions.items():
            if symbol in merged and shape(merged[symbol]) != shape(function):
                raise HeaderError(f"{symbol} is not the same in HIP {release.version}")
            merged[symbol] = function
    return merged


# Names that a release has for a type of another name.
ALIASES = {
    "hipDevice_t": "int",
    "hipIpcMemHandle_t": "hipIpcMemHandle_st",
    "hipIpcEventHandle_t": "hipIpcEventHandle_st",
    "hipStreamAttrID": "hipLaunchAttributeID",
    "hipKernelNodeAttrID": "hipLaunchAttributeID",
}
# Names for pointers that a release declares as what they are.
POINTERS = ("hipArray_t", "hipDeviceptr_t", "hipExternalMemory_t", "hipExternalSemaphore_t")


def shape(function: Function) -> tuple[str, ...]:
    """What of a function's types a caller depends on: all pointers are alike."""
    return tuple(_shape_of(text) for text in (function.ret, *(p.type for p in function.params)))


def _shape_of(text: str) -> str:
    text = text.removeprefix("const ")
    return "*" if text.endswith("*") or text in POINTERS else ALIASES.get(text, text)
