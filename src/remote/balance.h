/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose idle time is worth a move of data. Where tasks use the same data again and again, the rank
 * that has the data gets the tasks (retained.h). So whether ranks are equally busy depends on where
 * data are, and a single task is not worth moving them. What is worth it is the time that a rank
 * has been idle: this rank keeps an account for each, itself included. Idle time is added, but a
 * part of all time is subtracted, since ranks that are equally busy wait for each other now and
 * then. A rank whose account has more time than that of another one, by as much as a move takes, is
 * given, or keeps, the data of one range, at twice that price, and the other account is empty
 * again. So a move costs less than the idle time before it, as in the ski rental problem (A.
 * Karlin, M. Manasse, L. Rudolph, D. Sleator, "Competitive Snoopy Caching", 1988).
 *
 * An account also has the ranges that the rank has been given: how many, and how long they are
 * expected to run. The net lock protects everything here.
 */
#ifndef KD_BALANCE_H
#define KD_BALANCE_H

#include "base/base.h"

struct kd_net;

void kd_balance_start(struct kd_net *net);
void kd_balance_stop(struct kd_net *net);

/* From now on the rank is idle, or not; at most as long as it is idle at a time before the next
 * call. */
void kd_balance_note(struct kd_net *net, uint32_t rank, int idle, uint64_t now_ns,
		     uint64_t most_ns);
/* The rank has been idle until that time, if it was at the last call. */
void kd_balance_left(struct kd_net *net, uint32_t rank, uint64_t at_ns);
/* Whether the rank has been idle for so much longer than another one that so many bytes should move
 * from there. */
int kd_balance_affords(const struct kd_net *net, uint32_t rank, uint32_t from, uint64_t bytes,
		       uint64_t now_ns);
/* They are moved. */
void kd_balance_spend(struct kd_net *net, uint32_t rank, uint32_t from, uint64_t bytes,
		      uint64_t now_ns);

/* The rank has so many workers, by default 1, and the kernel copies its data (kd_comm_direct). */
void kd_balance_rank(struct kd_net *net, uint32_t rank, uint32_t workers, int direct);
/* The rank has been given a range that is expected to run for so long, once its data have moved; or
 * has answered one. */
void kd_balance_given(struct kd_net *net, uint32_t rank, uint64_t run_ns, uint64_t move_ns,
		      uint64_t now_ns);
void kd_balance_answered(struct kd_net *net, uint32_t rank, uint64_t run_ns, uint64_t now_ns);
/* Whether it has nothing to run although it has not answered all: other ranks may have taken what
 * it has been given. Until it is given another one. */
void kd_balance_ran_out(struct kd_net *net, uint32_t rank, int ran_out);
/* How many ranges it has. */
uint32_t kd_balance_has(const struct kd_net *net, uint32_t rank);
/* Until when it will not need more: it has not run out, has a range for each worker, and they run
 * for longer than it takes to move the next one. A time that has passed: it may. */
uint64_t kd_balance_has_until(const struct kd_net *net, uint32_t rank);

/* So many bytes have been read in that time, by all reads together. */
void kd_balance_moved(struct kd_net *net, uint64_t bytes, uint64_t ns);
/* How long it takes to move so many bytes: at 1 GB/s, or as fast as they have moved so far. */
uint64_t kd_balance_ns(const struct kd_net *net, uint64_t bytes);
/* The same if all ranks take part and each moves its data in one piece: not slower than the kernel
 * if it copies them. Any thread. */
uint64_t kd_balance_spread_ns(const struct kd_net *net, uint64_t bytes);

#endif
