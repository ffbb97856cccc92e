/* SPDX-License-Identifier: Apache-2.0
 *
 * What can't say that it is not supported: there are no tools to give names to.
 */
#include "face.h"

const char *hipApiName(uint32_t id) {
    (void)id;
    return "unknown";
}

const char *hipGetCmdName(unsigned int op) {
    (void)op;
    return "unknown";
}

bool hipEnableActivityCallback(unsigned int op, bool enable) {
    (void)op;
    (void)enable;
    return false;
}

hipChannelFormatDesc hipCreateChannelDesc(int x, int y, int z, int w, hipChannelFormatKind f) {
    return (hipChannelFormatDesc){x, y, z, w, f};
}
