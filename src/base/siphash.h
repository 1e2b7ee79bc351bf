/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of 64 bits, fast on short messages. */
#ifndef KD_SIPHASH_H
#define KD_SIPHASH_H

#include "base/base.h"

uint64_t kd_siphash(const uint8_t key[16], const void *p, size_t size);

#endif
