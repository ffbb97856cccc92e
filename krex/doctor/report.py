# SPDX-License-Identifier: Apache-2.0
"""The object of `krex doctor --json` and its versioned schema, and the lines for people.

Every key is always there; null means that there is none. Within one schema version keys and checks
are only added, so a reader ignores those that it does not know.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

SCHEMA: Final = "krex.doctor"
SCHEMA_VERSION: Final = 1


class Check(Struct, kw_only=True):
    """One thing that was probed."""

    id: Annotated[str, Meta(description="Which thing; docs/doctor.md lists them.")]
    status: Annotated[
        Literal["ok", "warning", "failed"],
        Meta(
            description="`failed`: it is needed here and does not work. `warning`: KREX runs, and "
            "`detail` says what it then cannot do."
        ),
    ]
    needed: Annotated[
        bool, Meta(description="Whether KREX could do nothing for commands here without it.")
    ]
    detail: Annotated[str, Meta(description="What was measured, in words.")]
    fix: Annotated[str | None, Meta(description="What to do next. Null: the status is `ok`.")]


class Device(Struct, kw_only=True):
    """A device that a driver answered for."""

    key: Annotated[str, Meta(description="Its key, as in a region record.")]
    name: Annotated[str, Meta(description="As its driver calls it.")]
    platform: Annotated[str, Meta(description="The OpenCL platform that has it.")]
    loader: Annotated[
        str, Meta(description="`system`, or the Python package whose OpenCL loader found it.")
    ]


class DoctorReport(Struct, kw_only=True):
    """What KREX needs, and what of it works here."""

    schema: Annotated[Literal["krex.doctor"], Meta(description="What kind of object this is.")]
    schema_version: Annotated[
        Literal[1], Meta(description="Raised when a key goes, or changes its meaning.")
    ]
    ok: Annotated[bool, Meta(description="Whether no check failed; so is the exit status.")]
    checks: Annotated[list[Check], Meta(description="In a fixed order.")]
    devices: Annotated[list[Device], Meta(description="Each device as often as it was found.")]


def passed(id: str, detail: str, *, needed: bool = True) -> Check:  # noqa: A002
    """It works."""
    return Check(id=id, status="ok", needed=needed, detail=detail, fix=None)


def failed(id: str, detail: str, fix: str) -> Check:  # noqa: A002
    """It is needed, and does not work."""
    return Check(id=id, status="failed", needed=True, detail=detail, fix=fix)


def warned(id: str, detail: str, fix: str, *, needed: bool = False) -> Check:  # noqa: A002
    """KREX runs, but less well; the detail says how."""
    return Check(id=id, status="warning", needed=needed, detail=detail, fix=fix)


def render(report: DoctorReport) -> list[str]:
    """The lines for people; the last one names the next command."""
    width = max(len(check.id) for check in report.checks)
    lines = []
    for check in report.checks:
        lines.append(f"{check.status:7}  {check.id:{width}}  {check.detail}")
        if check.fix:
            lines.append(f"{'':7}  fix: {check.fix}")
    return [*lines, "", _verdict(report)]


def _verdict(report: DoctorReport) -> str:
    failures = sum(check.status == "failed" for check in report.checks)
    warnings = sum(check.status == "warning" for check in report.checks)
    if failures:
        things = "one needed thing is" if failures == 1 else f"{failures} needed things are"
        return f"{things} missing; apply each fix above, then run: krex doctor"
    if warnings:
        return "KREX works here, within the warnings above; next: krex run -- python bench.py"
    return "KREX works here; next: krex run -- python bench.py"
