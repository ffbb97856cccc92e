# SPDX-License-Identifier: Apache-2.0
"""Memory, copies, fills, green contexts: one behaviour a scenario (see cu.py)."""

import ctypes
from ctypes import byref

from cu import INVALID_VALUE, OK, Address, Handle, Size, cu, get, main, ok, scenario, stream

ALREADY_REGISTERED, NOT_REGISTERED = 712, 713
CONTEXT, MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER = 1, 2, 3, 4
IS_MANAGED, ORDINAL, RANGE_START, RANGE_SIZE = 8, 9, 11, 12
HOST, DEVICE = 1, 2
SM, SM_COUNT_AT, RESOURCE_BYTES = 1, 96, 144
Int = ctypes.c_int


class End(ctypes.Structure):
    _fields_ = (
        ("x", Size),
        ("y", Size),
        ("type", ctypes.c_uint),
        ("host", Handle),
        ("device", Address),
        ("array", Handle),
        ("pitch", Size),
    )


class Copy2D(ctypes.Structure):
    _fields_ = (("src", End), ("dst", End), ("width", Size), ("height", Size))


def allocate(size: int) -> Address:
    return get("cuMemAlloc_v2", Size(size), kind=Address)


def free_bytes() -> int:
    free, every = Size(), Size()
    ok(cu.cuMemGetInfo_v2(byref(free), byref(every)))
    return free.value


def read(address: Address, size: int) -> bytes:
    to = ctypes.create_string_buffer(size)
    ok(cu.cuMemcpyDtoH_v2(to, address, Size(size)))
    return to.raw


def attribute(number: int, address: int, kind: type = ctypes.c_uint64) -> int:
    value = kind()
    ok(cu.cuPointerGetAttribute(byref(value), number, Address(address)))
    return value.value


@scenario
def what_a_stream_frees_is_free_once_it_got_there():
    on, before, address = stream(), free_bytes(), Address()
    ok(cu.cuMemAllocAsync(byref(address), Size(1 << 20), on))
    ok(cu.cuMemsetD8Async(address, 7, Size(1 << 20), on))
    assert read(address, 4) == bytes([7] * 4)
    assert free_bytes() == before - (1 << 20)
    ok(cu.cuMemFreeAsync(address, on))
    assert cu.cuMemFreeAsync(address, on) == INVALID_VALUE
    ok(cu.cuStreamSynchronize(on))
    assert free_bytes() == before
    pool, used = get("cuDeviceGetDefaultMemPool", 0), ctypes.c_uint64(1)
    ok(cu.cuMemPoolGetAttribute(pool, 7, byref(used)))
    assert used.value == 0


@scenario
def what_is_known_about_addresses():
    context = get("cuCtxGetCurrent")
    inside = allocate(1000).value + 10
    assert attribute(CONTEXT, inside) == context.value
    assert attribute(MEMORY_TYPE, inside, Int) == DEVICE
    assert attribute(DEVICE_POINTER, inside) == inside
    assert attribute(ORDINAL, inside, Int) == 0
    assert attribute(RANGE_START, inside) == inside - 10
    assert attribute(RANGE_SIZE, inside) == 1000
    value = ctypes.c_uint64()
    assert cu.cuPointerGetAttribute(byref(value), HOST_POINTER, Address(inside)) == INVALID_VALUE
    pinned = get("cuMemAllocHost_v2", Size(100)).value
    assert attribute(MEMORY_TYPE, pinned, Int) == HOST
    assert attribute(HOST_POINTER, pinned) == pinned
    managed = get("cuMemAllocManaged", Size(100), 1, kind=Address).value
    assert attribute(IS_MANAGED, managed, ctypes.c_bool)
    nobody = ctypes.addressof(ctypes.create_string_buffer(8))
    assert cu.cuPointerGetAttribute(byref(value), CONTEXT, Address(nobody)) == INVALID_VALUE


@scenario
def host_memory_is_registered_once():
    buffer = ctypes.create_string_buffer(8192)
    assert cu.cuMemHostUnregister(buffer) == NOT_REGISTERED
    ok(cu.cuMemHostRegister_v2(buffer, Size(8192), 0))
    assert cu.cuMemHostRegister_v2(buffer, Size(8192), 0) == ALREADY_REGISTERED
    device = get("cuMemHostGetDevicePointer_v2", buffer, 0, kind=Address)
    ok(cu.cuMemsetD8_v2(device, 5, Size(8192)))
    ok(cu.cuCtxSynchronize())
    assert buffer.raw == bytes([5] * 8192)
    ok(cu.cuMemHostUnregister(buffer))
    assert cu.cuMemsetD8_v2(device, 5, Size(8192)) == INVALID_VALUE


