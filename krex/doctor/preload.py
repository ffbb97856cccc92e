# SPDX-License-Identifier: Apache-2.0
"""Whether a program can be started with the preload library in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from krex import paths
from krex.doctor import syscalls
from krex.doctor.report import Check, failed, passed
from krex.errors import NotBuiltError
from krex.launch.environment import add_preload, can_preload

# Prints the file that holds krex_region_begin, told by its address. (No hook would do for this: a
# lookup of one succeeds only where the vendor's own library is loaded too.)
_PROGRAM = """
import ctypes
function = ctypes.CDLL(None).krex_region_begin
address = ctypes.cast(function, ctypes.c_void_p).value
for line in open("/proc/self/maps"):
    fields = line.rstrip("\\n").split(None, 5)
    low, high = (int(end, 16) for end in fields[0].split("-"))
    if low <= address < high:
        print(fields[5])
"""
_FIXES = (
    ("failed to map", "install krex on a file system that is not mounted noexec"),
    ("cannot open shared object", "check that it is there and readable: ls -l {library}"),
    ("", "build it for this machine: python build.py, or install krex-gpu again"),
)


def check(library: str | None = None) -> Check:
    """Start a Python with LD_PRELOAD; krex's functions must be found in it, in that very file."""
    try:
        library = library or paths.library_path()
    except NotBuiltError as error:
        return failed("preload", error.message, error.hint)
    if not can_preload(library):
        return failed("preload", f"LD_PRELOAD cannot name {library}: ':' separates in it",
                      "install krex in a folder without ':' and ';' in its path")  # fmt: skip
    answer = _start(library)
    home = answer.stdout.strip().removesuffix(" (deleted)")  # rebuilt just now
    if home == os.path.realpath(library):
        return passed("preload", f"a child has {library} loaded, and finds its functions")
    said = _complaint(answer, library)
    fix = next(text for part, text in _FIXES if part in said)
    return failed("preload", said, fix.format(library=library))


def _start(library: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    add_preload(environment, library)
    parent = os.getpid()
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: syscalls.die_with(parent),
    )


def _complaint(answer: subprocess.CompletedProcess[str], library: str) -> str:
    """What the dynamic loader said, else what we saw."""
    lines = [line for line in answer.stderr.splitlines() if line.strip()]
    said = next((line for line in lines if "ld.so" in line or "libkrex" in line), None)
    if said:
        return said
    if "AttributeError" in answer.stderr:
        return f"LD_PRELOAD has no effect on {sys.executable}: krex's functions are not in it"
    child = f"a child that preloads {library}"
    if answer.returncode < 0:
        return f"{child} is killed by {signal.Signals(-answer.returncode).name}"
    if answer.returncode:
        return f"{child} ends with status {answer.returncode}: {''.join(lines[-1:])}"
    return f"{child} finds krex's functions in {answer.stdout.strip() or 'no file'}"
