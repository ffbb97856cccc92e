# SPDX-License-Identifier: Apache-2.0
"""The preload library is a polite guest: what it needs, what it exports, what it does when loaded.

It lands in every program below `krex run`, compilers and git included, and in programs whose libc
is older than the one it was built with.
"""

import io
import re
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

NEWEST_GLIBC = (2, 28)
MAY_NEED = {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
HOOKED = {
    "ENQUEUE",
    "ENQUEUE_BLOCKING",
    "MAP_BLOCKING",
    "SUBMIT",
    "SUBMIT_HAND",
    "HEAVY",
    "HEAVY_HAND",
    "TRACK_HAND",
    "RESOLVE_HAND",
    "SUBMIT_SYNC",
    "SUBMIT_HOST",
    "SUBMIT_WAIT",
    "SUBMIT_EVENT",
    "SUBMIT_RECORD",
    "SUBMIT_JOIN",
    "SUBMIT_TIMED",
    "HEAVY_LOAD",
    "HEAVY_STREAM",
    "HEAVY_NEW_STREAM",
    "HEAVY_ALLOC",
    "SUBMIT_ALLOC",
    "CONTEXT",
    "CONTEXT_END",
    "CAPTURE",
    "CAPTURE_END",
    "INIT",
    "DEVICE",
    "RESET",
    "RESOLVE",
    "TRACK_MADE",
    "TRACK_GONE",
    "TRACK_READ",
    "TRACK_WAIT",
}
# Exported under the names by which others look for them.
OWN = {"dlsym", "dlvsym", "InitializeInjectionNvtx2"}
OWN |= {"roctxRangePushA", "roctxRangePop", "roctxRangeStartA", "roctxRangeStop"}
# What runs at load in every shared object that gcc or clang links; it does nothing without Java.
COMPILERS_OWN = {"frame_dummy"}


class Library:
    """An ELF file, opened once, with the questions below as methods."""

    def __init__(self, path: Path) -> None:
        self.elf = ELFFile(io.BytesIO(path.read_bytes()))
        self.dynamic = next(s for s in self.elf.iter_sections() if isinstance(s, DynamicSection))

    def tags(self, name):
        return [tag for tag in self.dynamic.iter_tags() if tag.entry.d_tag == name]

    def number(self, name):
        return sum(tag.entry.d_val for tag in self.tags(name))

    def exports(self):
        for symbol in self.elf.get_section_by_name(".dynsym").iter_symbols():
            defined = symbol.entry.st_shndx != "SHN_UNDEF"
            if defined and symbol.entry.st_info.bind in ("STB_GLOBAL", "STB_WEAK"):
                yield symbol.name

    def imports(self):
        for symbol in self.elf.get_section_by_name(".dynsym").iter_symbols():
            if symbol.entry.st_shndx == "SHN_UNDEF" and symbol.name:
                yield symbol.name

    def versions_needed(self):
        for section in self.elf.iter_sections():
            if isinstance(section, GNUVerNeedSection):
                for file, versions in section.iter_versions():
                    yield from ((file.name, version.name) for version in versions)

    def functions_at(self, address):
        return {
            symbol.name
            for symbol in self.elf.get_section_by_name(".symtab").iter_symbols()
            if symbol.entry.st_value == address and symbol.entry.st_info.type == "STT_FUNC"
        }

    def run_at_load(self):
        """The addresses in DT_INIT_ARRAY, which relocations fill in."""
        starts = [tag.entry.d_ptr for tag in self.tags("DT_INIT_ARRAY")]
        size = self.number("DT_INIT_ARRAYSZ")
        for relocation in self.elf.get_section_by_name(".rela.dyn").iter_relocations():
            offset = relocation.entry.r_offset
            if any(start <= offset < start + size for start in starts):
                yield relocation.entry.r_addend


@pytest.fixture(scope="module")
def elf(library):
    return Library(library)


@pytest.fixture(scope="module")
def hooks(root):
    """The functions that some vendor's list says are interposed."""
    names = set()
    for path in (hooks.with_name("api.def") for hooks in (root / "shim").glob("*/hooks.c")):
        for kind, name in re.findall(r"^KREX_\w+\((\w+), [^,]*?, (\w+),", path.read_text(), re.M):
            if kind in HOOKED:
                names.add(name)
    assert {"clEnqueueNDRangeKernel", "cuLaunchKernel", "cuMemcpyBatchAsync_v2_ptsz"} <= names
    assert {"hipModuleLaunchKernel", "hipMemcpy_spt", "hipStreamCreate"} <= names
    return names


def test_it_needs_only_glibc(elf):
    needed = {tag.needed for tag in elf.tags("DT_NEEDED")}
    assert needed
    assert {n for n in needed if n not in MAY_NEED and not n.startswith("ld-linux-")} == set()
    assert elf.tags("DT_RPATH") + elf.tags("DT_RUNPATH") == []
    assert [tag.soname for tag in elf.tags("DT_SONAME")] == ["libkrex.so"]


def test_an_old_glibc_can_load_it(elf):
    newer = []
    for file, version in elf.versions_needed():
        family, _, number = version.partition("_")
        assert family == "GLIBC", f"{version} of {file}"
        # GLIBC_PRIVATE and GLIBC_ABI_* have no number: they tie the library to one build of glibc.
        assert re.fullmatch(r"[0-9.]+", number), f"{version} of {file}"
        if tuple(map(int, number.split("."))) > NEWEST_GLIBC:
            newer.append(f"{version} of {file}")
    assert newer == []


def test_it_exports_only_hooks_and_its_own_names(elf, hooks):
    allowed = hooks | OWN
    others = {n for n in elf.exports() if n not in allowed and not n.startswith("krex_")}
    assert others == set()


def test_every_hook_is_exported(elf, hooks):
    assert (hooks | OWN) - set(elf.exports()) == set()


def test_nothing_of_ours_runs_when_it_is_loaded(elf):
    functions = [elf.functions_at(address) for address in elf.run_at_load()]
    assert [names for names in functions if not names & COMPILERS_OWN] == []
    assert elf.number("DT_INIT_ARRAYSZ") <= elf.elf.elfclass // 8
    assert elf.number("DT_PREINIT_ARRAYSZ") == 0


def test_no_binding_is_left_for_later(elf):
    # A first call through a lazy entry runs the resolver, with its locks, in the middle of a hook.
    assert elf.tags("DT_BIND_NOW") or elf.number("DT_FLAGS") & 0x8
    assert elf.tags("DT_TEXTREL") == []


def test_thread_locals_need_no_call(elf):
    assert "__tls_get_addr" not in set(elf.imports())


def test_it_asks_for_no_executable_stack(elf):
    (stack,) = (s for s in elf.elf.iter_segments() if s.header.p_type == "PT_GNU_STACK")
    assert not stack.header.p_flags & 0x1