@scenario
def rows_are_copied_from_pitch_to_pitch():
    pitch = Size()
    address = Address()
    ok(cu.cuMemAllocPitch_v2(byref(address), byref(pitch), Size(10), Size(4), 4))
    assert pitch.value >= 10
    source = ctypes.create_string_buffer(bytes(range(60)), 60)  # rows of 15
    copy = Copy2D(width=10, height=3)
    copy.src = End(x=2, y=1, type=HOST, host=ctypes.addressof(source), pitch=15)
    copy.dst = End(type=DEVICE, device=address.value, pitch=pitch.value)
    ok(cu.cuMemcpy2D_v2(byref(copy)))
    for row in range(3):
        begin = 15 * (row + 1) + 2
        got = read(Address(address.value + row * pitch.value), 10)
        assert got == bytes(range(begin, begin + 10))
    copy.src.pitch = 9  # narrower than what is copied
    assert cu.cuMemcpy2D_v2(byref(copy)) == INVALID_VALUE


@scenario
def fills_of_all_widths():
    address = allocate(64)
    ok(cu.cuMemsetD8_v2(address, 0x11, Size(64)))
    ok(cu.cuMemsetD16_v2(address, 0x2233, Size(4)))
    ok(cu.cuMemsetD32_v2(Address(address.value + 8), 0x44556677, Size(2)))
    ok(cu.cuMemsetD2D8_v2(Address(address.value + 32), Size(16), 0x99, Size(2), Size(2)))
    expected = b"\x33\x22" * 4 + b"\x77\x66\x55\x44" * 2 + b"\x11" * 16
    expected += (b"\x99" * 2 + b"\x11" * 14) * 2
    assert read(address, 64) == expected
    assert cu.cuMemsetD32_v2(Address(address.value + 2), 0, Size(1)) == INVALID_VALUE
    assert cu.cuMemsetD8_v2(address, 0, Size(1 << 20)) == INVALID_VALUE


@scenario
def a_large_buffer_that_is_cleared_takes_no_memory():
    size = 8 << 30  # more than a test may have of this machine
    address = allocate(size)
    ok(cu.cuMemsetD8_v2(address, 1, Size(1 << 20)))
    ok(cu.cuMemsetD8_v2(address, 0, Size(size)))
    ok(cu.cuMemsetD8_v2(Address(address.value + size - 1), 3, Size(1)))
    assert read(address, 4096) == bytes(4096)
    assert read(Address(address.value + size - 2), 2) == b"\0\3"


@scenario
def memory_of_a_context_goes_with_it():
    before, other = free_bytes(), get("cuCtxCreate_v2", 0, 0)
    allocate(1 << 20)
    ok(cu.cuCtxDestroy_v2(other))
    assert free_bytes() == before


@scenario
def a_green_context_is_waited_for_with_the_primary_one():
    resource = (ctypes.c_char * RESOURCE_BYTES)()
    ok(cu.cuDeviceGetDevResource(0, resource, SM))
    assert int.from_bytes(resource.raw[SM_COUNT_AT : SM_COUNT_AT + 4], "little") > 0
    group, groups = (ctypes.c_char * RESOURCE_BYTES)(), ctypes.c_uint(1)
    ok(cu.cuDevSmResourceSplitByCount(group, byref(groups), resource, None, 0, 8))
    assert groups.value == 1
    green = get("cuGreenCtxCreate", get("cuDevResourceGenerateDesc", group, 1), 0, 1)
    primary = get("cuDevicePrimaryCtxRetain", 0)
    ok(cu.cuCtxSetCurrent(get("cuCtxFromGreenCtx", green)))
    on, page = get("cuGreenCtxStreamCreate", green, 1, 0), get("cuMemAllocHost_v2", Size(8))
    word = ctypes.cast(page, ctypes.POINTER(ctypes.c_uint32))
    word[0] = 0
    ok(cu.cuStreamWaitValue32_v2(on, page, 1, 1))
    event = get("cuEventCreate", 0)
    ok(cu.cuCtxRecordEvent(primary, event))
    assert cu.cuEventQuery(event) != OK
    word[0] = 1
    ok(cu.cuCtxSynchronize_v2(primary))
    assert cu.cuEventQuery(event) == OK
    ok(cu.cuStreamDestroy_v2(on))
    ok(cu.cuGreenCtxDestroy(green))


if __name__ == "__main__":
    main()
