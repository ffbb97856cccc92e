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


def in_c(name: str) -> "Automatic":
    """The same for `with` statements only, entered and left without a line of Python, as locks are.

    So what the handler of a signal raises (a harness's time limit) comes before all of it, or
    after, and no mark stays armed: from CPython 3.10 on, which looks at signals after calls only.
    """
    functions = shim.arming(name)
    if functions is None:
        return Automatic(name)
    enter, leave = functions
    methods = {"__slots__": (), "__enter__": staticmethod(enter), "__exit__": staticmethod(leave)}
    kind = type("InC", (Automatic,), methods)
    return kind(name)  # type: ignore[no-any-return]
