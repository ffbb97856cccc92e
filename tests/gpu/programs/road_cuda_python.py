# SPDX-License-Identifier: Apache-2.0
"""cuda-python: the example, which compiles by NVRTC."""

import runpy
from pathlib import Path

from lacking import need

need("numpy"), need("cuda.bindings.driver"), need("cuda.bindings.nvrtc")
example = Path(__file__).resolve().parents[3] / "examples" / "bench_cuda.py"
runpy.run_path(str(example), run_name="__main__")
