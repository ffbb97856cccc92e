# SPDX-License-Identifier: Apache-2.0
"""Processes as known harnesses start them, with nothing said to KREX: their functions are marked.

What is here has the harnesses' names and processes; what it times is two events.
"""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
from support.command_line import Krex
from support.interpreters import interpreter

HERE = Path(__file__).parent
TIMED = "import call_harness\n\n\ndef {name}():\n    return call_harness.timed()\n"


class Scene:
    """A folder with a harness in it, and krex to run it."""

    def __init__(self, krex: Krex) -> None:
        self.krex, self.folder = krex, krex.folder / "work"
        self.folder.mkdir()
        krex.env["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(HERE), krex.env.get("PYTHONPATH")])
        )
        krex.env["XDG_CONFIG_HOME"] = str(krex.folder)

    def write(self, path: str, text: str) -> None:
        """Write a module, and make a package of each folder above it."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in list(file.parents)[: len(Path(path).parents) - 1]:
            (folder / "__init__.py").touch()
        file.write_text(textwrap.dedent(text))

    def run(self, *words: str, version: str = "3.11") -> str:
        """Run a Python with `words` as a command; what it prints."""
        command = ("run", "--sim", "--report", str(self.krex.folder / "r"), "--")
        python = interpreter(version)
        done = self.krex(*command, *python, *words, cwd=str(self.folder), env=self.env())
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def env(self) -> dict[str, str]:
        return {name: text for name, text in self.krex.env.items() if name != "KREX_REGION"}

    def regions(self) -> list[tuple[str, str]]:
        """Marker and name of each."""
        records = [r for r in self.krex.records("r") if r["schema"] == "krex.region"]
        assert [r["reasons"] for r in records if not r["exclusive"]] == []
        return [(record["marker"], record["name"]) for record in records]


@pytest.fixture
def scene(cli: Krex) -> Scene:
    return Scene(cli)


def test_kernelbench_a_spawned_pool_imports_the_timing_functions_by_name(scene: Scene) -> None:
    scene.write("kernelbench/timing.py", TIMED.format(name="time_execution_with_cuda_event"))
    scene.write(
        "kernelbench/eval.py",
        """
        from kernelbench.timing import time_execution_with_cuda_event as time_it
        def evaluate(index):
            return time_it(), time_it()  # the candidate, and the reference
        """,
    )
    scene.write(
        "run.py",
        """
        import multiprocessing as mp
        from kernelbench.eval import evaluate
        if __name__ == "__main__":
            mp.set_start_method("spawn")
            with mp.Pool(1) as pool:
                print(len(pool.map(evaluate, [0, 1])))
        """,
    )
    assert scene.run("run.py") == "2\n"
    name = "kernelbench.timing.time_execution_with_cuda_event"
    assert scene.regions() == [("call", name)] * 4


def test_kernelbot_the_loop_is_in_the_main_module_of_a_spawned_worker(scene: Scene) -> None:
    # GIVEN a runner that gives its evaluator a descriptor to report to
    scene.write(
        "runner.py",
        """
        import os, subprocess, sys
        reader, writer = os.pipe()
        env = os.environ.copy()
        env["POPCORN_FD"] = str(writer)
        done = subprocess.run([sys.executable, "eval.py", "benchmark"], env=env, pass_fds=[writer])
        os.close(writer)
        print(done.returncode, os.fdopen(reader).read())
        """,
    )
    scene.write(
        "eval.py",
        """
        import multiprocessing, os, sys
        import call_harness
        def _run_single_benchmark(index):
            return call_harness.timed()
        def main():
            fd = int(os.environ["POPCORN_FD"])
            os.unsetenv("POPCORN_FD")
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                times = pool.map(_run_single_benchmark, range(2))
            os.write(fd, b"check: %d" % len(times))
        if __name__ == "__main__":
            main()
        """,
    )
    assert scene.run("runner.py") == "0 check: 2\n"
    assert scene.regions() == [("call", "__mp_main__._run_single_benchmark")] * 2


def test_robust_kbench_a_child_in_a_session_of_its_own_that_always_fails(scene: Scene) -> None:
    path = "robust_kbench/sandbox/eval_forward_fn.py"
    scene.write(path, TIMED.format(name="time_function_kineto"))
    scene.write(
        "child.py",
        """
        import sys
        from robust_kbench.sandbox import eval_forward_fn as e
        print("result", e.time_function_kineto() >= 0)
        sys.exit(1)
        """,
    )
    scene.write(
        "parent.py",
        """
        import os, subprocess, sys
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": "0"}
        child = subprocess.Popen([sys.executable, "child.py"], env=env, start_new_session=True,
                                 stdout=subprocess.PIPE, text=True)
        print(child.communicate(timeout=60)[0].strip(), child.returncode)
        """,
    )
    assert scene.run("parent.py") == "result True 1\n"
    name = "robust_kbench.sandbox.eval_forward_fn.time_function_kineto"
    assert scene.regions() == [("call", name)]


def test_sol_execbench_stdout_is_a_protocol_and_changes_are_taken_for_cheats(scene: Scene) -> None:
    scene.write("sol_execbench/core/bench/timing.py", TIMED.format(name="time_runnable"))
    scene.write(
        "driver.py",
        """
        import os, sys, threading, json
        real = os.dup(1)
        os.dup2(2, 1)
        from sol_execbench.core.bench import timing
        import ctypes
        before = id(timing.time_runnable), id(ctypes.CDLL), threading.active_count()
        timing.time_runnable()
        after = id(timing.time_runnable), id(ctypes.CDLL), threading.active_count()
        os.write(real, json.dumps({"unchanged": before == after}).encode())
        """,
    )
    scene.write(
        "cli.py",
        """
        import subprocess, sys
        print(subprocess.run([sys.executable, "driver.py"], capture_output=True, text=True).stdout)
        """,
    )
    assert json.loads(scene.run("cli.py")) == {"unchanged": True}
    assert scene.regions() == [("call", "sol_execbench.core.bench.timing.time_runnable")]


def test_tinygrad_a_generator_that_is_not_exhausted_is_left(scene: Scene) -> None:
    scene.write(
        "tinygrad/engine/realize.py",
        """
        import call_harness
        def time_call():
            while True:
                yield call_harness.timed()
        """,
    )
    code = (
        "import call_harness, itertools; from tinygrad.engine.realize import time_call;"
        "print(len(list(itertools.islice(time_call(), 3)))); call_harness.timed()"
    )
    assert scene.run("-c", code) == "3\n"
    assert scene.regions()[0] == ("call", "tinygrad.engine.realize.time_call")


def test_a_harness_of_the_users_own_is_known_by_a_file(scene: Scene) -> None:
    # GIVEN a harness that nobody knows, and a file that describes it
    scene.write("lab/bench.py", TIMED.format(name="measure"))
    (scene.krex.folder / "krex").mkdir()
    (scene.krex.folder / "krex" / "presets.toml").write_text(
        '[lab]\ntitle = "Lab"\nwhy = "Ours."\nmodules = ["lab"]\ncalls = ["lab.bench.measure"]\n'
    )
    # WHEN a command runs it, in a child
    code = "import lab.bench; lab.bench.measure()"
    shell = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    scene.run("-c", shell, version="3.8")
    # THEN its function is marked
    assert scene.regions() == [("call", "lab.bench.measure")]


def test_marks_of_the_program_itself_end_the_automatic_ones(scene: Scene) -> None:
    # GIVEN a program that uses a known function, then marks something, then uses it again
    scene.write("kernelbench/timing.py", TIMED.format(name="time_execution_with_cuda_event"))
    code = """
    import krex, call_harness
    from kernelbench.timing import time_execution_with_cuda_event as time_it
    time_it()
    with krex.region("mine"):
        time_it()
    time_it()
    """
    scene.write("run.py", code)
    scene.run("run.py")
    # THEN from its own mark on only its own marks are regions
    name = "kernelbench.timing.time_execution_with_cuda_event"
    assert scene.regions() == [("call", name), ("explicit", "mine")]


def test_none_marks_nothing(scene: Scene) -> None:
    scene.write("kernelbench/timing.py", TIMED.format(name="time_execution_with_cuda_event"))
    code = "from kernelbench import timing; timing.time_execution_with_cuda_event()"
    command = ("run", "--sim", "--report", "r", "--", *interpreter("3.11"), "-c", code)
    env = scene.env() | {"KREX_REGION": "none"}
    done = scene.krex(*command, env=env, cwd=str(scene.folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert [r for r in scene.krex.records("work/r") if r["schema"] == "krex.region"] == []
