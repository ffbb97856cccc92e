# SPDX-License-Identifier: Apache-2.0
"""What KREX_REGION may say, what is said of what it may not, and that the shim reads the same."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from krex.marker.spec import parse

AUTO, EVENTS, WHOLE, NONE = {"auto"}, {"events"}, {"whole"}, {"none"}
LONG, MANY = "x" * 127, [f"range {i}" for i in range(16)]
RIGHT = [
    ("", [], [], AUTO),
    ("auto", [], [], AUTO),
    ("none", [], [], NONE),
    ("auto,events,auto", [], [], AUTO | EVENTS),
    ("call:a.b", ["a.b"], [], set()),
    ("call:a.b,call:c.d", ["a.b", "c.d"], [], set()),
    ("call:a.b,c.d.E.f", ["a.b", "c.d.E.f"], [], set()),
    ("call:auto.events,none.whole", ["auto.events", "none.whole"], [], set()),
    ("nvtx:my range", [], ["my range"], set()),
    ("nvtx:a:b,nvtx:events", [], ["a:b", "events"], set()),
    ("nvtx:a@lib,nvtx:@,nvtx: b", [], ["a@lib", "@", " b"], set()),
    ("nvtx:nvtx:a,nvtx:call:a.b", [], ["nvtx:a", "call:a.b"], set()),
    ("nvtx:\N{GREEK SMALL LETTER MU}s", [], ["\N{GREEK SMALL LETTER MU}s"], set()),
    (f"nvtx:{LONG}", [], [LONG], set()),
    (",".join(f"nvtx:{name}" for name in MANY), [], MANY, set()),
    ("whole,call:a.b,c.d,events,nvtx:x", ["a.b", "c.d"], ["x"], WHOLE | EVENTS),
    ("call:__main__.f,auto", ["__main__.f"], [], AUTO),
]
RANGES = sorted({name for _, _, ranges, _ in RIGHT for name in ranges})
KNOWN = AUTO | EVENTS | WHOLE | NONE | {f"nvtx:{name}" for name in RANGES}
WRONG = [
    ("evnts", "'evnts' is none of its items"),
    ("a.b", "'a.b' is none"),
    ("events,a.b", "'a.b' is none"),
    ("call:a.b,events,c.d", "'c.d' is none"),
    ("nvtx:a,b.c", "'b.c' is none"),
    ("nvtx:", "'nvtx:' is none"),
    ("Auto", "'Auto' is none"),
    (" events", "' events' is none"),
    ("events ", "'events ' is none"),
    ("event", "'event' is none"),
    ("auto:", "'auto:' is none"),
    ("events,", "'' is none"),
    (",events", "'' is none"),
    ("events,,nvtx:x", "'' is none"),
    ("call:a.b,", "'' is not the dotted name"),
    (",", "'' is none"),
    ("call:f", "'f' is not the dotted name"),
    ("call:a.<locals>.f", "is not the dotted name"),
    ("call: a.b", "' a.b' is not the dotted name"),
    ("none,auto", "'none' cannot be combined"),
    ("none,none", "'none' cannot be combined"),
    (f"nvtx:{LONG}x", "has more than 127 bytes"),
    (",".join(f"nvtx:{name}" for name in [*MANY, "one more"]), "more than 16 nvtx ranges"),
]


@pytest.mark.parametrize(("text", "calls", "ranges", "words"), RIGHT)
def test_it_reads(text, calls, ranges, words):
    spec = parse(text)
    assert (spec.calls, spec.ranges, spec.words) == (calls, ranges, words)


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_it_refuses(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parse(text)


@pytest.fixture(scope="module")
def shim(root, tmp_path_factory):
    """What the shim's reader, as a program, finds in a KREX_REGION: words, and `nvtx:` items."""
    program = tmp_path_factory.mktemp("region") / "items"
    sources = [Path(__file__).with_name("region_items.c"), root / "shim/region.c"]
    words = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", f"-I{root / 'shim'}", "-o", program]
    words += ["-ffunction-sections", "-Wl,--gc-sections", *sources, root / "shim/ranges.c"]
    subprocess.run([*words, "-lpthread"], check=True, timeout=60)

    def read(text: str) -> set[str]:
        env = os.environ | {"KREX_REGION": text}
        done = subprocess.run([program, *RANGES], env=env, capture_output=True, check=True)
        return set(done.stdout.decode().splitlines())

    return read


@pytest.mark.parametrize("text", [text for text, *_ in RIGHT])
def test_the_shim_reads_the_same(shim, text):
    spec = parse(text)
    assert shim(text) == spec.words | {f"nvtx:{name}" for name in spec.ranges}


@pytest.mark.parametrize("text", [text for text, _ in WRONG])
def test_of_what_is_refused_the_shim_takes_the_items_that_are_right(shim, text):
    # A program may set such a thing by itself. It may not mark more than it says.
    assert shim(text) == KNOWN.intersection(text.split(","))
