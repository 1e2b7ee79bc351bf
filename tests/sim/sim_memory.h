/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KD_TESTS_SIM_MEMORY_H
#define KD_TESTS_SIM_MEMORY_H

#include <stdint.h>

/* Prints what the process has allocated and not freed. Returns how many blocks. */
unsigned sim_memory_left(uint32_t process);

#endif
