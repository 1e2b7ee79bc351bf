/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In which line of the program a closure is spawned. While the program spawns it, the return
 * addresses on the C stack say where; they are kept, and looked up when a mistake is reported.
 * addr2line, which comes with the linker, knows the lines if the program was compiled with -g.
 */
#ifndef KD_CHECKER_LINE_H
#define KD_CHECKER_LINE_H

#include "base/base.h"

/* A number for the place from which the program has called the library; 0: it is not known. */
uint32_t kd_checker_line_here(void);
/* That place, such as "ring.c:17"; NULL: it is not known. */
const char *kd_checker_line_text(uint32_t line);
void kd_checker_line_free(void);

#endif
