# SPDX-License-Identifier: Apache-2.0
"""Functions of all kinds, marked in place, in every interpreter that there is."""

import os
import subprocess
from pathlib import Path

import pytest
from support.interpreters import VERSIONS, interpreter
from support.waiting import DEADLINE_S

from krex import paths

PROGRAM = Path(__file__).with_name("call_kinds_program.py")


@pytest.mark.parametrize("version", VERSIONS)
def test_marked_functions_do_and_look_as_they_did(version):
    words = [*interpreter(version), "-W", "error", str(PROGRAM)]
    env = os.environ | {"PYTHONPATH": paths.watch_dir(), "KREX_REGION": "none"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
