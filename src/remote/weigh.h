/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is given away is weighed: for each type of task, how long packages of its closures have run
 * at their thieves, and how long it has taken to move them there and back. Where moving has taken
 * longer than running, closures of the type stay here, except for a trial now and then, since later
 * closures may be longer, or find their data in the thief's cache. The running time includes all
 * descendants, so a call that is the root of a large tree weighs what the tree does.
 *
 * A trial takes place after TRIAL_SHARE times what the last one has cost. It so costs at most that
 * share of the time, whatever the network. The net lock protects everything here.
 */
#ifndef KD_WEIGH_H
#define KD_WEIGH_H

#include "core/stack.h"

struct kd_net;

void kd_weigh_start(struct kd_net *net);
void kd_weigh_stop(struct kd_net *net);

/* Until when closures of that type stay here; a time that has passed: they need not. */
uint64_t kd_weigh_until(struct kd_net *net, const struct kdds_type *type);
/* Whether there is a type that is worth moving. */
int kd_weigh_any_gains(struct kd_net *net);
/* The range is given away. */
void kd_weigh_given(struct kd_net *net, const struct kd_range *range, uint64_t now_ns);
/* It is back: it has run that long, and to move it there and back has taken that long. */
void kd_weigh_returned(struct kd_net *net, const struct kd_range *range, uint64_t now_ns,
		       uint64_t run_ns, uint64_t move_ns);

#endif
