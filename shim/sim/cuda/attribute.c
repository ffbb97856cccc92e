/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDeviceGetAttribute: a card of the H20's class. What the simulated driver does not do, it says here.
 */
#include "face.h"

#define UP_TO 161 /* the newest that is known */

/* By the vendor's number, without the CU_DEVICE_ATTRIBUTE_; what is missing is 0. */
static const int constant[UP_TO + 1] = {
    [1] = 1024,                                               /* threads in a block */
    [2] = 1024,                                               /* of them in x, y, z */
    [3] = 1024,         [4] = 64,           [5] = 2147483647, /* blocks in a grid in x, y, z */
    [6] = 65535,        [7] = 65535,        [8] = 49152,      /* shared memory of a block */
    [9] = 65536,                                              /* constant memory */
    [10] = 32,                                                /* warp */
    [11] = 2147483647,                                        /* pitch */
    [12] = 65536,                                             /* registers of a block */
    [14] = 512,                                               /* texture alignment */
    [15] = 1,                                                 /* overlap */
    [19] = 1,                                                 /* maps host memory */
    [21] = 131072,                                            /* textures */
    [22] = 131072,      [23] = 65536,       [24] = 16384,     [25] = 16384,     [26] = 16384,
    [27] = 32768,       [28] = 32768,       [29] = 2048,      [30] = 512, /* surface alignment */
    [31] = 1,                                                             /* concurrent kernels */
    [32] = 1,                                                             /* ECC */
    [39] = 2048,  /* threads of a multiprocessor */
    [40] = 3,     /* copy engines */
    [41] = 1,     /* unified addresses */
    [42] = 32768, /* textures */
    [43] = 2048,        [44] = 1,           [45] = 32768,     [46] = 32768,     [47] = 8192,
    [48] = 8192,        [49] = 32768,       [51] = 32, /* texture pitch alignment */
    [52] = 32768,       [53] = 32768,       [54] = 2046,      [55] = 32768, /* surfaces */
    [56] = 131072,      [57] = 65536,       [58] = 16384,     [59] = 16384,     [60] = 16384,
    [61] = 32768,       [62] = 2048,        [63] = 32768,     [64] = 32768,     [65] = 2048,
    [66] = 32768,       [67] = 32768,       [68] = 2046,      [69] = 268435456, /* textures */
    [70] = 131072,      [71] = 65000,       [72] = 2097120,   [73] = 32768,     [74] = 32768,
    [77] = 32768,       [78] = 1,                     /* stream priorities */
    [79] = 1,                                         /* L1 for global and local memory */
    [80] = 1,           [81] = 233472,                /* shared memory of a multiprocessor */
    [82] = 65536,                                     /* registers of one */
    [83] = 1,                                         /* managed memory */
    [87] = 2,                                         /* single to double precision */
    [89] = 1,                                         /* concurrent managed access */
    [90] = 1,                                         /* preemption */
    [91] = 1,                                         /* host pointers of registered memory */
    [92] = 1,                                         /* operations on words in streams */
    [93] = 1,           [94] = 1,           [95] = 1, /* cooperative launch */
    [97] = 232448,                                    /* shared memory of a block that asks */
    [99] = 1,                                         /* registers host memory */
    [106] = 32,                                       /* blocks of a multiprocessor */
    [109] = 134217728,                                /* access policy window */
    [111] = 1024,                                     /* reserved shared memory */
    [113] = 1,                                        /* registers read-only host memory */
    [115] = 1,                                        /* pools */
    [120] = 1,                                        /* clusters */
    [122] = 1,                                        /* operations on words in streams */
    [123] = 1,          [126] = 4,                    /* synchronisation domains */
    [131] = -1,                                       /* NUMA nodes: of none */
    [134] = -1,         [139] = 0x232910de,           /* the PCI device */
    [140] = 0x198b10de,
};

static int of_device(const struct drv_device *d, CUdevice_attribute attribute) {
    const struct krex_sim_device *is = d->is;
    switch (attribute) {
    case 13:
        return (int)is->clock_khz;
    case 16:
        return (int)is->multiprocessors;
    case 33:
        return (int)drv_bus(d);
    case 36:
        return (int)is->memory_clock_khz;
    case 37:
        return (int)is->bus_bits;
    case 38:
        return (int)is->l2_bytes;
    case 75:
        return (int)is->major;
    case 76:
        return (int)is->minor;
    case 85:
        return (int)is->number;
    case 108:
        return (int)(is->l2_bytes / 8 * 5); /* what of it may be kept */
    default:
        return constant[attribute];
    }
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !pi || !attrib || attrib > UP_TO)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *pi = of_device(d, attrib);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev) {
    static const unsigned char attribute[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    struct drv_device *d;
    CUresult r = cu_device(dev, &d);
    if (r || !prop)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    int *to = (int *)prop; /* in the order of the attributes */
    for (unsigned i = 0; i < sizeof attribute; i++)
        to[i] = of_device(d, attribute[i]);
    return CUDA_SUCCESS;
}
