# SPDX-License-Identifier: Apache-2.0
"""Calls every function of call_harness once, by the ways that harnesses have. CPython 3.8 or newer.

call_program.py kinds | spawn | forkserver | popen | lost | main
"""

import asyncio
import inspect
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import call_harness
from call_harness import plain  # whoever has it has the marked one


def local():
    call_harness.timed()
    return os.getpid()


def raised_by(function):
    try:
        function()
    except Exception as error:  # noqa: BLE001
        return error
    return None


def every_kind():
    assert plain(1, 7, 8, c=9, d=10) == (1, 7, (8,), 9, {"d": 10})
    assert list(call_harness.items()) == [1, 2]
    assert asyncio.run(call_harness.awaited()) == 3
    assert repr(raised_by(call_harness.fails)) == "ValueError('goes through')"
    assert call_harness.cached(6) == call_harness.cached(6) == 6
    timer = call_harness.Timer()
    assert timer.run() is timer and timer.of_class() is type(timer)
    assert timer.static() == 4 and timer.value == 5


def looks_unchanged():
    """What harnesses that fear changed functions look at."""
    assert str(inspect.signature(plain)) == "(a, /, b=2, *rest, c, **more)"
    assert inspect.getsource(plain).startswith("def plain(a, /, b=2")
    assert type(plain) is type(local) and plain is call_harness.plain
    assert not hasattr(plain, "__wrapped__")
    assert (plain.__name__, plain.__qualname__) == ("plain", "plain")
    assert plain.__module__ == "call_harness" and plain.__doc__ == "Says what it was given."
    assert plain.__code__.co_filename == call_harness.__file__
    assert pickle.loads(pickle.dumps(plain)) is plain
    assert inspect.isgeneratorfunction(call_harness.items)
    assert inspect.iscoroutinefunction(call_harness.awaited)


def spawn(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(local) != os.getpid()
        assert pool.apply(plain, (1,), {"c": 2})


def popen():
    """As torch's autotuner: an environment of one's own, with PYTHONPATH made of sys.path."""
    kept = ("LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HOME")
    environment = {name: os.environ[name] for name in os.environ if name.startswith("KREX_")}
    environment.update({name: os.environ[name] for name in kept if name in os.environ})
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    code = "import call_harness; call_harness.plain(1, c=2)"
    subprocess.run(
        [sys.executable, "-c", code], env=environment, start_new_session=True, check=True
    )


def lost():
    """As those that set PYTHONPATH to a place of their own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    code = "import call_harness; call_harness.plain(1, c=2); call_harness.plain(1, c=2)"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def main():
    method = sys.argv[1]
    if method in ("spawn", "forkserver"):
        spawn(method)
    else:
        {"kinds": every_kind, "popen": popen, "lost": lost, "main": local}[method]()
    looks_unchanged()
    print("done")


if __name__ == "__main__":
    main()
