# SPDX-License-Identifier: Apache-2.0
"""The one place that imports the compiled module: the board's accessors and the wire's structs."""

from krex._native import ffi, lib  # type: ignore[import-not-found,unused-ignore]

__all__ = ["ffi", "lib"]
