# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner, unmodified, tries both configurations of a kernel by OpenCL."""

import json

import numpy as np
from kernel_tuner import tune_kernel

SOURCE = """__kernel void twice(__global float *a, int n) {
    int i = get_group_id(0) * block_size_x + get_local_id(0);
    if (i < n) a[i] *= 2;
}"""
COUNT = 1 << 16

arguments = [np.ones(COUNT, np.float32), np.int32(COUNT)]
results, _ = tune_kernel(
    "twice", SOURCE, COUNT, arguments, {"block_size_x": [32, 64]}, lang="OpenCL", quiet=True
)
print(json.dumps({"ms": [result["time"] for result in results]}))
