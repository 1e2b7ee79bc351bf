/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is given away is weighed: for each type of task, how long packages of its closures have run
 * at their thieves, and how long it has taken to move them there and back. Where moving has taken
 * longer than running, closures of the type stay here, except for a trial now and then, since later
 * closures may be longer, or find their data in the thief's cache. The running time includes all
 * descendants, so a call that is the root of a large tree weighs what the tree does.
 *
 * A trial takes place after LOSS_SHARE times what the last one has cost, more if trials go on
 * failing, and so many times longer as there are types that lose: trials of all types together cost
 * at most that share of the time, whatever the network. Nothing is known of the
 * first package of a type, so trials have few data: a larger one waits longer, in proportion.
 *
 * Small packages show what large ones cost: the running time grows at least with the data, and the
 * time to move them by what the data take at the speed at which others have moved. So half of a
 * loop goes although small pieces of it have not been worth their messages. The net lock protects
 * everything here.
 */
#ifndef KD_WEIGH_H
#define KD_WEIGH_H

#include "core/stack.h"

/* Bytes of data, in and out, of a small trial. */
#define KD_WEIGH_SMALL 2097152u

struct kd_net;

void kd_weigh_start(struct kd_net *net);
void kd_weigh_stop(struct kd_net *net);

/* Until when closures of that type stay here; a time that has passed: they need not. */
uint64_t kd_weigh_until(struct kd_net *net, const struct kdds_type *type);
/* The same for a range of so many bytes, more than KD_WEIGH_SMALL. */
uint64_t kd_weigh_large_until(struct kd_net *net, const struct kdds_type *type, uint64_t bytes);
/* Whether packages of the type have come back; and have not been worth moving. */
int kd_weigh_known(struct kd_net *net, const struct kdds_type *type);
int kd_weigh_loses(struct kd_net *net, const struct kdds_type *type);
/* Whether one of so many bytes runs for as long as it takes to move its inputs, or nothing is known
 * of the type. */
int kd_weigh_pays(struct kd_net *net, const struct kdds_type *type, uint64_t bytes,
		  uint64_t inputs_ns);
/* Whether one of so many bytes, which are more than usual, would be worth moving, although such
 * packages have not been, if it takes so much longer. One at a time. */
int kd_weigh_grows(struct kd_net *net, const struct kdds_type *type, uint64_t bytes,
		   uint64_t longer_ns, uint64_t now_ns);
/* What such a package of so many bytes is expected to cost, by the mean of those before; 0: nothing
 * is known. */
void kd_weigh_expect(struct kd_net *net, const struct kdds_type *type, uint64_t bytes,
		     uint64_t *run_ns_p, uint64_t *move_ns_p);
/* Whether packages of all types together take no longer to move than to run. */
int kd_weigh_gains(struct kd_net *net);
/* Whether packages have come back, and closures of none of their types are worth moving. */
int kd_weigh_all_lose(struct kd_net *net);
/* The range, whose data have so many bytes, in and out, is given away. */
void kd_weigh_given(struct kd_net *net, const struct kd_range *range, uint64_t bytes,
		    uint64_t now_ns);
/* It is back: it has run that long, and to move it there and back has taken that long. reads: data
 * were read that did not fit into the messages. */
void kd_weigh_returned(struct kd_net *net, const struct kd_range *range, uint64_t now_ns,
		       uint64_t run_ns, uint64_t move_ns, int reads, uint64_t bytes);

#endif
