# SPDX-License-Identifier: Apache-2.0
"""tinygrad, unmodified, searches for the best kernel of a sum."""

import json

from tinygrad import Device, Tensor

Tensor(list(range(256))).realize().sum().realize()
Device[Device.DEFAULT].synchronize()
print(json.dumps({"device": Device.DEFAULT}))
