# SPDX-License-Identifier: Apache-2.0
"""Write api.def, the list of every OpenCL function and what the shim does with it.

    python shim/opencl/gen_api.py [--include DIR] [--check]

The headers say what a function looks like; the tables below say what it does to a device. Each
function in the headers has to fall under one of them, or nothing is written: a newer header asks
for a decision, it doesn't get a default. api.def is committed because the machine that builds the
shim needs no OpenCL headers. Exit status: 1 stale (--check) or undecided, 2 no headers.
"""

import argparse
import difflib
import re
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "api.def"

# The release these tables were last gone through with (Debian: opencl-headers 3.0~2023.02.06).
HEADERS_RELEASE = "v2023.02.06"
# The VA-API header is here for its submissions: Linux programs use it, and no loader exports it.
HEADERS = ("cl.h", "cl_gl.h", "cl_egl.h", "cl_ext.h", "cl_va_api_media_sharing_intel.h")

# What each kind means. Those in HOOKED get an interposed function; the rest only keep their place.
KINDS = {
    "ENQUEUE": "submission: queue first; num_events, wait_list, event last; returns at once",
    "ENQUEUE_BLOCKING": "the same with a parameter `blocking`",
    "MAP_BLOCKING": "the same with `blocking`, returns a pointer, errcode_ret after event",
    "SUBMIT_HAND": "submission that orders others or lets them start; written by hand",
    "HEAVY": "allocates or frees device memory",
    "HEAVY_HAND": "makes or destroys a context or a queue; written by hand",
    "TRACK_HAND": "not gated, but the shim has to know; written by hand",
    "RESOLVE_HAND": "hands out function addresses; written by hand",
    "NEVER": "waits and queries: must never be gated, not hooked",
    "PASS": "can't touch the device (compile, reflect, retain, set): not hooked",
    "EXT_HAND": "extension, by address only, that has a hook all the same; written by hand",
    "EXT_SUBMIT": "extension that reaches the device past the hooks: asking for it is recorded",
}
HOOKED = tuple(KINDS)[:8]

# Functions by name. These are looked at first.
EXPLICIT = {
    "ENQUEUE_BLOCKING": """
        clEnqueueReadBuffer clEnqueueReadBufferRect clEnqueueReadImage
        clEnqueueWriteBuffer clEnqueueWriteBufferRect clEnqueueWriteImage
        clEnqueueSVMMemcpy clEnqueueSVMMap""",
    "MAP_BLOCKING": "clEnqueueMapBuffer clEnqueueMapImage",
    "SUBMIT_HAND": """
        clEnqueueMarker clEnqueueBarrier clEnqueueWaitForEvents
        clEnqueueMarkerWithWaitList clEnqueueBarrierWithWaitList clSetUserEventStatus""",
    "HEAVY": """
        clCreateBuffer clCreateBufferWithProperties
        clCreateImage clCreateImage2D clCreateImage3D clCreateImageWithProperties
        clCreatePipe clSVMAlloc clSVMFree clReleaseMemObject
        clCreateFromGLBuffer clCreateFromGLRenderbuffer clCreateFromGLTexture
        clCreateFromGLTexture2D clCreateFromGLTexture3D clCreateFromEGLImageKHR""",
    "HEAVY_HAND": """
        clCreateContext clCreateContextFromType clReleaseContext
        clCreateCommandQueue clCreateCommandQueueWithProperties clReleaseCommandQueue""",
    "TRACK_HAND": """
        clRetainCommandQueue clCreateUserEvent
        clGetEventProfilingInfo clFinish clWaitForEvents""",
    "RESOLVE_HAND": "clGetExtensionFunctionAddress clGetExtensionFunctionAddressForPlatform",
    "NEVER": "clFlush",
    # clCreateSubBuffer is a view of memory that is there already.
    "PASS": """
        clCreateSubBuffer clCreateSubDevices clCreateSubDevicesEXT
        clCreateEventFromGLsyncKHR clCreateEventFromEGLSyncKHR
        clCreateSampler clCreateSamplerWithProperties
        clCreateProgramWithSource clCreateProgramWithBinary clCreateProgramWithIL
        clCreateProgramWithILKHR clCreateProgramWithBuiltInKernels
        clBuildProgram clCompileProgram clLinkProgram clUnloadCompiler clUnloadPlatformCompiler
        clCreateKernel clCreateKernelsInProgram clCloneKernel
        clReleaseDevice clReleaseDeviceEXT clReleaseEvent clReleaseKernel clReleaseProgram
        clReleaseSampler
        clSetCommandQueueProperty clSetDefaultDeviceCommandQueue
        clSetContextDestructorCallback clSetEventCallback clSetMemObjectDestructorCallback
        clSetProgramReleaseCallback clSetProgramSpecializationConstant
        clSetKernelArg clSetKernelArgSVMPointer clSetKernelExecInfo
        clSetKernelArgMemPointerINTEL clSetKernelArgSVMPointerARM clSetKernelExecInfoARM
        clSetMemObjectDestructorAPPLE clIcdGetPlatformIDsKHR
        clLogMessagesToSystemLogAPPLE clLogMessagesToStdoutAPPLE clLogMessagesToStderrAPPLE
        clCreateCommandBufferKHR clFinalizeCommandBufferKHR clReleaseCommandBufferKHR
        clUpdateMutableCommandsKHR clCreateSemaphoreWithPropertiesKHR clReleaseSemaphoreKHR
        clCreateAcceleratorINTEL clReleaseAcceleratorINTEL""",
    # What it makes has to be drained.
    "EXT_HAND": "clCreateCommandQueueWithPropertiesKHR",
    # Not enqueues, but heavy all the same.
    "EXT_SUBMIT": """
        clTerminateContextKHR
        clCreateBufferWithPropertiesINTEL clCreateFromVA_APIMediaSurfaceINTEL
        clHostMemAllocINTEL clDeviceMemAllocINTEL clSharedMemAllocINTEL
        clMemFreeINTEL clMemBlockingFreeINTEL clSVMAllocARM clSVMFreeARM clImportMemoryARM""",
}

