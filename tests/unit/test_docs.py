# SPDX-License-Identifier: Apache-2.0
"""What the pages name is there: files, functions, options, variables."""

import re
import subprocess
from pathlib import Path

import pytest

from krex.launch.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("shim/**/*.md")],
    key=lambda path: path.relative_to(ROOT),
)
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_function_that_contributing_names_is_in_its_file():
    found = re.findall(r"`(\w+)`\s+\(`([\w./]+)`\)", CONTRIBUTING.read_text(encoding="utf-8"))
    assert len(found) > 15
    files = {path: (ROOT / path).read_text(encoding="utf-8") for _, path in found}
    gone = [(name, path) for name, path in found if not re.search(rf"\b{name}\b", files[path])]
    assert gone == []


def test_the_map_of_the_tree_is_complete():
    mapped = set(re.findall(r"^\| `([\w./]+)` \|", CONTRIBUTING.read_text(), re.MULTILINE))
    assert {path for path in mapped if not (ROOT / path).exists()} == set()
    # Every folder of code stands in it, alone or by the one that it is in at the top.
    tracked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "shim", "krex"]
    done = subprocess.run(tracked, cwd=ROOT, stdout=-1, text=True, timeout=60)
    if done.returncode:
        pytest.skip("not a git checkout")
    folders = {"/".join(path.split("/")[:2]) + "/" for path in done.stdout.split() if "/" in path}
    folders = {folder for folder in folders if (ROOT / folder).is_dir()}
    assert folders - mapped == set()


def test_every_folder_of_the_shim_has_a_readme():
    folders = {path.parent for path in (ROOT / "shim").rglob("*.[chS]")}
    assert [folder for folder in folders if not (folder / "README.md").exists()] == []


def test_the_guide_knows_every_variable_and_no_other():
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    sources = [*(ROOT / "krex").rglob("*.py"), *(ROOT / "shim").rglob("*.c")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    # In C by getenv; in Python as a text that is nothing but the name.
    read = {name for text in texts for name in re.findall(r'"(KREX_[A-Z]+)"', text)}
    assert {"KREX_SOCKET", "KREX_REGION", "KREX_COMMAND"} <= read
    assert set(re.findall(r"KREX_[A-Z]+", guide)) == read


def test_the_pages_name_only_options_that_exist():
    flags = {flag for option in OPTIONS for flag in option.flags}
    for page in PAGES:
        runs = re.findall(r"krex run ([^\n`|]*?)--(?:\s|$)", page.read_text(encoding="utf-8"))
        used = {word.split("=")[0] for run in runs for word in run.split() if word[0] == "-"}
        assert used <= flags, page
