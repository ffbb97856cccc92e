# SPDX-License-Identifier: Apache-2.0
"""cupyx.profiler.benchmark, unmodified, on a simulated GPU: of CuPy's runtime it needs events."""

import json

import cupy
from call_events import Event, start
from cu import cu, function, launch, module, ok
from cupy_backends.cuda.api import runtime
from cupyx.profiler import benchmark

start()
# CuPy's own are linked to the runtime that accepts NVIDIA's driver only.
cupy.cuda.stream.Event = Event
cupy.cuda.get_elapsed_time = Event.elapsed_time
runtime.getDevice = lambda: 0
runtime.setDevice = lambda _: None

kernel = function(module(), "nothing")
ok(launch(kernel, None))
ok(cu.cuCtxSynchronize())
found = benchmark(lambda: ok(launch(kernel, None)), n_repeat=10, n_warmup=3, devices=(0,))
print(json.dumps({"gpu_times": found.gpu_times.tolist()}))
