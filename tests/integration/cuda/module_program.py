# SPDX-License-Identifier: Apache-2.0
"""Modules, libraries, and the kernels that compute, one behaviour a scenario (see cu.py)."""

import ctypes
import os
import tempfile
import threading
from pathlib import Path

from cu import (
    FILE_NOT_FOUND,
    ILLEGAL_ADDRESS,
    INVALID_HANDLE,
    INVALID_IMAGE,
    INVALID_PTX,
    INVALID_VALUE,
    NOT_FOUND,
    OK,
    PTX,
    Address,
    Float,
    Floats,
    Handle,
    Size,
    cu,
    function,
    get,
    launch,
    main,
    module,
    ok,
    scenario,
)

DATA = Path(__file__).resolve().parents[2] / "unit" / "data" / "sim"
MAX_THREADS, SHARED, MAX_DYNAMIC = 0, 1, 8
EAGER, LAZY = 1, 2
No = None


def library(image=PTX):
    return get("cuLibraryLoadData", image, No, No, 0, No, No, 0)


def is_loaded(f):
    return get("cuFuncIsLoaded", f, kind=ctypes.c_int).value


def attribute(f, number):
    return get("cuFuncGetAttribute", number, f, kind=ctypes.c_int).value


def load(image):
    return cu.cuModuleLoadData(ctypes.byref(Handle()), image)


@scenario
def images_of_each_kind():
    for name in ("kernels.sm_90.cubin", "kernels.ptx", "none.fatbin", "speed.fatbin"):
        loaded = get("cuModuleLoad", str(DATA / name).encode())
        f = function(loaded, "tiled")
        assert attribute(f, MAX_THREADS) == 128
        assert attribute(f, SHARED) >= 1024
        assert get("cuModuleGetFunctionCount", loaded, kind=ctypes.c_uint).value == 2
        ok(cu.cuModuleUnload(loaded))
        assert cu.cuModuleUnload(loaded) == INVALID_HANDLE


@scenario
def what_is_no_image():
    assert load(b"\x7fELF" + bytes(100)) == INVALID_IMAGE
    assert load(b"not code") == INVALID_IMAGE
    assert load(b".version 8.0 .entry (") == INVALID_PTX
    assert cu.cuModuleLoad(ctypes.byref(Handle()), b"/nowhere") == FILE_NOT_FOUND
    with tempfile.NamedTemporaryFile() as empty:
        assert cu.cuModuleLoad(ctypes.byref(Handle()), empty.name.encode()) == INVALID_IMAGE


@scenario
def what_a_module_lacks():
    loaded = module()
    assert cu.cuModuleGetFunction(ctypes.byref(Handle()), loaded, b"none") == NOT_FOUND
    assert cu.cuModuleGetGlobal_v2(ctypes.byref(Address()), No, loaded, b"none") == NOT_FOUND


@scenario
def variables_are_in_memory():
    loaded = get("cuModuleLoad", str(DATA / "kernels.sm_90.cubin").encode())
    address, size, read = Address(), Size(), ctypes.c_int()
    ok(cu.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), loaded, b"counter"))
    assert size.value == 4
    ok(cu.cuMemcpyDtoH_v2(ctypes.byref(read), address, size))
    assert read.value == 7
    ok(cu.cuMemsetD32_v2(address, 9, Size(1)))
    ok(cu.cuMemcpyDtoH_v2(ctypes.byref(read), address, size))
    assert read.value == 9
    # AND they are the module's: nobody else may free them
    assert cu.cuMemFree_v2(address) == INVALID_VALUE
    ok(cu.cuModuleUnload(loaded))
    assert cu.cuMemcpyDtoH_v2(ctypes.byref(read), address, size) != OK


@scenario
def a_kernel_is_loaded_when_it_is_launched_first():
    loaded = module()
    nothing, other = function(loaded, "nothing"), function(loaded, "krex_copy_f32")
    assert get("cuModuleGetLoadingMode", kind=ctypes.c_int).value == LAZY
    assert not is_loaded(nothing)
    ok(launch(nothing, No))
    assert is_loaded(nothing)
    assert not is_loaded(other)
    ok(cu.cuFuncLoad(other))
    assert is_loaded(other)


