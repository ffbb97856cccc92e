# SPDX-License-Identifier: Apache-2.0
"""dlsym and dlvsym, which the preload library exports: nobody may notice, but for the hooks.

Each case is a small C program, run with the library preloaded. `libOpenCL-twin.so` stands in for an
ICD loader: it is one by its name.
"""

import os
import subprocess
from pathlib import Path

import pytest

HOOK, NO_HOOK = "clEnqueueNDRangeKernel", "clGetPlatformIDs"
VERSIONS = "OPENCL_1.0 { global: *; };\n"
# Which object a function is in, by its file's name.
HEADER = """
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void tell(const char *what, void *function) {
    Dl_info info;
    const char *file = function && dladdr(function, &info) ? strrchr(info.dli_fname, '/') + 1 : "none";
    printf("%s=%s\\n", what, file);
}
"""  # noqa: E501
LOADER = f"int {HOOK}(void) {{ return 1; }} int {NO_HOOK}(void) {{ return 2; }}"


class Bench:
    """Compiles and runs in a folder of its own."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder, self.library = folder, library
        self.shared("libOpenCL-twin.so", LOADER)

    def _compile(self, name: str, source: str, *flags: str) -> Path:
        path = self.folder / name
        path.with_suffix(".c").write_text("#define _GNU_SOURCE\n" + source)
        words = ["cc", "-O0", "-o", path, path.with_suffix(".c"), *flags]
        subprocess.run(words, check=True, timeout=60)
        return path

    def shared(self, name: str, source: str, *flags: str) -> Path:
        return self._compile(name, source, "-shared", "-fPIC", *flags)

    def run(self, body: str, *flags: str, preload: tuple[Path, ...] = ()) -> dict[str, str]:
        """Run main(){body}; its `key=value` lines."""
        main = HEADER + "int main(void) {" + body + "return 0; }"
        program = self._compile("program", main, *flags, "-ldl")
        libraries = ":".join(map(str, [self.library, *preload]))
        environment = os.environ | {"LD_PRELOAD": libraries, "LD_LIBRARY_PATH": str(self.folder)}
        words = [program]
        out = subprocess.run(words, env=environment, stdout=-1, text=True, check=True, timeout=60)
        return dict(line.split("=", 1) for line in out.stdout.splitlines())


@pytest.fixture
def bench(tmp_path, library):
    return Bench(tmp_path, library)


OPEN = 'void *h = dlopen("libOpenCL-twin.so", RTLD_NOW | RTLD_LOCAL);'


def test_a_hooked_name_is_a_hook_and_the_others_are_the_loaders_own(bench):
    found = bench.run(f"""{OPEN}
        tell("hooked", dlsym(h, "{HOOK}")); tell("other", dlsym(h, "{NO_HOOK}"));""")
    assert found == {"hooked": "libkrex.so", "other": "libOpenCL-twin.so"}


def test_a_versioned_lookup_finds_the_hook_too(bench):
    bench.folder.joinpath("map").write_text(VERSIONS)
    script = f"-Wl,--version-script={bench.folder / 'map'}"
    bench.shared("libOpenCL-twin.so", LOADER, script)
    found = bench.run(f"""{OPEN}
        tell("right", dlvsym(h, "{HOOK}", "OPENCL_1.0"));
        tell("other", dlvsym(h, "{NO_HOOK}", "OPENCL_1.0"));
        tell("wrong", dlvsym(h, "{HOOK}", "OPENCL_9.9"));""")
    assert found == {"right": "libkrex.so", "other": "libOpenCL-twin.so", "wrong": "none"}


@pytest.mark.parametrize("where", ["RTLD_DEFAULT", "RTLD_NEXT", "dlopen(NULL, RTLD_NOW)"])
def test_lookups_in_the_global_scope(bench, where):
    # GIVEN no loader, a lookup fails, and dlerror says why
    body = f"""tell("hooked", dlsym({where}, "{HOOK}"));
        printf("error=%d\\n", dlerror() != NULL);"""
    assert bench.run(body) == {"hooked": "none", "error": "1"}
    # GIVEN a program that links one
    linked = ("-Wl,--no-as-needed", f"-L{bench.folder}", "-l:libOpenCL-twin.so")
    assert bench.run(body, *linked) == {"hooked": "libkrex.so", "error": "0"}


def test_a_program_that_defines_the_name_itself_keeps_it(bench):
    name = f"int {HOOK}(void) {{ return 7; }}"
    body = f"""{OPEN}
        int (*mine)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "{HOOK}");
        printf("mine=%d\\n", mine());
        tell("next", dlsym(RTLD_NEXT, "{HOOK}"));"""
    main = HEADER + name + "int main(void) {" + body + "return 0; }"
    program = bench._compile("program", main, "-rdynamic", "-ldl")
    environment = os.environ | {"LD_PRELOAD": str(bench.library)}
    environment["LD_LIBRARY_PATH"] = str(bench.folder)
    out = subprocess.run([program], env=environment, stdout=-1, text=True, check=True, timeout=60)
    assert out.stdout.splitlines() == ["mine=7", "next=libkrex.so"]


def test_a_tracer_that_wraps_the_loader_keeps_its_own_function(bench):
    # A library of another name with the same functions: calls through it must go through it.
    bench.shared("libtracer.so", LOADER)
    found = bench.run(f"""void *h = dlopen("libtracer.so", RTLD_NOW);
        tell("hooked", dlsym(h, "{HOOK}"));""")
    assert found == {"hooked": "libtracer.so"}


def test_the_loaders_own_lookups_are_left_alone(bench):
    # An ICD loader fills its tables by dlsym; a hook in them would call itself.
    bench.shared("libOpenCL-inner.so", f"int {HOOK}(void) {{ return 3; }}")
    bench.shared(
        "libOpenCL-twin.so",
        f"""#include <dlfcn.h>
        void *ask(void) {{ return dlsym(dlopen("libOpenCL-inner.so", RTLD_NOW), "{HOOK}"); }}""",
        "-ldl",
    )
    found = bench.run(f"""{OPEN} void *(*ask)(void) = (void *(*)(void))dlsym(h, "ask");
        tell("inside", ask());
        tell("outside", dlsym(dlopen("libOpenCL-inner.so", RTLD_NOW), "{HOOK}"));""")
    assert found == {"inside": "libOpenCL-inner.so", "outside": "libkrex.so"}


def test_rtld_next_is_next_to_its_caller(bench):
    # Another preload that wraps a function: behind a C frame of ours it finds itself, for ever.
    other = bench.shared(
        "other.so",
        """#include <dlfcn.h>
        int getpid(void) {
            int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "getpid");
            int (*versioned)(void) = (int (*)(void))dlvsym(RTLD_NEXT, "getpid", "GLIBC_2.2.5");
            return next == getpid ? -1 : next() == versioned() ? next() : -2; }""",
        "-ldl",
    )
    found = bench.run('printf("same=%d\\n", getpid() == (int)syscall(39));', preload=(other,))
    assert found == {"same": "1"}


def test_rtld_default_sees_the_callers_own_scope(bench):
    bench.shared("libprivate.so", "int only_here(void) { return 1; }")
    bench.shared(
        "libasker.so",
        '#include <dlfcn.h>\nvoid *ask(void) { return dlsym(RTLD_DEFAULT, "only_here"); }',
        "-Wl,--no-as-needed", f"-L{bench.folder}", "-l:libprivate.so", "-ldl",
    )  # fmt: skip
    found = bench.run("""
        void *h = dlopen("libasker.so", RTLD_NOW | RTLD_LOCAL);
        void *(*ask)(void) = (void *(*)(void))dlsym(h, "ask");
        tell("from_the_library", ask());
        tell("from_the_program", dlsym(RTLD_DEFAULT, "only_here"));""")
    assert found == {"from_the_library": "libprivate.so", "from_the_program": "none"}


def test_dlerror_and_errno_are_the_programs_own(bench):
    found = bench.run(f"""{OPEN}
        dlerror(); errno = 99;
        dlsym(h, "{HOOK}");
        printf("errno=%d\\n", errno);
        printf("quiet=%d\\n", dlerror() == NULL);
        dlsym(h, "clEnqueueNothing");
        const char *error = dlerror();
        printf("named=%d\\n", error && strstr(error, "clEnqueueNothing") != NULL);
        dlsym(h, "no_such_thing");
        error = dlerror();
        printf("other=%d\\n", error && strstr(error, "no_such_thing") != NULL);
        printf("once=%d\\n", dlerror() == NULL);""")
    assert found == {"errno": "99", "quiet": "1", "named": "1", "other": "1", "once": "1"}


def test_another_preloads_dlsym_is_still_asked(bench):
    other = bench.shared(
        "other.so",
        """#include <dlfcn.h>
        #include <string.h>
        static int answer(void) { return 42; }
        void *dlsym(void *handle, const char *name) {
            return strcmp(name, "the_answer") ? dlvsym(handle, name, "GLIBC_2.2.5") : (void *)answer; }""",  # noqa: E501
        "-ldl",
    )
    found = bench.run(
        """int (*f)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "the_answer");
        printf("answer=%d\\n", f ? f() : 0);""",
        preload=(other,),
    )
    assert found == {"answer": "42"}


def test_a_caller_is_not_taken_for_the_one_that_was_there_before(bench):
    # A library looks a function up and goes, and the vendor's own one comes to the same address.
    look_up = f"""#include <dlfcn.h>
        void *look_up(void *h) {{ void *f = dlsym(h, "{HOOK}"); return f; }}"""
    for name in ("libcaller.so", "libOpenCL-caller.so"):
        bench.shared(name, look_up)
    found = bench.run(
        f"""{OPEN}
        void *(*look_up[2])(void *), *library[2];
        for (int i = 0; i < 2; i++) {{
            library[i] = dlopen(i ? "libOpenCL-caller.so" : "libcaller.so", RTLD_NOW);
            look_up[i] = (void *(*)(void *))dlsym(library[i], "look_up");
            tell(i ? "vendor" : "program", look_up[i](h));
            tell(i ? "vendor again" : "program again", look_up[i](h));
            dlclose(library[i]);
        }}
        printf("same place=%d\\n", look_up[0] == look_up[1]);"""
    )
    assert found.pop("same place") == "1"
    assert found.pop("program") == found.pop("program again") == "libkrex.so"
    assert set(found.values()) == {"libOpenCL-twin.so"}


@pytest.mark.parametrize("flags", [("address",), ("thread",), ("thread", "-static-libtsan")])
def test_a_sanitizer_that_takes_libc_over_may_run(bench, flags):
    # It looks libc's functions up by dlsym, before anything may be called that it has taken over.
    sanitizer, *more = flags
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASAN_OPTIONS", "verify_asan_link_order=0")  # as krex run sets it
        assert bench.run('printf("ran=1\\n");', f"-fsanitize={sanitizer}", *more) == {"ran": "1"}


DRIVER = """
typedef struct object *object;
static struct object { int no_table; } a_platform, a_device, a_context;
int clGetPlatformIDs(unsigned n, object *p, unsigned *c) { if (p) *p = &a_platform; if (c) *c = 1; return 0; }
int clGetDeviceIDs(object p, unsigned long t, unsigned n, object *d, unsigned *c) {
    if (d) *d = &a_device; if (c) *c = 1; return p == &a_platform ? 0 : -1; }
