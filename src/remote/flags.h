/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flags (kdds_raise) that are raised on several ranks. Rank 0 decides: a rank that raises one sends
 * FLAG there, and rank 0 sends it down the tree of ranks, as END.
 *
 * Only main lowers a flag, and no message says so: it could be late, and the tasks of a new search
 * would find the flag of the last one raised. Instead rank 0 counts how often main has lowered
 * flags, the *epoch*. WORK and FLAG have the epoch of their sender, so no closure arrives anywhere
 * before the epoch in which it was spawned. A rank that receives a later epoch than its own lowers
 * all its flags, and ignores a FLAG of an earlier one; rank 0 has sent FLAG again for those that
 * main has left raised. That a raised flag is seen late, or not at all, is allowed.
 */
#ifndef KD_FLAGS_H
#define KD_FLAGS_H

#include "base/base.h"

struct kd_net;
struct kd_remote;
struct kdds_flag;

/* The flag is not raised. Any thread, without the lock. */
void kd_flags_raise(struct kd_remote *r, struct kdds_flag *f);
/* Main of rank 0, without the lock. */
void kd_flags_lower(struct kd_remote *r, struct kdds_flag *f);

/* A message with this epoch has arrived. */
void kd_flags_advance(struct kd_net *net, uint64_t epoch);
/* Rank 0, after main has lowered flags: sends FLAG again for those that are still raised. */
void kd_flags_tick(struct kd_net *net);
/* FLAG has arrived. */
void kd_flags_message(struct kd_net *net, const void *body, size_t bytes);

#endif
