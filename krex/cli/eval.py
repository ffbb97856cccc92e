# SPDX-License-Identifier: Apache-2.0
"""`krex eval`: measurements of KREX itself, on this machine."""

from __future__ import annotations

import json
import signal
from typing import Any

import click
import msgspec

from krex.cli.group import CONTEXT
from krex.errors import EXIT_FAILED
from krex.eval.statistics import Spread

# Of what is measured: a control that is off by more says nothing about the rest.
TOO_NOISY = 0.5


@click.group("eval", context_settings=CONTEXT)
def command() -> None:
    """Measure what KREX costs, on this machine."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _: object) -> None:
    """As Ctrl-C does: what was started and made for the measurement goes too."""
    raise SystemExit(128 + number)


def _options(function: Any) -> Any:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object."),
        click.option(
            "--limit",
            type=click.FloatRange(min=0),
            help="Exit with status 1 if more than this is added, in the unit shown.",
        ),
    ):
        function = option(function)
    return function


@command.command("overhead", context_settings=CONTEXT)
@click.option("--rounds", type=click.IntRange(min=2), default=51, show_default=True,
              help="How often to measure; medians are shown.")  # fmt: skip
@click.option("--device", type=click.Choice(["cpu", "sim", "sim-hip"]), default="cpu",
              show_default=True, help="A launch of OpenCL, of CUDA, or of HIP.")  # fmt: skip
@_options
def overhead(rounds: int, device: str, as_json: bool, limit: float | None) -> None:
    """What the gate adds to a submission, in nanoseconds.

    The hook of a launch is called with a stand-in for the driver that does nothing, and so is the
    stand-in itself: while the gate is open, as the holder of a closed gate, and as a process that
    cannot use membarrier. 'again' is the control: the same call measured twice. With --device sim
    and sim-hip also what KREX adds when a program looks a function of the driver up by its name.
    """
    from krex.eval.overhead import measure

    result = measure(rounds, device=device)
    lines = {
        "a call without KREX": "direct",
        "again": "control",
        "added, gate open": "added",
        "added, in a region": "added_in_region",
        "added, full fence": "added_full_fence",
    }
    if "lookup" in result.quartiles_ns:
        lines |= {
            "a lookup without KREX": "lookup",
            "added, of a hook": "added_to_lookup",
            "added, of another": "added_to_other_lookup",
        }
    _show(result, result.quartiles_ns, lines, "ns", as_json)
    _judge(
        max(result.added_ns, result.added_in_region_ns),
        result.quartiles_ns["control"],
        limit,
        "ns",
    )


@command.command("startup", context_settings=CONTEXT)
@click.option("--rounds", type=click.IntRange(min=2), default=25, show_default=True,
              help="How often to measure; medians are shown.")  # fmt: skip
@_options
def startup(rounds: int, as_json: bool, limit: float | None) -> None:
    """What `krex run` adds to the start and end of a command, in milliseconds."""
    from krex.eval.startup import measure

    result = measure(rounds)
    lines = {"true": "direct", "again": "control", "added by krex run": "added"}
    _show(result, result.quartiles_ms, lines, "ms", as_json)
    _judge(result.added_ms, result.quartiles_ms["control"], limit, "ms")


@command.command("handshake", context_settings=CONTEXT)
@click.option("--siblings", "counts", multiple=True, type=click.IntRange(min=0),
              help="How many siblings; may be repeated. Default: 0, 1, 8 and 16.")  # fmt: skip
@click.option("--regions", type=click.IntRange(min=2), default=200, show_default=True)
@click.option(
    "--dirty/--clean", default=True, help="Also beside siblings that submit all the time."
)
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON list.")
def handshake(counts: tuple[int, ...], regions: int, dirty: bool, as_json: bool) -> None:
    """How long a region waits for its grant, and its siblings for its end, in milliseconds.

    Each sibling is a command with one busy process, frozen for each region. Dirty ones, which
    submit short kernels all the time, need an OpenCL runtime.
    """
    from krex.eval.handshake import SIBLINGS, measure

    results = []
    if not as_json:
        click.echo(
            "siblings  exclusive      grant p50 / p99    release p50 / p99    dirty grant p50"
        )
    for result in measure(counts or SIBLINGS, regions, dirty=dirty):
        results.append(result)
        if not as_json:
            click.echo(_handshake_line(result))
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(results), indent=2))


def _handshake_line(r: Any) -> str:
    grant = f"{r.grant_s_p50 * 1e3:6.2f} / {r.grant_s_p99 * 1e3:6.2f} ms"
    release = f"{r.release_s_p50 * 1e3:6.2f} / {r.release_s_p99 * 1e3:6.2f} ms"
    dirty = f"{r.dirty_grant_s_p50 * 1e3:8.2f} ms" if r.dirty_grant_s_p50 else ""
    return f"{r.siblings:8}  {r.exclusive:4}/{r.regions:<4}   {grant}   {release}   {dirty}"


@command.command("mix", context_settings=CONTEXT)
@click.option("--commands", type=click.IntRange(min=2), default=16, show_default=True)
@click.option("--regions", type=click.IntRange(min=2), default=25, show_default=True,
              help="Of each command.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the documented JSON object.")
def mix(commands: int, regions: int, as_json: bool) -> None:
    """Many typical commands at once: are their regions exclusive, and is that true?

    The commands import, compile, check and time kernels on an OpenCL CPU device: together under
    KREX, and twice one by one without it. Takes minutes. The exit status is 1 if a sibling's kernel
    ran inside a region that was called exclusive.
    """
    from krex.eval.mix import measure

    result = measure(commands, regions)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(result), indent=2))
    else:
        click.echo("\n".join(_mix_lines(result)))
    click.get_current_context().exit(EXIT_FAILED if result.falsely_exclusive else 0)


def _mix_lines(r: Any) -> list[str]:
    share = f"{r.exclusive} exclusive ({r.exclusive / r.regions:.1%})"
    why = "".join(f", {count} {reason}" for reason, count in r.reasons.items())
    return [
        f"{r.commands} commands, {r.regions} regions: {share}{why}",
        f"exclusive, but a sibling's kernel ran inside: {r.falsely_exclusive}",
        "duration against alone      least  median    95 %    most",
        "  alone, again            " + "".join(f"{x:7.2f}x" for x in r.solo_ratio),
        "  together, under KREX    " + "".join(f"{x:7.2f}x" for x in r.krex_ratio),
        f"within the range of the control: {r.inside_solo_range:.1%}",
        f"{r.together_s:.0f} s together, {r.one_by_one_s:.0f} s one by one",
    ]


def _show(
    result: Any, quartiles: dict[str, Spread], lines: dict[str, str], unit: str, as_json: bool
) -> None:
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(result), indent=2))
        return
    width = max(map(len, lines))
    click.echo(f"{'':{width}}  {'median':>9}    middle half of {result.rounds} rounds")
    for text, name in lines.items():
        q = quartiles[name]
        click.echo(f"{text:{width}}  {q.median:6.2f} {unit}    {q.q1:.2f} to {q.q3:.2f} {unit}")


def _judge(added: float, control: Spread, limit: float | None, unit: str) -> None:
    """Say if the figures mean little, and exit with 1 if the limit is not kept."""
    spread = max(abs(control.q1), abs(control.q3))
    if spread > TOO_NOISY * max(added, limit or 0.0):
        click.echo(
            f"krex: two measurements of the same differ by {spread:.2f} {unit}: this machine is "
            "too busy with other things for these figures to mean much",
            err=True,
        )
    if limit is not None and added > limit:
        click.echo(f"krex: {added:.2f} {unit} added, more than {limit:g} {unit}", err=True)
        click.get_current_context().exit(EXIT_FAILED)