@scenario
def loading_waits_for_what_runs():
    # GIVEN a kernel that waits for a flag WHEN another one is launched for the first time
    flag = get("cuMemAllocHost_v2", Size(4), kind=ctypes.POINTER(ctypes.c_int))
    flag[0] = 0
    loaded = module()
    wait, nothing = function(loaded, "krex_wait_flag"), function(loaded, "nothing")
    ok(launch(wait, No, Address(ctypes.addressof(flag.contents))))
    context, order = get("cuCtxGetCurrent"), []

    def run():
        ok(cu.cuCtxSetCurrent(context))
        ok(launch(nothing, No))
        order.append("launched")

    second = threading.Thread(target=run, daemon=True)
    second.start()
    for _ in range(1000):
        assert not is_loaded(nothing)
    # THEN the launch returns when the first has ended
    order.append("flag")
    flag[0] = 1
    second.join()
    assert order == ["flag", "launched"]
    assert is_loaded(nothing)


@scenario
def all_are_loaded_at_once_if_that_is_wished():
    os.environ["CUDA_MODULE_LOADING"] = "EAGER"
    assert get("cuModuleGetLoadingMode", kind=ctypes.c_int).value == EAGER
    assert is_loaded(function(module(), "nothing"))


@scenario
def parameters_are_told():
    f = function(module(), "krex_axpy_f32")
    told = []
    for i in range(5):
        at, size = Size(), Size()
        if cu.cuFuncGetParamInfo(f, Size(i), ctypes.byref(at), ctypes.byref(size)) == OK:
            told.append((at.value, size.value))
    assert told == [(0, 4), (4, 4), (8, 8), (16, 8)]
    assert get("cuFuncGetName", f, kind=ctypes.c_char_p).value == b"krex_axpy_f32"


@scenario
def a_library_comes_into_a_context_when_it_is_used():
    code, x = library(), Floats(1, 2)
    kernel = get("cuLibraryGetKernel", code, b"krex_scale_f32")
    assert get("cuLibraryGetKernelCount", code, kind=ctypes.c_uint).value == PTX.count(b".entry")
    # WHEN the kernel is launched as a function THEN it runs in the current context
    ok(launch(kernel, No, x.at, Float(3), x.count))
    assert x.read() == [3, 6]
    f = get("cuKernelGetFunction", kernel)
    assert is_loaded(f)
    assert get("cuFuncGetModule", f).value == get("cuLibraryGetModule", code).value
    # AND in another one it is another function
    get("cuCtxCreate_v2", 0, 0)
    assert get("cuKernelGetFunction", kernel).value != f.value
    assert launch(f, No, x.at, Float(3), x.count) == INVALID_HANDLE
    ok(cu.cuLibraryUnload(code))
    assert launch(kernel, No, x.at, Float(3), x.count) == INVALID_HANDLE


@scenario
def what_is_set_for_a_kernel_holds_in_each_context():
    code = library()
    kernel = get("cuLibraryGetKernel", code, b"nothing")
    before = get("cuKernelGetFunction", kernel)
    ok(cu.cuKernelSetAttribute(MAX_DYNAMIC, 100_000, kernel, 0))
    get("cuCtxCreate_v2", 0, 0)
    after = get("cuKernelGetFunction", kernel)
    assert attribute(before, MAX_DYNAMIC) == attribute(after, MAX_DYNAMIC) == 100_000
    assert cu.cuFuncSetAttribute(after, MAX_DYNAMIC, 1 << 20) == INVALID_VALUE
    assert cu.cuFuncSetAttribute(after, MAX_THREADS, 1) == INVALID_VALUE


@scenario
def a_module_may_go_while_its_kernel_is_at_work():
    # GIVEN a launch that waits for a flag, and one behind it that computes
    flag = get("cuMemAllocHost_v2", Size(4), kind=ctypes.POINTER(ctypes.c_int))
    flag[0] = 0
    loaded, x = module(), Floats(1)
    at = Address(ctypes.addressof(flag.contents))
    wait, scale = function(loaded, "krex_wait_flag"), function(loaded, "krex_scale_f32")
    ok(cu.cuFuncLoad(scale))  # to load it later would wait for the first launch
    ok(launch(wait, No, at))
    ok(launch(scale, No, x.at, Float(2), x.count))
    # WHEN the module goes THEN both do what they were given
    ok(cu.cuModuleUnload(loaded))
    flag[0] = 1
    assert x.read() == [2]


