# SPDX-License-Identifier: Apache-2.0
"""What the devices are that the runtime shows."""

import ctypes
import json

from hiprt import get, hip

count = ctypes.c_int()
code = hip.hipGetDeviceCount(ctypes.byref(count))
uuids = [
    get("hipDeviceGetUuid", ordinal, kind=ctypes.c_char * 16) for ordinal in range(count.value)
]
results = {
    "code": code,
    "numbers": [hip.krex_sim_device_number(ordinal) for ordinal in range(count.value)],
    "uuids": [uuid.raw.decode() for uuid in uuids],
}
print(json.dumps(results))
