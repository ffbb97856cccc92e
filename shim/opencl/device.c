/* SPDX-License-Identifier: Apache-2.0
 *
 * Which physical device a context is on: its stable key.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../board.h"
#include "../client.h"
#include "../gate.h"
#include "api.h"

enum { MAX_NOTED = 16 };

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

/* Tells the controller, once a device: its regions have to know of us. */
static void note_other_device(const char *key) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t whose; /* a forked child tells anew */
    static char noted[MAX_NOTED][KREX_DEVICE_KEY_SIZE];
    static int count;
    int i = 0;
    pthread_mutex_lock(&lock);
    if (whose != krex_process.generation)
        count = 0;
    whose = krex_process.generation;
    while (i < count && strcmp(noted[i], key) != 0)
        i++;
    if (i == count && count < MAX_NOTED) {
        memcpy(noted[count++], key, KREX_DEVICE_KEY_SIZE);
        krex_client_send(KREX_WIRE_NOTE, 0, 0, "context_on_other_device", key);
    }
    pthread_mutex_unlock(&lock);
}

void krex_cl_context_on(cl_device_id device) {
    char key[KREX_DEVICE_KEY_SIZE];
    if (!device)
        return;
    device_key(device, key);
    if (!krex_client_ready(key) || !strcmp(krex_process.board->device_key, key))
        return;
    krex_client_flag(KREX_FLAG_OTHER_DEVICE);
    note_other_device(key);
}
