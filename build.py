# SPDX-License-Identifier: Apache-2.0
"""Build what is compiled: the preload library, the cffi module, the simulated devices.

    python build.py [--sanitize=address|undefined|thread] [--library-only | --sim-only]
                    [--out DIR] [-v]

`krex/lib/libkrex.so` is a plain shared object: it lands in every program of a command, so it must
carry no Python symbols. `krex/_native` is the controller's view of the board, through the same
headers. `krex/include/krex.h` is a copy of the public header. `krex/lib/sim/` has the process of
the simulated devices, and the driver library that programs load instead of a real one.

Without options everything is built in place, and only what changed. With --sanitize the library and
the simulated devices go to build/<sanitizer>/. setuptools comes in by BuildExt and BdistWheel (see
pyproject.toml).
$CC names the compiler, and may name a cross compiler; $CPPFLAGS, $CFLAGS and $LDFLAGS are appended.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
SHIM = ROOT / "shim"
NATIVE = SHIM / "native"
SIM = SHIM / "sim"
SIM_HIP_NAME = SIM / "hip" / "soname.c"
BUILD = ROOT / "build"

# The oldest Python that the cffi module has to load in: one binary serves it and all later ones.
LIMITED_API = "cp310"
SANITIZERS = ("address", "undefined", "thread")

COMPILE = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
)
WARN = ("-Wall", "-Wextra", "-Werror")
# Pins every symbol to a version that old glibcs have; it must come before any system header.
COMPAT = ("-include", str(SHIM / "glibc_compat.h"))
LINK = (
    "-shared",
    "-Wl,-soname,libkrex.so",
    f"-Wl,--version-script={SHIM / 'libkrex.map'}",
    # A program may define a function that we hook: what we hand out is still ours.
    "-Wl,-Bsymbolic",
    "-Wl,-z,defs",
    "-Wl,-z,now",
    "-Wl,-z,relro",
)
# Before glibc 2.34 these are libraries of their own, and the library must say that it needs them.
LIBRARIES = ("-Wl,--no-as-needed", "-ldl", "-lpthread")
NATIVE_LINK = ("-shared", "-Wl,-z,now", "-Wl,-z,relro")
NATIVE_LIBRARIES = ("-lpthread",)
# Programs load the simulated driver late, when there may be no room left for static thread storage.
SIM_COMPILE = tuple(flag for flag in COMPILE if not flag.startswith("-ftls-model"))
SIM_DRIVER_LINK = (
    "-shared",
    "-Wl,-Bsymbolic",
    "-Wl,-z,defs",
    # Its threads run on where a program closes it.
    "-Wl,-z,nodelete",
)
# A simulated driver's file, its face, and its export list.
SIM_DRIVERS = {
    "libcuda.so.1": ("cuda", SIM / "libcuda.map"),
    "libamdhip64.so": ("hip", SIM / "libamdhip64.map"),
}
# What else programs call libamdhip64.so: files of their own, for a wheel keeps no links.
SIM_HIP_NAMES = ("libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7")
MAPS = (SHIM / "libkrex.map", *(path for _, path in SIM_DRIVERS.values()))
SIM_DEVICE_LINK = ("-pie", "-Wl,-z,now", "-Wl,-z,relro")
SIM_LIBRARIES = ("-Wl,--as-needed", "-lm", "-ldl", "-lpthread")
SANITIZE = ("-O1", "-g", "-fno-omit-frame-pointer")


class BuildError(Exception):
    """Something the person at the keyboard can put right; the text says how."""


class Toolchain:
    """A compiler, and the build folder that belongs to it and to one set of flags."""

    def __init__(self, sanitize: str | None = None, verbose: bool = False) -> None:
        self.cc = find_compiler()
        self.verbose = verbose
        self.sanitize = sanitize
        self.triple = self._ask("-dumpmachine")
        self.folder = BUILD / "obj" / f"{self.triple}-{sanitize or 'release'}"
        self.compile_flags = [*_flags("CPPFLAGS"), *_flags("CFLAGS")]
        self.link_flags = _flags("LDFLAGS")
        if sanitize:
            option = f"-fsanitize={sanitize}"
            self.compile_flags += [*SANITIZE, option, "-fno-sanitize-recover=all"]
            if sanitize == "thread":
                # gcc says that it can't check the fences. clang doesn't know the warning.
                self.compile_flags += ["-Wno-unknown-warning-option", "-Wno-tsan"]
            self.link_flags.append(option)

    @property
    def arch(self) -> str:
        """The processor that the compiler compiles for."""
        return self.triple.partition("-")[0]

    def _ask(self, option: str) -> str:
        done = subprocess.run([*self.cc, option], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{shlex.join(self.cc)} {option} failed: {done.stderr.strip()}")
        return done.stdout.strip()

    def run(self, command: Sequence[str], target: Path) -> None:
        """Make target by a command, in one step: a program may have the old file mapped."""
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.verbose:
            print(shlex.join(command))
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as scratch:
            made = Path(scratch, target.name)
            done = subprocess.run([*command, "-o", str(made)], check=False)
            if done.returncode:
                raise BuildError(f"{target.name} failed to build: {shlex.join(command)}")
            made.replace(target)

    def compile(self, source: Path, flags: Sequence[str]) -> Path:
        """Compile one file unless its object is newer than all it was made from."""
        name = os.path.relpath(source, ROOT).replace(os.sep, "_")
        target = self.folder / f"{name}.o"
        depends = target.with_suffix(".d")
        command = [*self.cc, *flags, *self.compile_flags]
        command += ["-MMD", "-MF", str(depends), "-MT", "object", "-c", str(source)]
        if _is_stale(target, command, [source, *_read_depends(depends)]):
            self.run(command, target)
            _stamp(target, command)
        return target

    def compile_all(self, jobs: Iterable[tuple[Path, Sequence[str]]]) -> list[Path]:
        """Compile files side by side; the order of the objects is that of the sources."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda job: self.compile(*job), jobs))

    def link(
        self, target: Path, objects: Sequence[Path], flags: Sequence[str], libraries: Sequence[str]
    ) -> None:
        """Link objects if one of them, or an export list, is newer than what they made."""
        command = [*self.cc, *flags, *self.link_flags, *map(str, objects), *libraries]
        # The stamp stays in the build folder: targets lie in a package.
        key = self.folder / f"{target.name}.link"
        if _is_stale(target, command, [*objects, *MAPS], key):
            self.run(command, target)
            _stamp(key, command)


