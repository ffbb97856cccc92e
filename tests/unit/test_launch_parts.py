# SPDX-License-Identifier: Apache-2.0
"""The parts of `krex run` that need no process: options, environment, program, report, paths."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from krex import paths
from krex.cli.run import command as run_command
from krex.errors import (
    CommandNotExecutableError,
    CommandNotFoundError,
    ControllerError,
    LaunchError,
    NotBuiltError,
)
from krex.launch import simulated
from krex.launch.environment import (
    add_bridge,
    add_preload,
    add_simulator,
    can_preload,
    child_environment,
)
from krex.launch.guard import Guard
from krex.launch.options import RunOptions, parse_fast, size
from krex.launch.program import exec_error, find_program, obstacle
from krex.launch.report import CONTROLLER_LOST, Regions, Report
from krex.launch.session import _displayable

LIBRARY = "/opt/krex/lib/libkrex.so"

# ---------------------------------------------------------------- options


def by_click(words: list[str]) -> dict[str, Any]:
    return as_dict(RunOptions(**run_command.make_context("run", list(words)).params))


def as_dict(options: RunOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in RunOptions.__slots__}


@pytest.mark.parametrize(
    "line",
    [
        "true",
        "-- true",
        "-- -x",
        "true --device cpu:0 -q --",
        "--device cpu:0 -- true",
        "--device=cpu:0 --tenant= true -v",
        "--exclusive command --require --report /tmp/a -- a b c",
        "--max-wait 0 --max-hold=2.5 true",
        "-vvq true",
        "-v --verbose -v true",
        "--report -- -- true",
        "--device cpu:0,cpu:1 --device=cpu:2 true",
        "--sim true",
        "--sim-gpus 8 --sim-model m --sim-log=l --protect pin true",
        "--mem 1.5GiB --protect=gate true",
        "- x",
    ],
)
def test_the_fast_parser_agrees_with_click(line: str) -> None:
    options = parse_fast(line.split())
    assert options is not None
    assert as_dict(options) == by_click(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--",
        "--help",
        "-h",
        "-x true",
        "--devise cpu:0 true",
        "--dev cpu:0 true",
        "--exclusive everything true",
        "--max-wait soon true",
        "--max-wait nan true",
        "--max-hold -1 true",
        "--max-wait inf true",
        "--require=yes true",
        "--protect everything true",
        "--sim-gpus 0 true",
        "--sim-gpus many true",
        "--sim=1 true",
        "--mem 8 true",
        "--mem 8GB true",
        "--mem 8G true",
        "--report= true",
        "--mem GiB true",
        "--mem -1GiB true",
        "--mem nanGiB true",
        "--mem 0.5GB true",
        "--device",
        "-q",
    ],
)
def test_whatever_is_odd_is_left_to_click(line: str) -> None:
    assert parse_fast(line.split()) is None
    with pytest.raises((click.UsageError, click.exceptions.Exit)):
        by_click(line.split())


@pytest.mark.parametrize(
    ("word", "meant"), [("8G", "8GiB"), ("8gb", "8GiB"), ("1.5 tib", "1.5TiB"), ("512m", "512MiB")]
)
def test_a_size_without_its_unit_is_refused_with_what_was_meant(word: str, meant: str) -> None:
    with pytest.raises(click.BadParameter, match=f"; did you mean {meant}"):
        by_click(["--mem", word, "true"])


@pytest.mark.parametrize("word", ["8", "GiB", "many"])
def test_what_cannot_be_guessed_is_not(word: str) -> None:
    with pytest.raises(click.BadParameter) as found:
        by_click(["--mem", word, "true"])
    assert "did you mean" not in str(found.value)


def test_devices_are_listed_in_one_word_or_in_several() -> None:
    options = parse_fast(["--device", "sim:1,sim:2", "--device", "sim:3", "true"])
    assert options is not None and options.devices == ["sim:1", "sim:2", "sim:3"]


@pytest.mark.parametrize("word", ["--sim", "--sim-gpus=2", "--sim-model=m", "--sim-log=l"])
def test_whatever_is_said_of_simulated_devices_asks_for_them(word: str) -> None:
    options = parse_fast([word, "true"])
    assert options is not None and options.sim


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("1KiB", 1 << 10), ("512MiB", 1 << 29), ("1.5GiB", 3 << 29), ("2TiB", 1 << 41)],
)
def test_a_size_has_a_unit(word: str, wanted: int) -> None:
    assert size(word) == wanted


# ---------------------------------------------------------------- environment


@pytest.mark.parametrize(
    ("present", "wanted"),
    [(None, "/sim"), ("/a:/b", "/sim:/a:/b"), ("/a:/sim", "/sim:/a:/sim"), ("/sim:/a", "/sim:/a")],
)
def test_the_simulated_driver_is_found_before_any_other(present: str | None, wanted: str) -> None:
    environment = {} if present is None else {"LD_LIBRARY_PATH": present}
    add_simulator(environment, "/sim", "/run/sim.sock", "3")
    assert environment["LD_LIBRARY_PATH"] == wanted
    assert environment["KREX_SIM_SOCKET"] == "/run/sim.sock"
    assert environment["CUDA_VISIBLE_DEVICES"] == environment["HIP_VISIBLE_DEVICES"] == "3"


def test_a_simulated_device_is_not_hidden_by_rocms_own_variable() -> None:
    environment = {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}
    add_simulator(environment, "/sim", "/run/sim.sock", "3")
    assert environment["HIP_VISIBLE_DEVICES"] == "3"
    assert "ROCR_VISIBLE_DEVICES" not in environment


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, []),
        ({"CUDA_VISIBLE_DEVICES": "1"}, ["CUDA"]),
        ({"CUDA_VISIBLE_DEVICES": ""}, ["CUDA"]),
        ({"HIP_VISIBLE_DEVICES": "2"}, ["HIP"]),
        ({"HIP_VISIBLE_DEVICES": ""}, []),
        ({"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "2"}, ["CUDA"]),
        ({"HIP_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "2"}, ["ROCR", "HIP"]),
        ({"ROCR_VISIBLE_DEVICES": ""}, ["ROCR"]),
    ],
)
def test_either_vendors_variable_says_which_simulated_devices_may_be_taken(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: list[str]
) -> None:
    for vendor in ("CUDA", "HIP", "ROCR"):
        monkeypatch.delenv(f"{vendor}_VISIBLE_DEVICES", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = simulated.visible()
    assert list(found) == [f"{vendor}_VISIBLE_DEVICES" for vendor in wanted]
    assert found.items() <= variables.items()


def preload(present: str | None, library: str = LIBRARY) -> dict[str, str]:
    environment = {} if present is None else {"LD_PRELOAD": present}
    add_preload(environment, library)
    return environment


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (None, LIBRARY),
        ("", LIBRARY),
        ("/a/b.so", f"{LIBRARY}:/a/b.so"),
        ("/a/b.so /c/d.so", f"{LIBRARY}:/a/b.so:/c/d.so"),
        ("/usr/lib/libasan.so.8:/a/b.so", f"/usr/lib/libasan.so.8:{LIBRARY}:/a/b.so"),
        ("/a/b.so:libtsan.so", f"libtsan.so:{LIBRARY}:/a/b.so"),
        (f"/a/b.so:{LIBRARY}", f"/a/b.so:{LIBRARY}"),
    ],
)
def test_preload_goes_first_but_behind_sanitizers(present: str | None, wanted: str) -> None:
    assert preload(present)["LD_PRELOAD"] == wanted


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (None, "verify_asan_link_order=0"),
        ("detect_leaks=0", "detect_leaks=0:verify_asan_link_order=0"),
        ("verify_asan_link_order=1", "verify_asan_link_order=1"),
    ],
)
def test_address_sanitizer_lets_us_go_first(present: str | None, wanted: str) -> None:
    base = {} if present is None else {"ASAN_OPTIONS": present}
    made = child_environment(base, library=LIBRARY, bridge="/b", socket="/s", command="c")
    assert made["ASAN_OPTIONS"] == wanted


def test_a_path_with_spaces_goes_through_the_library_path() -> None:
    environment = {"LD_LIBRARY_PATH": "/x"}
    for _ in range(2):  # the second time is a nested krex run
        add_preload(environment, "/my own/lib/libkrex.so")
    assert environment == {"LD_PRELOAD": "libkrex.so", "LD_LIBRARY_PATH": "/my own/lib:/x"}
    assert preload(None, "/my own/libkrex.so")["LD_LIBRARY_PATH"] == "/my own"


def test_a_colon_in_the_path_cannot_be_expressed() -> None:
    assert can_preload("/a b/libkrex.so")
    assert not can_preload("/a:b/libkrex.so")


@pytest.mark.parametrize(
    ("present", "wanted"), [(None, "/b"), ("", "/b"), ("/a:", "/a::/b"), ("/b:/a", "/b:/a")]
)
def test_the_bridge_is_the_last_of_pythonpath(present: str | None, wanted: str) -> None:
    environment = {} if present is None else {"PYTHONPATH": present}
    add_bridge(environment, "/b")
    assert environment["PYTHONPATH"] == wanted


def test_the_child_environment_leaves_the_base_alone() -> None:
    base = {"HOME": "/root"}
    child = child_environment(base, library=None, bridge="/b", socket="/s", command="c1")
    assert base == {"HOME": "/root"}
    assert child == {
        "HOME": "/root", "KREX_SOCKET": "/s", "KREX_COMMAND": "c1", "PYTHONPATH": "/b",
    }  # fmt: skip


# ---------------------------------------------------------------- program


def test_programs_are_found_as_exec_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for directory, mode in ((first, 0o644), (second, 0o755)):
        directory.mkdir()
        (directory / "tool").write_text("#!/bin/sh\n")
        (directory / "tool").chmod(mode)
    (first / "folder").mkdir()
    (first / "data").write_text("")
    monkeypatch.setenv("PATH", f"{first}:{second}")
    assert find_program("tool") == str(second / "tool")
    assert find_program(str(second / "tool")) == str(second / "tool")
    with pytest.raises(CommandNotFoundError, match="not in PATH"):
        find_program("no-such-tool")
    with pytest.raises(CommandNotFoundError, match="not in PATH"):
        find_program("folder")
    with pytest.raises(CommandNotFoundError, match="does not exist"):
        find_program("./no-such-tool")
    with pytest.raises(CommandNotExecutableError, match="chmod"):
        find_program("data")
    with pytest.raises(CommandNotExecutableError, match="is a directory"):
        find_program(str(first))


def test_exec_errors_keep_126_and_127_apart() -> None:
    assert exec_error("x", errno.ENOENT).exit_code == 127
    assert exec_error("x", errno.EACCES).exit_code == 126


def test_what_a_preload_cannot_enter_is_recognised(tmp_path: Path) -> None:
    source = tmp_path / "s.c"
    source.write_text("void _start(void) { for (;;); }\n")
    static = tmp_path / "static"
    subprocess.run(["cc", "-static", "-nostdlib", "-o", static, source], check=True)
    found = obstacle(str(static))
    assert found is not None and "static" in found.why and not found.harmful
    elf = bytearray(Path(os.path.realpath("/bin/sh")).read_bytes())
    elf[4] = 1
    (tmp_path / "narrow").write_bytes(elf)
    found = obstacle(str(tmp_path / "narrow"))
    assert found is not None and "32-bit" in found.why and found.harmful
    (tmp_path / "script").write_text("#!/bin/sh\n")
    for fine in ("/bin/sh", sys.executable, str(tmp_path / "script"), str(tmp_path / "none")):
        assert obstacle(fine) is None


def test_musl_programs_are_not_preloaded(tmp_path: Path) -> None:
    source = tmp_path / "m.c"
    source.write_text("void _start(void) { for (;;); }\n")
    program = tmp_path / "m"
    flags = ["-nostdlib", "-pie", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]
    subprocess.run(["cc", *flags, "-o", program, source], check=True)
    found = obstacle(str(program))
    assert found is not None and found.harmful


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_setuid_programs_ignore_preloads(tmp_path: Path) -> None:
    program = tmp_path / "su"
    program.write_bytes(Path(os.path.realpath("/bin/sh")).read_bytes())
    os.chown(program, 65534, 65534)
    program.chmod(0o755 | stat.S_ISUID)
    found = obstacle(str(program))
    assert found is not None and "setuid" in found.why


# ---------------------------------------------------------------- report


def test_records_are_appended_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("{}\n")
    Report(str(path)).write({"hold_s": 0.1 + 0.2, "name": "größe"})
    lines = path.read_text().splitlines()
    assert json.loads(lines[1]) == {"hold_s": 0.1 + 0.2, "name": "größe"}


def test_an_unwritable_report_is_refused() -> None:
    with pytest.raises(LaunchError, match="report") as caught:
        Report("/no/such/place")
    assert caught.value.exit_code == 125


def test_open_regions_end_as_not_exclusive() -> None:
    regions = Regions()
    regions.begin({"region_id": "a", "wait_s": 1.5})
    regions.begin({"region_id": "b", "reasons": ["breach"]})
    regions.begin({"region_id": "c"})
    regions.end({"region_id": "c", "exclusive": True, "reasons": []})
    lost = regions.abandon(CONTROLLER_LOST)
    assert lost == [
        {"region_id": "a", "wait_s": 1.5, "exclusive": False, "reasons": [CONTROLLER_LOST]},
        {"region_id": "b", "exclusive": False, "reasons": ["breach", CONTROLLER_LOST]},
    ]
    for record in lost:
        regions.end(record)
    assert (regions.ended, regions.not_exclusive) == (3, 2)
    assert regions.commonest_reason() == CONTROLLER_LOST
    assert regions.abandon(CONTROLLER_LOST) == []


def test_only_a_clear_true_counts_as_exclusive() -> None:
    regions = Regions()
    regions.end({"region_id": "a"})
    regions.end({"region_id": "b", "exclusive": 1})
    assert regions.not_exclusive == 2


# ---------------------------------------------------------------- guard


class FakeLease:
    def __init__(self) -> None:
        self.left = 1

    def remaining_ns(self) -> int:
        return self.left


def test_an_expired_lease_thaws_once_each_time(tmp_path: Path) -> None:
    freeze = tmp_path / "cgroup.freeze"
    freeze.write_text("1")
    guard, lease = Guard(str(tmp_path)), FakeLease()
    assert guard.armed
    guard.watch(lease)
    assert not guard.check()
    lease.left = -1
    assert guard.check()
    assert freeze.read_text() == "0"
    assert not guard.check()
    lease.left = 1
    assert not guard.check()
    lease.left = -1
    assert guard.check()


def test_without_a_cgroup_there_is_nothing_to_thaw() -> None:
    guard = Guard(None)
    assert not guard.armed and not guard.thaw() and not guard.check()
    assert not Guard("/no/such/cgroup").armed


# ---------------------------------------------------------------- request, paths


def test_argv_is_sent_as_clean_text_of_bounded_size() -> None:
    assert _displayable(["a", os.fsdecode(b"\xff")]) == ["a", "\N{REPLACEMENT CHARACTER}"]
    shown = _displayable(["x" * 100_000, "y"])
    assert len(shown) == 1 and len(shown[0]) < 40_000


def test_the_socket_path_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KREX_SOCKET", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert paths.socket_path() == f"/tmp/krex-{os.getuid()}/control.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert paths.socket_path() == "/run/user/1/krex/control.sock"
    monkeypatch.setenv("KREX_SOCKET", "/a/b.sock")
    assert paths.socket_path() == "/a/b.sock"
    assert paths.lock_path("/a/b.sock") == "/a/controller.lock"
    monkeypatch.setenv("KREX_SOCKET", "/a/" + "b" * 120)
    with pytest.raises(ControllerError, match="KREX_SOCKET"):
        paths.socket_path()


def test_a_relative_socket_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KREX_SOCKET", "a/b.sock")
    with pytest.raises(ControllerError, match=r"not an absolute path; set it to /.*a/b\.sock"):
        paths.socket_path()


def test_what_is_above_the_chosen_socket_directory_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = str(tmp_path / "misspelt" / "krex" / "s")
    monkeypatch.setenv("KREX_SOCKET", socket)
    with pytest.raises(ControllerError, match=r"there is no directory .*/misspelt for"):
        paths.prepare_socket_dir(socket)
    assert not (tmp_path / "misspelt").exists()
    # The directory itself is.
    (tmp_path / "misspelt").mkdir()
    paths.prepare_socket_dir(socket)
    assert (tmp_path / "misspelt" / "krex").is_dir()


def test_the_socket_directory_must_be_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KREX_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    socket = paths.socket_path()
    paths.prepare_socket_dir(socket)
    assert stat.S_IMODE((tmp_path / "krex").stat().st_mode) == 0o700
    (tmp_path / "krex").chmod(0o755)
    with pytest.raises(ControllerError, match="chmod 700"):
        paths.prepare_socket_dir(socket)
    (tmp_path / "krex").rmdir()
    (tmp_path / "krex").symlink_to("/tmp")
    with pytest.raises(ControllerError, match="not a directory of yours"):
        paths.prepare_socket_dir(socket)


def test_missing_products_say_how_to_build_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_PACKAGE", str(tmp_path / "krex"))
    for function in (paths.library_path, paths.include_dir):
        with pytest.raises(NotBuiltError, match=r"python build\.py"):
            function()
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "krex.h").write_text("")
    assert paths.include_dir() == str(tmp_path / "shim")
    (tmp_path / "krex" / "include").mkdir(parents=True)
    (tmp_path / "krex" / "include" / "krex.h").write_text("")
    assert paths.include_dir() == str(tmp_path / "krex" / "include")
