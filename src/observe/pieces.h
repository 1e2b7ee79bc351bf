/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of any length that ranks publish through the launcher, which takes short ones: in pieces,
 * under the keys KEY.0, KEY.1, ... */
#ifndef KD_PIECES_H
#define KD_PIECES_H

#include <stddef.h>

#include "base/base.h"

/* 0 or -errno. */
int kd_pieces_put(const char *key, const void *value, size_t size);
/* What the rank has published, after a fence. -EMSGSIZE: it is not that long. */
int kd_pieces_get(uint32_t rank, const char *key, void *value, size_t size);

#endif
