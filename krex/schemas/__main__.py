# SPDX-License-Identifier: Apache-2.0
"""`python -m krex.schemas [--check]`: write the schema files, or fail if one is stale."""

import sys
from pathlib import Path

import msgspec

from krex.record import RegionRecord

FILE = Path(__file__).with_name("region-record.schema.json")


def main() -> int:
    """Give the exit status."""
    text = msgspec.json.format(msgspec.json.encode(msgspec.json.schema(RegionRecord)), indent=2)
    if "--check" not in sys.argv:
        FILE.write_bytes(text + b"\n")
    elif not FILE.exists() or FILE.read_bytes() != text + b"\n":
        print(f"{FILE.name} is stale: run `make regen`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
