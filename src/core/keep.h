/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a push into the library that preserves the caller's registers: see kd_slow_push in
 * kdds/inline.h. */
#ifndef KD_KEEP_H
#define KD_KEEP_H

#include "kdds/inline.h"

#ifdef KD_KEEP
/* Call it before the first push. */
void kd_keep_init(void);
#else
static inline void kd_keep_init(void)
{
}
#endif

#endif