def find_compiler() -> list[str]:
    """Return $CC, or the first usual compiler on PATH."""
    named = shlex.split(os.environ.get("CC", ""))
    for candidate in [named] if named else [["gcc"], ["cc"], ["clang"]]:
        if shutil.which(candidate[0]):
            return candidate
    if named:
        raise BuildError(f"CC is {named[0]!r}, and there is no such program")
    raise BuildError(
        "no C compiler: install gcc (Debian, Ubuntu: apt-get install gcc libc6-dev) or set CC"
    )


def _flags(name: str) -> list[str]:
    return shlex.split(os.environ.get(name, ""))


def _stamp(target: Path, command: Sequence[str]) -> None:
    target.with_name(f"{target.name}.command").write_text(shlex.join(command))


def _is_stale(
    target: Path, command: Sequence[str], inputs: Iterable[Path], key: Path | None = None
) -> bool:
    """Tell whether target is missing, was made by another command, or is older than an input."""
    key = key or target
    stamp = key.with_name(f"{key.name}.command")
    try:
        if stamp.read_text() != shlex.join(command):
            return True
        made = target.stat().st_mtime_ns
        return any(path.stat().st_mtime_ns >= made for path in inputs)
    except FileNotFoundError:
        return True


def _read_depends(path: Path) -> list[Path]:
    """Read the prerequisites out of a make rule that the compiler wrote."""
    if not path.exists():
        return []
    text = path.read_text().partition(":")[2].replace("\\\n", " ")
    # A space inside a path is escaped; shlex reads it the same way.
    return [ROOT / name for name in shlex.split(text)]


def library_sources(arch: str) -> list[Path]:
    """List the C files of the preload library, and the assembly of one architecture if any."""
    assembly = [p for p in (SHIM / f"resolve-{arch}.S",) if p.exists()]
    sources = sorted(p for p in SHIM.rglob("*.c") if not {NATIVE, SIM} & set(p.parents))
    return [*sources, *assembly]


