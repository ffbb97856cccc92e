/* SPDX-License-Identifier: Apache-2.0
 *
 * Which physical device a context is on: its stable key.
 */
#include <stdio.h>

#include "../board.h"
#include "../elsewhere.h"
#include "api.h"

static bool ask(cl_device_id device, cl_device_info what, void *answer, size_t size) {
    return KREX_REAL(device, clGetDeviceInfo)(device, what, size, answer, NULL) == CL_SUCCESS;
}

static void device_key(cl_device_id device, char key[KREX_DEVICE_KEY_SIZE]) {
    cl_device_type type = 0;
    cl_device_pci_bus_info_khr pci = {0};
    cl_device_topology_amd amd;
    cl_uint bus, slot, domain = 0;
    snprintf(key, KREX_DEVICE_KEY_SIZE, "unknown:0");
    if (ask(device, CL_DEVICE_TYPE, &type, sizeof type) && (type & CL_DEVICE_TYPE_CPU)) {
        snprintf(key, KREX_DEVICE_KEY_SIZE, "cpu:0");
    } else if (ask(device, CL_DEVICE_PCI_BUS_INFO_KHR, &pci, sizeof pci)) {
        snprintf(key, KREX_DEVICE_KEY_SIZE, "pci:%04x:%02x:%02x.%x", pci.pci_domain, pci.pci_bus,
                 pci.pci_device, pci.pci_function);
    } else if (ask(device, CL_DEVICE_PCI_BUS_ID_NV, &bus, sizeof bus) &&
               ask(device, CL_DEVICE_PCI_SLOT_ID_NV, &slot, sizeof slot)) {
        ask(device, CL_DEVICE_PCI_DOMAIN_ID_NV, &domain, sizeof domain);
        snprintf(key, KREX_DEVICE_KEY_SIZE, "pci:%04x:%02x:%02x.%x", domain, bus, slot >> 3,
                 slot & 7);
    } else if (ask(device, CL_DEVICE_TOPOLOGY_AMD, &amd, sizeof amd)) {
        snprintf(key, KREX_DEVICE_KEY_SIZE, "pci:0000:%02x:%02x.%x", amd.pcie.bus, amd.pcie.device,
                 amd.pcie.function);
    }
}

void krex_cl_context_on(cl_device_id device) {
    char key[KREX_DEVICE_KEY_SIZE];
    if (!device)
        return;
    device_key(device, key);
    krex_context_on(key);
}
