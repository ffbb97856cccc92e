# SPDX-License-Identifier: Apache-2.0
"""Places that lack something: other users, other mounts, refused system calls."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from krex.protect.freezer import find_base

NOBODY = 65534
NEW = {"pidfd_open": 434, "clone3": 435}  # the same everywhere
NUMBERS = {
    "x86_64": {"madvise": 28, "memfd_create": 319, "membarrier": 324} | NEW,
    "aarch64": {"madvise": 233, "memfd_create": 279, "membarrier": 283} | NEW,
}.get(os.uname().machine, {})

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
needs_freezer = pytest.mark.skipif(find_base() is None, reason="no writable cgroup v2 directory")
needs_filter = pytest.mark.skipif(not NUMBERS, reason="no system call numbers for this machine")
needs_setpriv = pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")

# Runs a command in which some system calls fail: NUMBER ARGUMENT_INDEX ARGUMENT ACTION ... -- CMD.
FILTER = """
import ctypes, os, struct, sys
words, command = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
def step(code, yes, no, k):
    return struct.pack("=HBBI", code, yes, no, k)
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06
program = b""
for at in range(0, len(words), 4):
    number, index, argument, action = map(int, words[at:at + 4])
    program += step(LOAD, 0, 0, 0) + step(EQUALS, 0, 3 if index >= 0 else 1, number)
    if index >= 0:
        program += step(LOAD, 0, 0, 16 + 8 * index) + step(EQUALS, 0, 1, argument)
    program += step(RETURN, 0, 0, action)
program += step(RETURN, 0, 0, 0x7FFF0000)
buffer = ctypes.create_string_buffer(program, len(program))
header = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, header) == 0
os.execvp(command[0], command)
"""
KILL = 0x80000000


def as_user(uid: int) -> list[str]:
    """The words before a command that another user runs.

    It may read everything, as the interpreter may lie in a private folder, and write nothing.
    """
    ids = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return ["setpriv", *ids, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


AS_NOBODY = as_user(NOBODY)


def refusing(call: str, number: int, argument: tuple[int, int] = (-1, 0)) -> list[str]:
    """The words before a command in which this call fails with that errno (KILL: with a signal)."""
    action = number if number == KILL else 0x00050000 | number
    rule = [NUMBERS.get(call, 0), *argument, action]
    return [sys.executable, "-c", FILTER, *map(str, rule), "--"]


def unshared(script: str) -> list[str]:
    """The words before a command that sees other mounts than we do."""
    return ["unshare", "--mount", "sh", "-ec", f'{script}\nexec "$@"', "sh"]
