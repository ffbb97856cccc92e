# SPDX-License-Identifier: Apache-2.0
"""What the devices are that the driver shows."""

import ctypes
import json
import uuid

from cu import cu, get

code = cu.cuInit(0)
numbers = range(0 if code else get("cuDeviceGetCount", kind=ctypes.c_int).value)
uuids = [get("cuDeviceGetUuid_v2", ordinal, kind=ctypes.c_char * 16).raw for ordinal in numbers]
results = {
    "code": code,
    "numbers": [cu.krex_sim_device_number(ordinal) for ordinal in numbers],
    "uuids": [str(uuid.UUID(bytes=data)) for data in uuids],
}
print(json.dumps(results))
