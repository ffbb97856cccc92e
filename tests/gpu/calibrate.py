# SPDX-License-Identifier: Apache-2.0
"""How many steps a kernel of so many milliseconds has on this device, while it is idle.

python -m gpu.calibrate MILLISECONDS ...
"""

from __future__ import annotations

import json
import subprocess
import sys

from gpu.driver_api import Driver, Work

_LIMIT_S = 60.0


def steps_for(*milliseconds: float) -> list[int]:
    """Find out in a process of its own. Raises CalledProcessError, TimeoutExpired."""
    command = [sys.executable, "-m", "gpu.calibrate", *map(str, milliseconds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=_LIMIT_S)
    return [int(steps) for steps in json.loads(done.stdout)]


if __name__ == "__main__":
    work = Work(Driver())
    print(json.dumps([work.steps_for(float(word) * 1e-3) for word in sys.argv[1:]]))
