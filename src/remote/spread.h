/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the loops of main are spread over the ranks. A loop that is spread is cut at the same
 * indices each time, and each part is placed on the same rank (place.h), where its results stay. So
 * iterations find their data where earlier ones have left them, as if the program had distributed
 * its arrays by blocks. Whether that pays depends on the whole program, and is measured: if main
 * runs a loop of one length again and again, the time from one start to the next is the period.
 * After some periods the loops are spread for a few as a trial. They remain so if these are
 * shorter. There is no trial while the data that loops only read, and the program has not frozen,
 * take longer to compare in each period than the other ranks could save.
 *
 *     home ── some periods ──> trial ── shorter ──> spread
 *       ^                        │                    │
 *       └──── all data are read here, longer waits ───┴ longer than they were at home
 *
 * Only rank 0 spreads loops, and only a power of two of ranks take part: the parts are subtrees of
 * the tree by which contributions are combined (core/loop.c).
 */
#ifndef KD_SPREAD_H
#define KD_SPREAD_H

#include <stddef.h>
#include <stdint.h>

struct kd_net;
struct kd_remote;
struct kdds_closure;

void kd_spread_start(struct kd_net *net);
void kd_spread_stop(struct kd_net *net);

/* For kd_remote_ops. Any worker may call it, without locks. */
int kd_spread_loop(struct kd_remote *r, struct kdds_closure *c, size_t n);

#endif
