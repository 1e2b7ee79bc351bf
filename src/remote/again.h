/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges that were lost with the thieves that had them: workers of this rank run them again, in
 * place, as if a thief of this process had stolen them, or other ranks that request work do. So do
 * ranges that a leaving rank has given back. Ranges that were placed on another rank (core/place.h)
 * and cannot go there run here, unless a rank joins on which they are placed.
 */
#ifndef KD_AGAIN_H
#define KD_AGAIN_H

#include "core/stack.h"

struct kd_filter;
struct kd_net;
struct kd_remote;

void kd_again_start(struct kd_net *net);
void kd_again_stop(struct kd_net *net);

/* Under the lock. */
void kd_again_add(struct kd_net *net, const struct kd_range *range);
/* The same of a range that has not been begun. After both, kd_export_available. */
void kd_again_back(struct kd_net *net, const struct kd_range *range);
/* The range, which another rank was to run, runs here. Under the lock. */
void kd_again_stay(struct kd_net *net, const struct kd_range *range);
/* Takes a range that is placed on a rank of the job. 0: there is none. Under the lock. */
int kd_again_placed(struct kd_net *net, struct kd_range *range_p);
/* How many closures have been added, and the names of their types, separated by commas, since the
 * last call. Under the lock. */
uint32_t kd_again_added(struct kd_net *net, const char **names_p);
/* kd_remote_ops.take: such a range, or an import (kd_import_take). */
int kd_again_take(struct kd_remote *r, struct kd_filter *filter, struct kd_range *range_p);

#endif
