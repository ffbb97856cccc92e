# SPDX-License-Identifier: Apache-2.0
"""The environment of a protected command: what is added, and what of the user's is kept."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# A sanitizer's runtime refuses to start unless it is loaded before everything else.
_SANITIZERS = ("libasan", "liblsan", "libtsan", "libubsan", "libhwasan", "libclang_rt.")


def can_preload(library: str) -> bool:
    """Whether the loader can be told of this path at all: ':' and ';' separate in every list."""
    return not any(letter in os.path.dirname(library) for letter in ":;")


def child_environment(
    base: Mapping[str, str], *, library: str | None, bridge: str, socket: str, command: str
) -> dict[str, str]:
    """The environment of command `command`; `library` is None if it must not be preloaded."""
    environment = dict(base)
    environment["KREX_SOCKET"] = socket
    environment["KREX_COMMAND"] = command
    if library is not None:
        add_preload(environment, library)
        add_sanitizer_option(environment)
    add_bridge(environment, bridge)
    return environment


def add_preload(environment: dict[str, str], library: str) -> None:
    """Put the library into LD_PRELOAD: first, but behind the sanitizers; the rest is kept."""
    entries = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    if " " in library or "\t" in library or "\n" in library:
        # A space separates in LD_PRELOAD, and nothing quotes it; it does not in LD_LIBRARY_PATH.
        _prepend_path(environment, "LD_LIBRARY_PATH", os.path.dirname(library))
        library = os.path.basename(library)
    if library in entries:
        return
    sanitizers = [entry for entry in entries if _is_sanitizer(entry)]
    others = [entry for entry in entries if not _is_sanitizer(entry)]
    environment["LD_PRELOAD"] = ":".join([*sanitizers, library, *others])


def add_sanitizer_option(environment: dict[str, str]) -> None:
    """Let a program that is linked with AddressSanitizer start although we are loaded before it.

    It takes over functions that we don't have, so the order that it insists on doesn't matter.
    """
    present = environment.get("ASAN_OPTIONS", "")
    if "verify_asan_link_order" not in present:
        option = "verify_asan_link_order=0"
        environment["ASAN_OPTIONS"] = f"{present}:{option}" if present else option


def add_bridge(environment: dict[str, str], bridge: str) -> None:
    """Append to PYTHONPATH, last: an installed krex, or anything the user has, goes before."""
    present = environment.get("PYTHONPATH", "")
    if ":" in bridge or bridge in present.split(":"):
        return
    environment["PYTHONPATH"] = f"{present}:{bridge}" if present else bridge


def add_watch(environment: dict[str, str], directory: str) -> None:
    """Have the Pythons of the command mark known functions.

    First on PYTHONPATH: an interpreter runs only the first sitecustomize that it finds; ours runs
    the next one.
    """
    if ":" not in directory:
        _prepend_path(environment, "PYTHONPATH", directory, first=True)


def add_nvtx(environment: dict[str, str], library: str) -> bool:
    """Have programs load the library as NVTX's tool. False: the user has another, which stays."""
    name = "NVTX_INJECTION64_PATH"
    return environment.setdefault(name, library) == library


def add_simulator(environment: dict[str, str], directory: str, socket: str, number: str) -> None:
    """Have programs load the simulated drivers, and find simulated device `number` at `socket`."""
    _prepend_path(environment, "LD_LIBRARY_PATH", directory, first=True)
    environment["KREX_SIM_SOCKET"] = socket
    environment["CUDA_VISIBLE_DEVICES"] = environment["HIP_VISIBLE_DEVICES"] = number
    # HIP's numbers count what this one leaves.
    environment.pop("ROCR_VISIBLE_DEVICES", None)


def _prepend_path(
    environment: dict[str, str], name: str, directory: str, *, first: bool = False
) -> None:
    """Put a directory before the others, unless it is among them, or (`first`) before them."""
    present = environment.get(name, "")
    there = present.split(":")
    if directory not in (there[:1] if first else there):
        # No trailing colon: an empty entry would mean the current directory.
        environment[name] = f"{directory}:{present}" if present else directory


def _is_sanitizer(entry: str) -> bool:
    return os.path.basename(entry).startswith(_SANITIZERS)
