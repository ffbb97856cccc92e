/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREX_SIM_CUDA_PROC_H
#define KREX_SIM_CUDA_PROC_H

/* The function that symbol is without its ending of five characters: "_ptsz", "_ptds". */
void *cu_twin(const char *symbol);

#endif
