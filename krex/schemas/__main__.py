# SPDX-License-Identifier: Apache-2.0
"""`python -m krex.schemas [--check]`: write the schemas and the tables made from them.

With --check nothing is written, and the exit status is 1 if a file is not what it would become.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from krex import schemas
from krex.schemas.reference import fill


def files() -> Iterator[tuple[Path, str]]:
    """Every generated file with the text that belongs in it."""
    built = {name: schemas.build(name) for name in schemas.SCHEMAS}
    for name, schema in built.items():
        text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
        yield schemas.FOLDER / f"{name}.schema.json", text + "\n"
    for page in sorted(schemas.DOCS.glob("*.md")):  # none where krex is installed
        yield page, fill(page.read_text(encoding="utf-8"), built)


def main() -> int:
    """Give the exit status."""
    stale = [(p, t) for p, t in files() if not p.exists() or p.read_text(encoding="utf-8") != t]
    for path, text in stale:
        if "--check" in sys.argv:
            print(f"{path.name} is stale: run `make regen`", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