# Then by name pattern, first match wins: (kind, in the dispatch table?, pattern). None is either.
RULES = (
    ("ENQUEUE", True, r"clEnqueue\w+"),
    ("EXT_SUBMIT", False, r"clEnqueue\w+"),
    ("NEVER", None, r"clGet\w+"),
    ("PASS", None, r"clRetain\w+"),
    ("PASS", False, r"clCommand\w+KHR"),  # only recorded; the enqueue of the buffer submits
)

# The parameter that leads to the dispatch table is the first one, if that is a handle. Otherwise:
OBJECTS = {"clCreateContext": "devices[0]", "clWaitForEvents": "event_list[0]"}
HANDLES = {"cl_platform_id", "cl_device_id", "cl_context", "cl_command_queue", "cl_mem"}
HANDLES |= {"cl_program", "cl_kernel", "cl_event", "cl_sampler"}

# Callback parameters, by their parameter types, and their names in types.h.
CALLBACKS = {
    "const char *, const void *, size_t, void *": "krex_cl_context_notify",
    "cl_context, void *": "krex_cl_context_destroyed",
    "cl_mem, void *": "krex_cl_mem_destroyed",
    "cl_program, void *": "krex_cl_program_notify",
    "cl_event, cl_int, void *": "krex_cl_event_notify",
    "cl_command_queue, cl_uint, void **, void *": "krex_cl_svm_free",
    "void *": "krex_cl_native_kernel",
}

RENAMED = {
    "command_queue": "queue",
    "num_events_in_wait_list": "num_events",
    "event_wait_list": "wait_list",
}
TRIO = ("num_events", "wait_list", "event")

BANNER = """\
// clang-format off
// SPDX-License-Identifier: Apache-2.0
// Generated by `python shim/opencl/gen_api.py`; do not edit.
// From OpenCL-Headers {release} ({version}).
//
// KREX_CL_API(kind, ret, name, dispatch_index, object, (params), (args))
//
// object is the parameter whose first word is the ICD dispatch table, 0 if there is none.
// Kinds:
{kinds}
"""
CORE_TITLE = "// What a loader exports, in the order of the ICD dispatch table."
EXTENSION_TITLE = (
    "// Extensions, fetched by address only: no dispatch index, and no prototype is given."
)


class Param(NamedTuple):
    type: str
    name: str


class Function(NamedTuple):
    ret: str
    name: str
    params: tuple[Param, ...]