int clGetDeviceInfo(object d, unsigned what, unsigned long size, void *to, unsigned long *n) {
    return -30; }
object clCreateContext(void *p, unsigned n, object *d, void *f, void *u, int *e) {
    return *d == &a_device ? &a_context : 0; }
object clCreateContextFromType(void *p, unsigned long t, void *f, void *u, int *e) {
    return &a_context; }
int clReleaseContext(object c) { return c == &a_context ? 7 : -1; }
"""  # noqa: E501
CALLS = """
typedef struct object *object;
extern int clGetPlatformIDs(unsigned, object *, unsigned *), clReleaseContext(object);
extern int clGetDeviceIDs(object, unsigned long, unsigned, object *, unsigned *);
extern object clCreateContext(void *, unsigned, object *, void *, void *, int *);
extern object clCreateContextFromType(void *, unsigned long, void *, void *, int *);
object p, d;
clGetPlatformIDs(1, &p, 0); clGetDeviceIDs(p, 4, 1, &d, 0);
printf("by_device=%d\\n", clReleaseContext(clCreateContext(0, 1, &d, 0, 0, 0)));
printf("by_type=%d\\n", clReleaseContext(clCreateContextFromType(0, 4, 0, 0, 0)));
"""


def test_a_driver_that_is_linked_without_a_loader_is_called(bench):
    # Its objects begin with whatever it likes, not with a dispatch table.
    bench.shared("libdriver.so", DRIVER)
    linked = ("-Wl,--no-as-needed", f"-L{bench.folder}", "-l:libdriver.so")
    assert bench.run(CALLS, *linked) == {"by_device": "7", "by_type": "7"}
