# SPDX-License-Identifier: Apache-2.0
"""What KREX_REGION may say, and what is said of what it may not."""

import re

import pytest

from krex.marker.spec import parse

AUTO, EVENTS, WHOLE, NONE = {"auto"}, {"events"}, {"whole"}, {"none"}


@pytest.mark.parametrize(
    ("text", "calls", "ranges", "words"),
    [
        ("", [], [], AUTO),
        ("auto", [], [], AUTO),
        ("none", [], [], NONE),
        ("call:a.b", ["a.b"], [], set()),
        ("call:a.b,call:c.d", ["a.b", "c.d"], [], set()),
        ("call:a.b,c.d.E.f", ["a.b", "c.d.E.f"], [], set()),
        ("nvtx:my range", [], ["my range"], set()),
        ("nvtx:a:b,nvtx:events", [], ["a:b", "events"], set()),
        ("whole,call:a.b,c.d,events,nvtx:x", ["a.b", "c.d"], ["x"], WHOLE | EVENTS),
        ("call:__main__.f,auto", ["__main__.f"], [], AUTO),
    ],
)
def test_it_reads(text, calls, ranges, words):
    spec = parse(text)
    assert (spec.calls, spec.ranges, spec.words) == (calls, ranges, words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("evnts", "'evnts' is none of its items"),
        ("a.b", "'a.b' is none"),
        ("events,a.b", "'a.b' is none"),
        ("nvtx:a,b.c", "'b.c' is none"),
        ("nvtx:", "'nvtx:' is none"),
        ("call:a.b,", "'' is not the dotted name"),
        (",", "'' is none"),
        ("call:f", "'f' is not the dotted name"),
        ("call:a.<locals>.f", "is not the dotted name"),
        ("call: a.b", "' a.b' is not the dotted name"),
        ("none,auto", "'none' cannot be combined"),
    ],
)
def test_it_refuses(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parse(text)
