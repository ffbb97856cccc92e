# SPDX-License-Identifier: Apache-2.0
"""One command with two processes: a sibling with some feature in use, and one that enters regions.

In one command the sibling is not frozen: only gate and drain keep it out of the regions. It says
"ready", and is told "inside" from inside each region, and "end".
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def start(script: str, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, str(HERE / script), *words]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def tell(sibling: subprocess.Popen[str], word: str) -> None:
    sibling.stdin.write(word + "\n")
    sibling.stdin.flush()


def main(feature: str, regions: str, *holder_asks: str) -> None:
    sibling = start("siblings.py", feature)
    assert sibling.stdout.readline() == "ready\n"
    holder = start("holder.py", regions, *holder_asks)
    while (line := holder.stdout.readline()) == "inside\n":
        tell(sibling, "inside")
    assert holder.wait() == 0
    tell(sibling, "end")
    found = json.loads(sibling.stdout.readline())
    assert sibling.wait() == 0
    print(json.dumps({"regions": json.loads(line), "sibling": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