def build_library(tools: Toolchain, target: Path) -> None:
    """Build libkrex.so."""
    # Sanitizers bring their own versions of the calls that the pins name.
    compat = () if tools.sanitize else COMPAT
    flags = [*COMPILE, *WARN, f"-I{SHIM}"]
    jobs = [
        (source, flags if source.suffix == ".S" else [*flags, *compat])
        for source in library_sources(tools.arch)
    ]
    tools.link(target, tools.compile_all(jobs), LINK, LIBRARIES)


def is_limited_api() -> bool:
    """Tell whether this interpreter can use the limited API: free-threaded ones can't."""
    return not sysconfig.get_config_var("Py_GIL_DISABLED")


def native_name() -> str:
    """Return the file name of the cffi module."""
    return "_native" + (".abi3.so" if is_limited_api() else sysconfig.get_config_var("EXT_SUFFIX"))


def _generate_native(folder: Path) -> Path:
    try:
        from cffi import FFI
    except ImportError as err:
        raise BuildError("cffi is missing: run `make build`, or pip install cffi") from err
    ffi = FFI()
    ffi.set_source("krex._native", '#include "native.h"')
    ffi.cdef((NATIVE / "cdef.h").read_text())
    target = folder / "_native.c"
    folder.mkdir(parents=True, exist_ok=True)
    # cffi leaves the file alone when nothing in it changed. It reports on stdout.
    with contextlib.redirect_stdout(None):
        ffi.emit_c_code(str(target))
    return target


def build_native(tools: Toolchain, target: Path) -> None:
    """Build the cffi module."""
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        raise BuildError(
            f"{include}/Python.h is missing: install Python's headers (Debian, Ubuntu: "
            "apt-get install python3-dev) or use another interpreter (make PYTHON=...)"
        )
    flags = [*COMPILE, *COMPAT, f"-I{SHIM}", f"-I{NATIVE}"]
    # Generated code has its own style of warnings, and Python's headers are not ours.
    jobs: list[tuple[Path, Sequence[str]]] = [
        (_generate_native(tools.folder), [*flags, "-isystem", include])
    ]
    ours = (SHIM / "closer.c", *sorted(NATIVE.glob("*.c")))
    jobs.extend((source, [*flags, *WARN]) for source in ours)
    tools.link(target, tools.compile_all(jobs), NATIVE_LINK, NATIVE_LIBRARIES)


def build_sim_device(tools: Toolchain, target: Path) -> None:
    """Build the process of the simulated devices."""
    compat = () if tools.sanitize else COMPAT
    flags = [*SIM_COMPILE, *compat, *WARN, f"-I{SHIM}"]
    jobs = [(source, flags) for source in sorted((SIM / "device").glob("*.c"))]
    tools.link(target, tools.compile_all(jobs), SIM_DEVICE_LINK, SIM_LIBRARIES)


def _named(library: Path, exports: Path) -> list[str]:
    return [f"-Wl,-soname,{library.name}", f"-Wl,--version-script={exports}"]


def build_sim_driver(tools: Toolchain, target: Path) -> None:
    """Build a simulated driver library: target's name says which."""
    face, exports = SIM_DRIVERS[target.name]
    compat = () if tools.sanitize else COMPAT
    flags = [*SIM_COMPILE, *compat, *WARN, f"-I{SHIM}"]
    sources = [path for part in ("driver", face) for path in sorted((SIM / part).glob("*.c"))]
    jobs = [(source, flags) for source in sources if source != SIM_HIP_NAME]
    # A sanitizer's runtime is the program's to bring: this library is loaded into one.
    link = [flag for flag in SIM_DRIVER_LINK if not (tools.sanitize and flag == "-Wl,-z,defs")]
    objects = tools.compile_all(jobs)
    tools.link(target, objects, [*link, *_named(target, exports)], SIM_LIBRARIES)


def build_sim_hip_name(tools: Toolchain, target: Path, driver: Path) -> None:
    """Build another name of the simulated HIP runtime: a library that only needs it."""
    _, exports = SIM_DRIVERS[driver.name]
    made = tools.compile(SIM_HIP_NAME, [*SIM_COMPILE, *WARN])
    link = ["-shared", *_named(target, exports), "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed"]
    tools.link(target, [made, driver], link, ())


