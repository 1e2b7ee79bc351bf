/* SPDX-License-Identifier: BSD-3-Clause */
/* kddsrun's own lines on stderr. */
#ifndef KD_RUN_SAY_H
#define KD_RUN_SAY_H

#include "base/base.h"

void run_say(const char *format, ...) kd_printf(1, 2) kd_cold;
/* With -v only. */
extern int run_verbose;
void run_tell(const char *format, ...) kd_printf(1, 2) kd_cold;

#endif
