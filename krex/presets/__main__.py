# SPDX-License-Identifier: Apache-2.0
"""`python -m krex.presets [--check]`: write krex/marker/known.py, or see if it is up to date."""

import sys
from pathlib import Path

import krex.marker
from krex.presets import table

known = Path(krex.marker.__file__).with_name("known.py")
source = table.known_source(table.read(table.BUILTIN))
if "--check" not in sys.argv:
    known.write_text(source, encoding="utf-8")
elif known.read_text(encoding="utf-8") != source:
    sys.exit(f"{known} is not what `make regen` writes")
