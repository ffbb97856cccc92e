# SPDX-License-Identifier: Apache-2.0
"""What cannot be started, and what is started without protection."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.fake_controller import Controller, Runner, plain

from krex.launch.devices import PCI_DEVICES


@pytest.mark.parametrize(
    ("command", "status"), [("no-such-tool", 127), ("/no/such/tool", 127), ("/etc/passwd", 126)]
)
def test_a_command_that_cannot_run_is_refused_at_once(
    krex: Runner, command: str, status: int
) -> None:
    result = krex.run("--", command)
    assert result.returncode == status
    assert result.stderr.startswith("krex: ") and result.stderr.count("\n") == 1


def test_a_missing_interpreter_is_found_out_by_exec(
    krex: Runner, controller: Controller, place: Path
) -> None:
    (place / "script").write_text("#!/no/such/interpreter\n")
    (place / "script").chmod(0o755)
    controller.play(plain)
    result = krex.run("--", str(place / "script"))
    controller.check()
    assert result.returncode == 127 and "interpreter" in result.stderr


@pytest.mark.parametrize(
    "words", [[], ["--"], ["--gpux", "0", "true"], ["--exclusive", "x", "a"], ["--report", "", "a"]]
)
def test_usage_errors_are_2(krex: Runner, words: list[str]) -> None:
    result = krex.run(*words)
    assert result.returncode == 2 and "Usage: krex run" in result.stderr and not result.stdout


def test_an_unwritable_report_stops_us_before_the_start(krex: Runner, place: Path) -> None:
    result = krex.run("--report", "/no/such/r", "--", "touch", str(place / "ran"))
    assert result.returncode == 125 and "/no/such/r" in result.stderr
    assert not (place / "ran").exists()


def test_a_refusal_is_125_with_its_reason(krex: Runner, controller: Controller) -> None:
    controller.play(lambda c: c.send("error", message="there is no device cpu:9"))
    result = krex.run("--device", "cpu:9", "true")
    controller.check()
    assert result.returncode == 125 and "no device cpu:9" in result.stderr


def test_a_refusal_says_what_to_do_once(krex: Runner, controller: Controller) -> None:
    controller.play(lambda c: c.send("error", message="it is too much; ask for less"))
    said = krex.run("true").stderr
    controller.check()
    assert said == "krex: not admitted: it is too much; ask for less\n"


@pytest.mark.parametrize("options", [(), ("--require",)])
def test_a_pci_device_that_is_not_there_is_125(krex: Runner, options: tuple[str, ...]) -> None:
    if not any(Path(PCI_DEVICES).glob("*")):
        pytest.skip("this machine shows no PCI devices")
    result = krex.run(*options, "--device", "pci:ffff:ff:1f.7", "--", "echo", "ran")
    assert (result.returncode, result.stdout) == (125, "")
    assert "pci:ffff:ff:1f.7 is not a PCI device of this machine" in result.stderr


def test_a_simulated_device_without_sim_is_only_a_name(
    krex: Runner, controller: Controller
) -> None:
    controller.play(plain, plain)
    said = krex.run("--device", "sim:5", "true").stderr
    assert "sim:5 is only a name without --sim; say --sim --device sim:5\n" in said
    # The negative twin.
    assert "only a name" not in krex.run("--device", "cpu:0", "true").stderr
    controller.check()


@pytest.mark.parametrize("slots", ["abc", "0"])
def test_a_bad_number_of_slots_is_2_and_not_unprotected(krex: Runner, slots: str) -> None:
    krex.environment["KREX_SLOTS"] = slots
    result = krex.run("--", "echo", "ran")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"KREX_SLOTS={slots} is not a whole number" in result.stderr


def test_without_a_controller_the_command_runs_unprotected(krex: Runner) -> None:
    krex.environment["KREX_SOCKET"] = "/proc/none/s"
    result = krex.run("-q", "--", "sh", "-c", "echo $KREX_COMMAND; exit 4")
    assert (result.returncode, result.stdout) == (4, "\n")
    assert "without protection" in result.stderr and result.stderr.count("\n") == 1


def test_require_refuses_to_run_unprotected(krex: Runner) -> None:
    krex.environment["KREX_SOCKET"] = "/proc/none/s"
    result = krex.run("--require", "--", "echo", "ran")
    assert (result.returncode, result.stdout) == (125, "")


def test_an_older_controller_may_ask_us_to_run_unprotected(
    krex: Runner, controller: Controller
) -> None:
    controller.play(lambda c: c.send("error", message="another protocol", fail_open=True))
    result = krex.run("echo", "ran")
    controller.check()
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert "another protocol" in result.stderr


def test_a_controller_that_hangs_up_first_is_asked_again(
    krex: Runner, controller: Controller
) -> None:
    controller.play(lambda c: None, plain)
    assert krex.run("echo", "ran").stdout == "ran\n"
    controller.check()
    assert len(controller.requests) == 2


def test_krex_disable_takes_us_out_of_the_way(krex: Runner) -> None:
    krex.environment["KREX_DISABLE"] = "1"
    result = krex.run("--", "sh", "-c", "echo $KREX_COMMAND$LD_PRELOAD; exit 6")
    assert (result.returncode, result.stdout, result.stderr) == (6, "\n", "")


def test_a_static_program_is_warned_about_once(
    krex: Runner, controller: Controller, place: Path
) -> None:
    (place / "s.c").write_text("int main(void) { return 9; }\n")
    subprocess.run(["cc", "-static", "-o", place / "p", place / "s.c"], check=True, timeout=60)
    controller.play(plain)
    result = krex.run("--", str(place / "p"))
    controller.check()
    assert result.returncode == 9 and result.stderr.count("cannot be protected") == 1
