/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREX_SIM_HIP_PROC_H
#define KREX_SIM_HIP_PROC_H

/* The function that symbol is without its ending: "_spt". */
void *hip_twin(const char *symbol);

#endif
