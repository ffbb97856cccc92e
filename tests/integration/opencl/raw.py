# SPDX-License-Identifier: Apache-2.0
"""The C functions that pyopencl has no name for."""

import ctypes
from pathlib import Path
from typing import Any

import pyopencl as cl


def handle(thing: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(thing.int_ptr)


class Raw:
    """C functions by name, found where a program that is linked to a loader would find them."""

    def __init__(self) -> None:
        mapped = Path("/proc/self/maps").read_text().split()
        loader = next(word for word in mapped if Path(word).name.startswith("libOpenCL"))
        self.libraries = [ctypes.CDLL(None), ctypes.CDLL(loader)]

    def __getitem__(self, name: str) -> Any:
        return getattr(next(lib for lib in self.libraries if hasattr(lib, name)), name)

    def call(self, name: str, *arguments: object) -> None:
        function = self[name]
        function.restype = ctypes.c_int32
        assert function(*arguments) == 0, name

    def extension(self, name: str) -> bool:
        """Ask for an extension that only the stub driver may have; whether there is one."""
        stub = next(platform for platform in cl.get_platforms() if platform.name == "stub")
        ask = self["clGetExtensionFunctionAddressForPlatform"]
        ask.restype = ctypes.c_void_p
        return bool(ask(handle(stub), name.encode()))

    def extension_of_any(self, name: str) -> bool:
        """The older way to ask: the loader picks the driver by the name's suffix."""
        ask = self["clGetExtensionFunctionAddress"]
        ask.restype = ctypes.c_void_p
        return bool(ask(name.encode()))
