# SPDX-License-Identifier: Apache-2.0
"""The program to run: where it is, and whether a preload library can live in it."""

from __future__ import annotations

import errno
import os
import stat
import struct

from krex.errors import CommandNotExecutableError, CommandNotFoundError, KrexError

_ELF_MAGIC = b"\x7fELF"
_ELF_CLASS_64 = 2
_ELF_HEADER = 64
_PT_INTERP = 3
_PROGRAM_HEADER_64 = struct.Struct("=IIQQQQQQ")


def find_program(name: str) -> str:
    """The path that exec would run, by its rules; raises the errors for status 126 and 127."""
    if "/" in name:
        candidates = [name]
    else:
        candidates = [os.path.join(directory, name) for directory in os.get_exec_path()]
    present = None
    for path in candidates:
        if not os.path.exists(path):
            continue
        if os.path.isfile(path) and os.access(path, os.X_OK, effective_ids=True):
            return path
        present = present or path
    if present and "/" in name:
        raise _not_executable(present)
    if present and os.path.isfile(present):
        raise _not_executable(present)
    raise _not_found(name)


def exec_error(name: str, number: int) -> KrexError:
    """What a failed exec means to the user (`number` is its errno)."""
    if number == errno.ENOENT:
        # The file was there a moment ago: it is the interpreter it names that is missing.
        return CommandNotFoundError(
            f"cannot run {name}: it, or the interpreter it asks for, does not exist",
            "check its first line, or the loader that `file` shows",
        )
    return CommandNotExecutableError(
        f"cannot run {name}: {os.strerror(number)}", "check what kind of file it is with `file`"
    )


def _not_executable(path: str) -> KrexError:
    if os.path.isdir(path):
        return CommandNotExecutableError(f"{path} is a directory", "name a program inside it")
    return CommandNotExecutableError(
        f"{path} is not executable", f"chmod +x it, or name its interpreter: krex run -- sh {path}"
    )


def _not_found(name: str) -> KrexError:
    if "/" in name:
        return CommandNotFoundError(f"{name} does not exist", "check the path")
    return CommandNotFoundError(
        f"{name} is not in PATH", "check the spelling, or give the path of the program"
    )


class Obstacle:
    """Why the preload library does nothing in a program; `harmful` if it would even break it."""

    __slots__ = ("harmful", "why")

    def __init__(self, why: str, *, harmful: bool = False) -> None:
        self.why = why
        self.harmful = harmful


def obstacle(path: str) -> Obstacle | None:
    """What keeps the preload library out of this program, if anything; never raises.

    A script is fine: its interpreter is what counts, and that is dynamic practically everywhere.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            if _changes_identity(os.fstat(file.fileno())):
                return Obstacle("it is setuid or setgid, and such programs ignore LD_PRELOAD")
            header = file.read(_ELF_HEADER)
            if len(header) < _ELF_HEADER or not header.startswith(_ELF_MAGIC):
                return None
            if header[4] != _ELF_CLASS_64:
                return Obstacle("it is a 32-bit program", harmful=True)
            loader = _loader(file.fileno(), header)
    except OSError:
        return None  # not readable, but maybe executable: exec will tell
    if loader is None:
        is_loader = os.path.basename(os.path.realpath(path)).startswith("ld-")
        return None if is_loader else Obstacle("it is statically linked")
    if os.path.basename(loader).startswith(b"ld-musl"):
        return Obstacle("it is built for another C library (musl)", harmful=True)
    return None


def _changes_identity(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_ISUID and found.st_uid != os.geteuid():
        return True
    setgid = found.st_mode & stat.S_ISGID and found.st_mode & stat.S_IXGRP
    return bool(setgid) and found.st_gid != os.getegid()


def _loader(fd: int, header: bytes) -> bytes | None:
    """The dynamic loader that a 64-bit ELF file asks for (its PT_INTERP), None for a static one."""
    (table,) = struct.unpack_from("=Q", header, 32)
    size, count = struct.unpack_from("=HH", header, 54)
    for index in range(count):
        entry = os.pread(fd, _PROGRAM_HEADER_64.size, table + index * size)
        if len(entry) < _PROGRAM_HEADER_64.size:
            break
        kind, _, offset, _, _, length, _, _ = _PROGRAM_HEADER_64.unpack(entry)
        if kind == _PT_INTERP:
            return os.pread(fd, min(length, 4096), offset).rstrip(b"\0")
    return None
