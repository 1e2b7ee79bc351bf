/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thief goes on with when a stolen range is complete, without another visit. Until the range
 * is published as complete, its victim cannot pass it, so no owner is about to claim what lies
 * behind it: the thief takes closures there under the lock alone.
 *
 *   head                     range of the thief
 *    | A (the owner runs it) | B, complete | C | D |        C and D wait for A and B
 *                                                ^ reserved: ready when the owner has passed A
 *
 * If one is ready, the thief takes it as by any other steal. If none is, a thief that found nothing
 * elsewhere before this range reserves one that waits only for closures that others run just now,
 * and watches the words that say when these are complete. In a narrow graph, with as many columns
 * as workers, it begins as soon as the owner goes on: a visit would take longer than to run a short
 * task. It never reserves the first closure that the owner can go on with.
 */
#ifndef KD_SUCCESSOR_H
#define KD_SUCCESSOR_H

#include "core/record.h"
#include "core/stack.h"

#define KD_SUCCESSOR_AWAITED 4

/* A closure that a reserved one waits for. */
struct kd_awaited {
	char *closure;
	int stolen; /* a thief runs it; else the owner of the frame */
};

struct kd_successor {
	struct kd_worker *w; /* the thief */
	struct kd_range range; /* count 0: none */
	uint32_t most;         /* closures that the range may have */
	uint32_t n;            /* awaited; 0: the range is ready */
	struct kd_awaited awaited[KD_SUCCESSOR_AWAITED];
	uint64_t patience_ns;  /* how long to wait for them */
};

/* Takes a successor of `done`, a range of the view's frame whose records say that it is complete,
 * but which its owner cannot pass yet. */
void kd_successor_take(struct kd_view *v, const struct kd_range *done, struct kd_successor *next,
		       uint64_t now_ns);
/* Then, when the owner may pass `done`: completes the range. */
void kd_successor_extend(struct kd_view *v, struct kd_successor *next);

/* Waits until the range is ready. 0: others run what it waits for too long; it is given back. */
int kd_successor_await(struct kd_successor *next);

#endif