class Entry(NamedTuple):
    kind: str
    index: int
    function: Function


class HeaderError(Exception):
    """The headers say something that the tables above have no answer to."""


def strip_noise(text: str) -> str:
    """Drop comments and preprocessor lines: what is left is declarations."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def spell(text: str) -> str:
    """One spelling for a type: `const void*`, `const  void *` are both `const void *`."""
    text = re.sub(r"\s*\*\s*", " * ", text)
    text = re.sub(r"\s+", " ", text).strip()
    return text.replace("* *", "**")


def split_params(text: str) -> list[str]:
    """Split at the commas that aren't inside a callback's own parameter list."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def parse_param(text: str) -> Param:
    callback = re.fullmatch(r"void\s*\(\s*CL_CALLBACK\s*\*\s*(\w+)\s*\)\s*\((.*)\)", text, re.S)
    if callback:
        types = ", ".join(parse_param(part).type for part in split_params(callback[2]))
        if types not in CALLBACKS:
            raise HeaderError(f"no typedef in CALLBACKS for a callback taking ({types})")
        return Param(CALLBACKS[types], RENAMED.get(callback[1], callback[1]))
    array = re.fullmatch(r"(.*?)(\w+)\s*\[\s*\d*\s*\]", text, re.S)
    if array:
        return Param(spell(array[1] + "*"), array[2])
    named = re.fullmatch(r"(.*[\s*])(\w+)", text, re.S)
    if not named:
        return Param(spell(text), "")
    return Param(spell(named[1]), RENAMED.get(named[2], named[2]))


def closing(text: str, start: int) -> int:
    """Index of the parenthesis that closes the one at start."""
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return index
    raise HeaderError("unbalanced parentheses in " + text[start : start + 80])


DECLARATION = re.compile(
    r"\bCL_API_ENTRY\s+(?:CL_\w+_PREFIX__\w+\s+|CL_API_PREFIX__\w+\s+)?"
    r"(?P<ret>[\w\s*]+?)\s*\bCL_API_CALL\s+(?P<name>\w+)\s*(?P<open>\()"
)


def parse_functions(text: str) -> dict[str, Function]:
    text = strip_noise(text)
    functions: dict[str, Function] = {}
    for match in DECLARATION.finditer(text):
        inside = text[match.end() : closing(text, match.start("open"))].strip()
        params = () if inside == "void" else tuple(map(parse_param, split_params(inside)))
        function = Function(spell(match["ret"]), match["name"], params)
        if functions.setdefault(function.name, function) != function:
            raise HeaderError(f"{function.name} is declared twice, differently")
    if len(functions) != len({*re.findall(r"CL_API_CALL\s+(cl\w+)\s*\(", text)}):
        raise HeaderError("a declaration that DECLARATION doesn't understand")
    return functions


def parse_dispatch(text: str) -> dict[str, int]:
    """The position of each function in cl_icd.h's dispatch table."""
    table = re.search(r"struct\s+_cl_icd_dispatch\s*\{(.*?)\}", strip_noise(text), re.S)
    if not table:
        raise HeaderError("cl_icd.h has no struct _cl_icd_dispatch")
    members = [member.split() for member in table[1].split(";") if member.strip()]
    for words in members:
        if len(words) != 2 or words[0] != "cl_api_" + words[1]:
            raise HeaderError("unexpected member of the dispatch table: " + " ".join(words))
    return {name: index for index, (_, name) in enumerate(members)}


def classify(name: str, in_dispatch: bool) -> str | None:
    for kind, names in EXPLICIT.items():
        if name in names.split():
            return kind
    for kind, where, pattern in RULES:
        if where in (None, in_dispatch) and re.fullmatch(pattern, name):
            return kind
    return None


def rename_blocking(function: Function) -> Function:
    params = tuple(
        Param(p.type, "blocking" if p.name.startswith("blocking_") else p.name)
        for p in function.params
    )
    return function._replace(params=params)