@scenario
def the_kernels_that_compute():
    loaded = module()

    def compute(name, *arguments):
        ok(launch(function(loaded, name), No, *arguments))

    x, y, to = Floats(1, 2, 3, 4), Floats(10, 20, 30, 40), Floats(0, 0, 0, 0)
    compute("krex_copy_f32", to.at, x.at, x.count)
    assert to.read() == [1, 2, 3, 4]
    compute("krex_axpy_f32", x.count, Float(2), x.at, y.at)
    assert y.read() == [12, 24, 36, 48]
    compute("krex_add_f32", x.at, y.at, to.at, x.count)
    assert to.read() == [13, 26, 39, 52]
    compute("krex_fill_f32", to.at, Float(0.5), ctypes.c_int(3))
    assert to.read() == [0.5, 0.5, 0.5, 52]
    compute("krex_sum_f32", x.at, to.at, x.count)
    assert to.read()[0] == 10
    two, three, six = ctypes.c_int(2), ctypes.c_int(3), Floats(1, 2, 3, 4, 5, 6)
    turned, product = Floats(*[0] * 6), Floats(*[0] * 4)
    compute("krex_transpose_f32", turned.at, six.at, two, three)
    assert turned.read() == [1, 4, 2, 5, 3, 6]
    compute("krex_gemm_f32", six.at, turned.at, product.at, two, two, three)
    assert product.read() == [14, 32, 32, 77]


@scenario
def names_are_found_inside_names():
    # GIVEN a kernel as a C++ compiler, and one as Triton writes it, with two addresses more
    loaded = module(
        b".version 8.0 .target sm_90 .address_size 64\n"
        b".entry _ZN5bench14krex_scale_f32EPffi(.param .u64 a, .param .f32 b, .param .u32 c) {ret;}"
        b".entry krex_scale_f32_0d1d(.param .u64 a, .param .f32 b, .param .u32 c, .param .u64 d,"
        b" .param .u64 e) {ret;}"
        b".entry krex_scale_f32(.param .u64 a, .param .f64 b, .param .u32 c) {ret;}"
    )
    x = Floats(1)
    ok(launch(function(loaded, "_ZN5bench14krex_scale_f32EPffi"), No, x.at, Float(2), x.count))
    more = (Address(0), Address(0))
    ok(launch(function(loaded, "krex_scale_f32_0d1d"), No, x.at, Float(2), x.count, *more))
    assert x.read() == [4]
    # AND one whose parameters are others only takes time
    wide = ctypes.c_double(2)
    ok(launch(function(loaded, "krex_scale_f32"), No, x.at, wide, x.count))
    assert x.read() == [4]


@scenario
def arrays_as_numba_passes_them():
    parameters = ", ".join(f".param .u64 p{i}" for i in range(14))
    loaded = module(
        b".version 8.0 .target sm_90 .address_size 64\n"
        b".entry _Z13krex_axpy_f32d5Array(.param .f64 a, " + parameters.encode() + b") { ret; }"
    )
    x, y = Floats(1, 2), Floats(5, 5)

    def array(of):
        return [Address(v) for v in (0, 0, 2, 4, of.at.value, 2, 4)]

    f = function(loaded, "_Z13krex_axpy_f32d5Array")
    ok(launch(f, No, ctypes.c_double(3), *array(x), *array(y)))
    assert y.read() == [8, 11]


@scenario
def an_address_that_is_none():
    # GIVEN one element more than there is memory for, at the end of what one allocation has
    scale, x = function(module(), "krex_scale_f32"), Floats(1)
    ok(launch(scale, No, x.at, Float(2), ctypes.c_int(1 << 30)))
    assert cu.cuCtxSynchronize() == ILLEGAL_ADDRESS
    # THEN the context is of no more use, and another one is
    assert load(PTX) == ILLEGAL_ADDRESS
    get("cuCtxCreate_v2", 0, 0)
    ok(load(PTX))


@scenario
def what_was_linked_can_be_loaded():
    # GIVEN PTX with kernels, and a part without
    state, image, size = Handle(), Handle(), Size()
    ok(cu.cuLinkCreate_v2(0, No, No, ctypes.byref(state)))
    part = b".version 8.0 .target sm_90 .global .u32 a;"
    for text in (PTX, part):
        ok(cu.cuLinkAddData_v2(state, 1, text, Size(len(text)), b"name", 0, No, No))
    assert cu.cuLinkAddData_v2(state, 1, b"none", Size(4), b"name", 0, No, No) == INVALID_IMAGE
    ok(cu.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size)))
    # THEN what comes out has the kernels
    loaded = get("cuModuleLoadData", image)
    ok(cu.cuLinkDestroy(state))
    ok(launch(function(loaded, "nothing"), No))


@scenario
def packed_parameters():
    x = Floats(1)
    scale = function(module(), "krex_scale_f32")
    packed = ctypes.create_string_buffer(bytes(x.at) + bytes(Float(4)) + bytes(x.count))
    size = Size(16)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
    ok(cu.cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, No, No, extra))
    assert x.read() == [4]


if __name__ == "__main__":
    main()
