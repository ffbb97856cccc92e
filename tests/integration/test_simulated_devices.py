# SPDX-License-Identifier: Apache-2.0
"""`krex run --sim`: the process of the devices, and who runs on which of them.

The process is a stand-in, so that the test has it die, or hold on to a dead process's work, when it
likes. What is computed on the devices is tested in cuda/.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Krex
from support.fake_simulator import MEMORY, simulating, starts
from support.sandbox import needs_root
from support.waiting import ended, wait_for

from krex.protect.freezer import cgroup_of, find_base

BUSY = Path(__file__).with_name("busy_program.py")

# Says what it finds, and stays until its stdin ends.
FINDS = 'echo "$CUDA_VISIBLE_DEVICES $KREX_SIM_SOCKET $LD_LIBRARY_PATH"; cat'


@pytest.fixture
def sim(place: Path) -> Iterator[Krex]:
    with simulating(place) as runner:
        yield runner


def start(sim: Krex, *options: str, script: str = FINDS, **env: str) -> subprocess.Popen[str]:
    return sim.popen(*sim.base, "run", *options, "--", "sh", "-c", script, **env)


def device_of(command: subprocess.Popen[str]) -> str:
    """The number of the device that it runs on, once it does."""
    assert command.stdout is not None
    return command.stdout.readline().split(" ")[0]


def end(*commands: subprocess.Popen[str]) -> None:
    for command in commands:
        command.communicate(timeout=60)
        assert command.returncode == 0


def refusal(sim: Krex, *options: str, **env: str) -> str:
    done = sim("run", *options, "--", "true", env=sim.env | env)
    assert done.returncode == 125
    return str(done.stderr)


# ---------------------------------------------------------------- what a command finds


def test_a_command_finds_its_device_and_what_its_user_had_set(sim: Krex) -> None:
    # WHEN a command with a library path of its own runs on a simulated device
    command = start(sim, "--sim", LD_LIBRARY_PATH="/mine:/others")
    assert command.stdout is not None
    number, path, libraries = command.stdout.readline().split()
    # THEN it finds that one, and loads our driver before any other
    assert (number, path) == ("0", str(sim.folder / "sim.sock"))
    assert libraries == f"{sim.folder}/lib:/mine:/others"
    # AND the status tells of it
    simulator = sim.status()["simulator"]
    (started,) = starts(sim.folder)
    assert simulator == {
        "pid": started["pid"],
        "socket": path,
        "devices": 1,
        "log": str(sim.folder / "sim-log.tsv"),
    }
    assert "simulated devices: 1, pid" in sim("status").stdout
    end(command)


def test_the_process_is_no_part_of_a_command_and_ends_with_the_controller(sim: Krex) -> None:
    # GIVEN a controller that was started with a preload, and a command on a simulated device
    sim.stop_controller()
    sim.env["LD_PRELOAD"] = "libm.so.6"
    sim.start_controller()
    del sim.env["LD_PRELOAD"]
    command = start(sim, "--sim")
    device_of(command)
    pid = int(str(starts(sim.folder)[0]["pid"]))
    # THEN it is in the controller's cgroup, which nobody freezes, and has none of the preload
    assert cgroup_of(pid) == cgroup_of(sim.controller_pid())
    assert b"LD_PRELOAD" not in Path(f"/proc/{pid}/environ").read_bytes()
    # WHEN the controller is killed THEN nothing is left of it
    os.kill(sim.controller_pid(), 9)
    wait_for(lambda: ended(pid))
    end(command)


def test_a_nested_run_with_another_environment_finds_the_same_device(sim: Krex) -> None:
    words = " ".join(f"'{word}'" for word in [*sim.base, "run", "--", "sh", "-c"])
    kept = 'PATH="$PATH" PYTHONPATH="$PYTHONPATH" KREX_SOCKET="$KREX_SOCKET"'
    script = f"exec env -i {kept} {words} 'echo $CUDA_VISIBLE_DEVICES $KREX_SIM_SOCKET'"
    done = sim("run", "--device", "sim:1", "--sim-gpus", "2", "--", "sh", "-c", script)
    assert done.stdout == f"1 {sim.folder}/sim.sock\n", done.stderr


def test_without_krex_nothing_runs_on_a_device_that_is_none(sim: Krex) -> None:
    assert "KREX_DISABLE is set" in refusal(sim, "--sim", KREX_DISABLE="1")


# ---------------------------------------------------------------- how the process is started


def test_devices_that_are_in_use_are_not_changed_and_idle_ones_are(sim: Krex) -> None:
    # GIVEN a command on one of two
    command = start(sim, "--sim-gpus", "2")
    device_of(command)
    # THEN who wants another number or model is told what to do, and who wants any gets the other
    assert "say --sim-gpus 2" in refusal(sim, "--sim-gpus", "3")
    assert "goes to" in refusal(sim, "--sim", "--sim-log", "log")
    other = start(sim, "--sim")
    assert device_of(other) == "1"
    assert len(starts(sim.folder)) == 1
    # WHEN they have ended THEN it is started anew
    end(command, other)
    log = sim.folder / "mine.tsv"
    assert sim("run", "--sim-gpus", "3", "--sim-log", str(log), "--", "true").returncode == 0
    assert [(s["devices"], s["log"]) for s in starts(sim.folder)[1:]] == [(3, str(log))]


def test_what_keeps_the_devices_from_starting_is_said(sim: Krex) -> None:
    (sim.folder / "broken").touch()
    assert "the simulated devices do not start: krex-sim-device: no such luck" in refusal(
        sim, "--sim"
    )
    # AND the next command tries again
    (sim.folder / "broken").unlink()
    assert sim("run", "--sim", "--", "true").returncode == 0


def test_a_model_goes_to_the_process_wherever_its_file_is(sim: Krex) -> None:
    # WHEN a command names a model by a path that means nothing to the controller
    elsewhere = sim.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "m.toml").write_text("[contexts]\ncontext_ns = 7\n")
    words = ["--sim-model", "m.toml", "--", "cat"]
    command = sim.start("run", *words, cwd=elsewhere, stdin=subprocess.PIPE)
    wait_for(lambda: sim.status()["commands"])
    # THEN the process has it
    (started,) = starts(sim.folder)
    assert "contexts.context_ns 7\n" in str(started["model"])
    # AND who does not ask for it does not get it unawares
    assert "of another model" in refusal(sim, "--sim")
    command.communicate(timeout=60)
    # AND a file that is none is an error of whoever gave it
    (elsewhere / "m.toml").write_text("[contexts]\ncontext = 7\n")
    done = sim("run", *words, cwd=elsewhere)
    assert done.returncode == 2 and "m.toml is no model" in done.stderr


@needs_root
def test_the_machine_s_controller_has_no_simulated_devices(sim: Krex) -> None:
    sim.stop_controller()
    sim.start_controller("--system")
    assert "set KREX_SOCKET to a path of your own" in refusal(sim, "--sim")


# ---------------------------------------------------------------- which device


def test_32_commands_on_8_devices_are_four_on_each(sim: Krex) -> None:
    commands = [start(sim, "--sim-gpus", "8") for _ in range(32)]
    found = Counter(device_of(command) for command in commands)
    assert found == {str(n): 4 for n in range(8)}
    end(*commands)


def test_a_device_that_got_free_is_taken_again(sim: Krex) -> None:
    first, second = (start(sim, "--sim-gpus", "2") for _ in range(2))
    by_device = {device_of(first): first, device_of(second): second}
    assert set(by_device) == {"0", "1"}
    end(by_device["0"])
    wait_for(lambda: [d["slots_used"] for d in sim.status()["devices"]].count(0))
    third = start(sim, "--sim-gpus", "2")
    assert device_of(third) == "0"
    end(third, by_device["1"])


def test_of_the_devices_only_those_that_were_named_and_are_visible_are_taken(sim: Krex) -> None:
    named = [start(sim, "--sim-gpus", "4", "--device", "sim:1,sim:3") for _ in range(4)]
    assert Counter(map(device_of, named)) == {"1": 2, "3": 2}
    env = {"CUDA_VISIBLE_DEVICES": "2,3"}
    visible = [start(sim, "--sim-gpus", "4", **env) for _ in range(2)]
    assert [device_of(command) for command in visible] == ["2", "2"]
    text = refusal(sim, "--sim-gpus", "4", "--device", "sim:0", **env)
    assert "CUDA_VISIBLE_DEVICES=2,3 leaves none of sim:0" in text
    assert "sim:4 is none of the simulated devices" in refusal(
        sim, "--sim-gpus", "4", "--device", "sim:4"
    )
    end(*named, *visible)


def test_devices_that_are_not_simulated_are_shared_out_too(sim: Krex) -> None:
    commands = [start(sim, "--device", "cpu:1", "--device", "cpu:2") for _ in range(4)]
    for command in commands:
        device_of(command)
    found = Counter(c["device"] for c in sim.status()["commands"])
    assert found == {"cpu:1": 2, "cpu:2": 2}
    end(*commands)


# ---------------------------------------------------------------- memory


def test_a_command_waits_visibly_for_the_memory_that_it_reserves(sim: Krex) -> None:
    # GIVEN a command that has three quarters of the memory
    first = start(sim, "--sim", "--mem", "48GiB")
    device_of(first)
    # WHEN another wants half of it THEN it waits, and says for what
    second = sim.start("run", "--sim", "--mem", "32GiB", "--", "true")
    wait_for(lambda: sim.status()["devices"][0]["admission"])
    end(first)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "place 1 of 1: too much of the memory of sim:0 is reserved (--mem)" in said
    # AND one that wants more than there is does not wait
    more = f"{(MEMORY >> 20) + 1}MiB"
    assert "is more than the 64GiB of the device" in refusal(sim, "--sim", "--mem", more)
    assert "nobody knows how much memory cpu:0 has" in refusal(sim, "--mem", "1KiB")


def test_a_device_with_room_for_the_memory_goes_before_one_with_fewer_commands(sim: Krex) -> None:
    large = start(sim, "--sim-gpus", "2", "--device", "sim:0", "--mem", "40GiB")
    small = [start(sim, "--sim-gpus", "2", "--device", "sim:1") for _ in range(2)]
    for command in (large, *small):
        device_of(command)
    third = start(sim, "--sim-gpus", "2", "--mem", "40GiB")
    assert device_of(third) == "1"
    end(large, *small, third)


# ---------------------------------------------------------------- regions


WHOLE = {"KREX_REGION": "whole"}


def records(sim: Krex, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (sim.folder / name).read_text().splitlines()]


def test_a_record_says_that_its_device_is_simulated(sim: Krex) -> None:
    report = str(sim.folder / "r")
    end(start(sim, "--sim", "--report", report, script="true", **WHOLE))
    (record,) = records(sim, "r")
    assert (record["device"], record["simulated"], record["exclusive"]) == ("sim:0", True, True)


def test_regions_of_a_command_whose_device_was_lost_are_not_exclusive(sim: Krex) -> None:
    # GIVEN a command that is one region
    command = start(sim, "--sim", "--report", str(sim.folder / "r"), **WHOLE)
    device_of(command)
    # WHEN the process of the devices dies THEN the region is not exclusive
    os.kill(int(str(starts(sim.folder)[0]["pid"])), 9)
    wait_for(lambda: sim.status()["simulator"]["pid"] == 0)
    # AND a command that comes then has one that runs, whatever the other had
    after = start(sim, "--sim-gpus", "2", "--report", str(sim.folder / "s"), KREX_REGION="none")
    assert device_of(after) in {"0", "1"}
    end(command, after)
    assert [(r["exclusive"], r["reasons"]) for r in records(sim, "r")] == [(False, ["device_lost"])]
    assert [s["devices"] for s in starts(sim.folder)] == [1, 2]


@pytest.mark.parametrize("level", ["gate", "pin", "freeze"])
def test_a_region_says_what_it_did_to_its_siblings(sim: Krex, level: str) -> None:
    # GIVEN a sibling on the same device
    sibling = start(sim, "--sim")
    device_of(sibling)
    # WHEN a command at that level is one region
    end(start(sim, "--sim", "--protect", level, "--report", str(sim.folder / "r"),
              script="true", **WHOLE))  # fmt: skip
    # THEN on a device of its own it is exclusive, and says who ran on beside it
    (record,) = records(sim, "r")
    assert (record["exclusive"], record["protect"]) == (True, level)
    siblings = record["siblings"]
    assert isinstance(siblings, dict)
    freezes = level == "freeze"
    assert siblings["commands_left_running"] == (0 if freezes else 1)
    assert siblings["commands_frozen"] == (1 if freezes and find_base() else 0)
    end(sibling)


def test_who_comes_during_a_region_that_freezes_nobody_is_counted(sim: Krex) -> None:
    # GIVEN a command that is one region, and freezes nobody
    report = str(sim.folder / "r")
    region = start(sim, "--sim", "--protect", "gate", "--report", report, **WHOLE)
    device_of(region)
    # WHEN another starts beside it THEN it runs
    newcomer = start(sim, "--sim")
    device_of(newcomer)
    end(newcomer, region)
    # AND the record says so
    (record,) = records(sim, "r")
    siblings = record["siblings"]
    assert isinstance(siblings, dict)
    assert (record["exclusive"], siblings["commands_left_running"]) == (True, 1)


@pytest.fixture
def dead(sim: Krex) -> None:
    """A process died, and the devices still work for it."""
    pytest.importorskip("pyopencl")
    (sim.folder / "working").touch()
    command = sim.python(BUSY, "device", options=("--sim",))
    assert command.stdout is not None and command.stdout.readline() == "ready\n"
    (process,) = sim.status()["devices"][0]["processes"]
    os.kill(process["pid"], 9)
    command.wait(60)


@pytest.mark.usefixtures("dead")
def test_a_region_waits_for_what_a_dead_process_left_on_the_device(sim: Krex) -> None:
    # WHEN a region is to begin THEN it waits with the gate closed
    region = start(sim, "--sim", "--report", str(sim.folder / "r"), script="true", **WHOLE)
    wait_for(lambda: sim.status()["devices"][0]["gate"] == "closed")
    assert region.poll() is None
    # AND begins once the device says that nothing is left
    (sim.folder / "working").unlink()
    end(region)
    assert [record["exclusive"] for record in records(sim, "r")] == [True]


@pytest.mark.usefixtures("dead")
def test_a_region_beside_what_a_dead_process_left_is_not_exclusive(sim: Krex) -> None:
    report = str(sim.folder / "r")
    end(start(sim, "--sim", "--max-wait", "0.2", "--report", report, script="true", **WHOLE))
    assert [record["reasons"] for record in records(sim, "r")] == [["max_wait_exceeded"]]
    (sim.folder / "working").unlink()
