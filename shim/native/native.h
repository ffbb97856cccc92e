/* SPDX-License-Identifier: Apache-2.0
 *
 * What the controller's cffi module compiles: the shim's own headers, and nothing else.
 */
#include "audit.h"
#include "board.h"
#include "closer.h"
#include "groups.h"
#include "idle.h"
#include "sim/wire.h"
#include "wire.h"