def check_shape(entry: Entry) -> None:
    """A hook's body is made from its kind alone, so the kind must be true of the parameters."""
    kind, function = entry.kind, entry.function
    names = tuple(p.name for p in function.params)
    tail = {"ENQUEUE": TRIO, "ENQUEUE_BLOCKING": TRIO, "MAP_BLOCKING": (*TRIO, "errcode_ret")}
    right = True
    if kind in tail:
        right = names[0] == "queue" and function.params[0].type == "cl_command_queue"
        right = right and ("blocking" in names) == kind.endswith("BLOCKING")
        right = right and (function.ret == "void *") == (kind == "MAP_BLOCKING")
        right = right and names[-len(tail[kind]) :] == tail[kind]
    if kind in HOOKED and (entry.index < 0 or not all(names)):
        right = False
    if not right:
        raise HeaderError(f"{function.name}({', '.join(names)}) can't be {kind}")


def entries(functions: dict[str, Function], dispatch: dict[str, int]) -> list[Entry]:
    found, undecided = [], []
    for name, function in functions.items():
        kind = classify(name, name in dispatch)
        if kind is None:
            undecided.append(name)
            continue
        found.append(Entry(kind, dispatch.get(name, -1), rename_blocking(function)))
    if undecided:
        raise HeaderError("no kind in EXPLICIT or RULES for: " + " ".join(undecided))
    gone = {name for names in EXPLICIT.values() for name in names.split()} - functions.keys()
    if gone:
        raise HeaderError("in EXPLICIT but not in the headers: " + " ".join(sorted(gone)))
    for entry in found:
        check_shape(entry)
    return found


def object_of(function: Function) -> str:
    if function.name in OBJECTS:
        return OBJECTS[function.name]
    first = function.params[0] if function.params else Param("void", "")
    return first.name if first.type in HANDLES else "0"


def declare(param: Param) -> str:
    return param.type + ("" if param.type.endswith("*") else " ") + param.name


def line(entry: Entry) -> str:
    kind, index, function = entry
    if index < 0:
        return f"KREX_CL_API({kind}, void, {function.name}, -1, 0, (), ())"
    params = ", ".join(map(declare, function.params)) or "void"
    args = ", ".join(p.name for p in function.params)
    head = f"{kind}, {function.ret}, {function.name}, {index}, {object_of(function)}"
    return f"KREX_CL_API({head}, ({params}), ({args}))"


def render(found: list[Entry], version: str) -> str:
    core = sorted((e for e in found if e.index >= 0), key=lambda e: e.index)
    extensions = sorted((e for e in found if e.index < 0), key=lambda e: e.function.name)
    kinds = "\n".join(f"//   {kind:<17} {meaning}" for kind, meaning in KINDS.items())
    parts = [BANNER.format(release=HEADERS_RELEASE, version=version, kinds=kinds)]
    parts += [CORE_TITLE, *map(line, core), "", EXTENSION_TITLE, *map(line, extensions)]
    return "\n".join(parts) + "\n"


def generate(include: Path) -> str:
    """The text of api.def for the headers in include (the folder that holds CL/)."""

    def read(name: str) -> str:
        return (include / "CL" / name).read_text(encoding="utf-8")

    functions = parse_functions("\n".join(map(read, HEADERS)))
    versions = re.findall(r"define (CL_VERSION_\d_\d)", read("cl_version.h"))
    return render(entries(functions, parse_dispatch(read("cl_icd.h"))), max(versions))


def fail(status: int, message: str) -> NoReturn:
    print(f"gen_api: {message}", file=sys.stderr)
    sys.exit(status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--include",
        type=Path,
        default=Path("/usr/include"),
        metavar="DIR",
        help="the folder that holds CL/ (default: %(default)s)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; print a diff and exit 1 if api.def is stale",
    )
    options = parser.parse_args()
    try:
        new = generate(options.include)
    except FileNotFoundError as error:
        fail(2, f"no {error.filename}; install OpenCL-Headers {HEADERS_RELEASE} or pass --include")
    except HeaderError as error:
        fail(1, str(error))
    old = OUTPUT.read_text(encoding="utf-8") if OUTPUT.exists() else ""
    if not options.check:
        OUTPUT.write_text(new, encoding="utf-8")
    elif old != new:
        sys.stdout.writelines(
            difflib.unified_diff(
                old.splitlines(keepends=True), new.splitlines(keepends=True), "api.def", "generated"
            )
        )
        fail(1, "api.def is stale; run python shim/opencl/gen_api.py")


if __name__ == "__main__":
    main()
