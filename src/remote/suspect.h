/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank cannot reach another one, which has not died as far as the launcher knows. */
#ifndef KD_SUSPECT_H
#define KD_SUSPECT_H

#include "base/base.h"

struct kd_net;

/* In a job that survives losses: tells the launcher why this rank cannot reach that one. The
 * launcher, which may not see what is wrong with it, kills one of the two; until it does, this rank
 * tries on. Under the lock. */
void kd_suspect(struct kd_net *net, uint32_t rank, const char *format, ...) kd_printf(3, 4);

#endif
