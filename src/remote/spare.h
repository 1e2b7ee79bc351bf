/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory to spare. A rank keeps copies of what it has read, and the results that it retains, within
 * KDDS_CACHE bytes each. If the program leaves the limit to the library (auto), it keeps more as
 * long as the host has more than a tenth of its memory available: what is kept need not move again,
 * and results do not need less memory elsewhere.
 *
 * The net lock protects everything here.
 */
#ifndef KD_SPARE_H
#define KD_SPARE_H

#include <stdint.h>

/* For one of the two. All zeroes: never more than KDDS_CACHE. */
struct kd_spare {
	uint32_t ranks;   /* on this host, which all keep more; 0: KDDS_CACHE has a number */
	int is_short;     /* the last look has found no memory to spare */
	uint64_t most;    /* bytes that may be kept until the next look */
	uint64_t look_ns; /* when that is due */
};

/* Whether so many bytes may be kept: within KDDS_CACHE, or in memory to spare. */
int kd_spare_holds(struct kd_spare *s, uint64_t bytes);

#endif
