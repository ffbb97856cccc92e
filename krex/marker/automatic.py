# SPDX-License-Identifier: Apache-2.0
"""A mark that nobody wrote into the program: it arms, and the region begins when timing does."""

from . import shim


class Automatic:
    """A context manager for one known function. It has no state, so calls may overlap and nest."""

    __slots__ = ("name",)
    marks_functions = True  # see trampoline.is_marked

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "Automatic":  # noqa: PYI034
        shim.arm(self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        shim.disarm()