def sim_products(folder: Path) -> list[Path]:
    """List what build_sim makes."""
    return [folder / name for name in ("krex-sim-device", *SIM_DRIVERS, *SIM_HIP_NAMES)]


def build_sim(tools: Toolchain, folder: Path) -> None:
    """Build the simulated devices."""
    build_sim_device(tools, folder / "krex-sim-device")
    for name in SIM_DRIVERS:
        build_sim_driver(tools, folder / name)
    for name in SIM_HIP_NAMES:
        build_sim_hip_name(tools, folder / name, folder / "libamdhip64.so")


def copy_header(target: Path) -> None:
    """Copy krex.h beside the package, where a C compiler can be pointed to."""
    source = SHIM / "krex.h"
    if target.exists() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def products(package: Path) -> list[Path]:
    """List what build_package makes."""
    library, header = package / "lib" / "libkrex.so", package / "include" / "krex.h"
    return [library, header, package / native_name(), *sim_products(package / "lib" / "sim")]


def build_package(package: Path, verbose: bool = False) -> None:
    """Build everything into a package folder: the one in the tree, or a wheel's."""
    library, header, native, *_ = products(package)
    tools = Toolchain(verbose=verbose)
    copy_header(header)
    build_library(tools, library)
    build_native(tools, native)
    build_sim(tools, package / "lib" / "sim")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Build what KREX has in C.")
    parser.add_argument("--sanitize", choices=SANITIZERS, help="no module; into build/NAME/")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--library-only", action="store_true", help="only the preload library")
    only.add_argument("--sim-only", action="store_true", help="only the simulated devices")
    parser.add_argument("--out", type=Path, help="folder for the result; leaves the module out")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the commands")
    return parser


def _build_parts(args: argparse.Namespace) -> None:
    """Build everything but the cffi module, or one part, in place or elsewhere."""
    default = BUILD / args.sanitize if args.sanitize else ROOT / "krex" / "lib"
    folder = (args.out or default).absolute()
    tools = Toolchain(args.sanitize, args.verbose)
    if not args.sim_only:
        build_library(tools, folder / "libkrex.so")
    if not args.library_only:
        build_sim(tools, folder / "sim")


def main(argv: Sequence[str] | None = None) -> int:
    """Build in place, or parts of it elsewhere."""
    args = _parser().parse_args(argv)
    try:
        if args.sanitize or args.out or args.library_only or args.sim_only:
            _build_parts(args)
        else:
            build_package(ROOT / "krex", args.verbose)
    except BuildError as err:
        print(f"build.py: {err}", file=sys.stderr)
        return 1
    return 0


def _sdist_files() -> list[str]:
    """List what a source distribution needs beyond the package (there is no MANIFEST.in)."""
    files = [p for p in SHIM.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    files += [ROOT / name for name in ("build.py", "Makefile", "CHANGELOG.md")]
    return sorted(os.path.relpath(path, ROOT) for path in files)


def _setuptools_commands() -> dict[str, Any]:
    from setuptools.command.bdist_wheel import bdist_wheel
    from setuptools.command.build_ext import build_ext

    class BuildExt(build_ext):
        """Build with the functions above instead of setuptools' compiler classes."""

        def _package(self) -> Path:
            inplace = self.inplace or self.editable_mode
            return (ROOT if inplace else Path(self.build_lib)) / "krex"

        def run(self) -> None:
            try:
                build_package(self._package().absolute(), verbose=self.verbose > 1)
            except BuildError as err:
                raise SystemExit(f"build.py: {err}") from None

        def get_outputs(self) -> list[str]:
            return [str(path) for path in products(self._package())]

        def get_output_mapping(self) -> dict[str, str]:
            return {}

        def get_source_files(self) -> list[str]:
            return _sdist_files()

    class BdistWheel(bdist_wheel):
        """One wheel for a platform and every Python from LIMITED_API on."""

        def finalize_options(self) -> None:
            if is_limited_api():
                self.py_limited_api = LIMITED_API
            super().finalize_options()

    return {"BuildExt": BuildExt, "BdistWheel": BdistWheel}


def __getattr__(name: str) -> Any:
    # setuptools takes longer to import than a build that has nothing to do, and may not be there.
    if name in ("BuildExt", "BdistWheel"):
        return _setuptools_commands()[name]
    raise AttributeError(name)


if __name__ == "__main__":
    sys.exit(main())
