# SPDX-License-Identifier: Apache-2.0
"""Get the CUDA headers and read what they say; none of their text goes anywhere.

The wheels of the CUDA runtime carry them. They are fetched by pip, by their hashes, into build/;
the preprocessor then does what it does for a program that asks for all old and all per-thread forms
of the driver API: each function that the driver exports is left with a declaration of its own.
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

from api_source import ATTRIBUTE, HeaderError, Param, download_wheel, parse_params

FOLDER = Path(__file__).resolve().parents[2] / "build" / "cuda-headers"

# One release of each major version, the last one: headers keep what was ever declared.
PINS = {
    "11.8": (
        "nvidia-cuda-runtime-cu11==11.8.89",
        "92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1",
    ),
    "12.9": (
        "nvidia-cuda-runtime-cu12==12.9.79",
        "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",
    ),
    "13.5": (
        "nvidia-cuda-runtime==13.5.37",
        "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d",
    ),
}
HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
TYPEDEFS = (
    "cudaTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaVDPAUTypedefs.h",
    "cudaProfilerTypedefs.h",
)
# What these include and need not find; cudaProfiler.h is in another wheel and says nothing more.
STAND_INS = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h", "cudaProfiler.h")


class Typedef(NamedTuple):
    """What PFN_<base>_v<version>[_ptsz|_ptds] says."""

    base: str
    version: int
    flag: str
    params: tuple[Param, ...]


class Release(NamedTuple):
    """What the headers of one release declare."""

    version: int
    functions: dict[str, tuple[Param, ...]]
    typedefs: list[Typedef]
    aliases: dict[str, str]

    def plain(self, params: Iterable[Param]) -> tuple[str, ...]:
        """The types of parameters, with one name for a type whatever a release calls it."""
        types = (p.type if "*" in p.type else p.type.removeprefix("const ") for p in params)
        return tuple(re.sub(r"\w+", lambda m: self._follow(m[0]), text) for text in types)

    def _follow(self, name: str) -> str:
        while name in self.aliases:
            name = self.aliases[name]
        # A type gets this suffix when a second form of it comes.
        return name.removesuffix("_v1")


# --- fetching ---


def folders() -> list[Path]:
    """Where the headers of each pinned release are, once they are fetched."""
    return [FOLDER / f"{version}-{digest[:8]}" for version, (_, digest) in PINS.items()]


def is_complete(folder: Path) -> bool:
    """Tell whether a folder has all that is read."""
    return all((folder / name).exists() for name in (*HEADERS, *TYPEDEFS))


def fetch() -> None:
    """Fetch what of the pinned headers is not here."""
    for folder, (requirement, digest) in zip(folders(), PINS.values(), strict=True):
        if not is_complete(folder):
            with tempfile.TemporaryDirectory() as scratch:
                _unpack(download_wheel(requirement, digest, Path(scratch)), folder)


def _unpack(wheel: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {*HEADERS, *TYPEDEFS}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            target = folder / Path(name).name
            if target.name in wanted:
                target.write_bytes(archive.read(name))
    if not is_complete(folder):
        raise HeaderError(f"{wheel.name} lacks headers")


# --- reading ---

FUNCTION = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")
POINTER = re.compile(r"\btypedef\s+CUresult\s*\(\s*\*\s*(PFN_\w+)\s*\)\s*\(([^;{}]*)\)\s*;")
POINTER_NAME = re.compile(r"PFN_(cu\w+?)_v(\d+)(?:_(ptsz|ptds))?")
ALIAS = re.compile(r"\btypedef\s+(\w+)\s+(\w+)\s*;")


def preprocess(include: Path) -> str:
    """Everything that the headers in a folder declare, without comments and macros."""
    wanted = [name for name in (*HEADERS, *TYPEDEFS) if (include / name).exists()]
    source = "".join(f"#include <{name}>\n" for name in wanted) + "krex_version CUDA_VERSION\n"
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    with tempfile.TemporaryDirectory() as scratch:
        for name in STAND_INS:
            Path(scratch, name).parent.mkdir(exist_ok=True)
            Path(scratch, name).touch()
        command = [*compiler, "-E", "-P", "-xc", "-D__CUDA_API_VERSION_INTERNAL"]
        command += [f"-I{include}", "-idirafter", scratch, "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HeaderError(done.stderr.strip())
    return ATTRIBUTE.sub(" ", done.stdout)


def parse_typedefs(text: str) -> list[Typedef]:
    """What the PFN_ typedefs say; each has its version in its name."""
    found = []
    for match in POINTER.finditer(text):
        name = POINTER_NAME.fullmatch(match[1])
        if not name:
            raise HeaderError(f"a typedef without a version: {match[1]}")
        flag = (name[3] or "legacy").upper()
        found.append(Typedef(name[1], int(name[2]), flag, parse_params(match[2])))
    if len(found) != len(re.findall(r"\btypedef\b[^;]*\bPFN_\w+[^;]*;", text)):
        raise HeaderError("a typedef that POINTER doesn't understand")
    return found


def parse(text: str) -> Release:
    """Read preprocessed headers."""
    functions: dict[str, tuple[Param, ...]] = {}
    for match in FUNCTION.finditer(text):
        params = parse_params(match[2])
        if functions.setdefault(match[1], params) != params:
            raise HeaderError(f"{match[1]} is declared twice, differently")
    missed = {*re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\([^{;]*;", text)} - functions.keys()
    if missed:
        raise HeaderError("declarations that FUNCTION doesn't understand: " + " ".join(missed))
    version = re.search(r"krex_version\s+(\d+)", text)
    aliases = {name: target for target, name in ALIAS.findall(text) if name != target}
    return Release(int(version[1]) if version else 0, functions, parse_typedefs(text), aliases)


def read(include: Path) -> Release:
    """Read the headers in a folder."""
    return parse(preprocess(include))
