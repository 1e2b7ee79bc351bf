/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a worker looks for work: halted stacks, the stacks of other workers, other processes. */
#ifndef KD_SEARCH_H
#define KD_SEARCH_H

#include "core/steal.h"
#include "core/worker.h"

struct kd_search {
	struct kd_request request;
	struct kd_range range;
	struct kd_stack *stack; /* found: a halted stack; NULL: the range */
};

/* Leaves s, which w owns and sets aside although it could continue, to whoever finds it. */
void kd_search_leave(struct kd_worker *w, struct kd_stack *s);

/* Nearest first: what this worker has set aside itself, then the last victim, then other workers at
 * random, then what has come from other processes. With hint: all workers. */
int kd_search(struct kd_worker *w, void *search);
/* The last one before w sleeps. */
int kd_search_last(struct kd_worker *w, void *search);

/* Looks everywhere for closures for another process. w is not in the pool. remote, filter and hint
 * as in a kd_request. */
int kd_search_remote(struct kd_worker *w, uint32_t remote, struct kd_filter *filter, int hint,
		     struct kd_range *range_p);

/* Looks for closures that other ranks are to run, or whose data are there (place.h). Returns 1 and
 * a range, or 0. */
int kd_search_placed(struct kd_worker *w, struct kd_filter *filter, struct kd_range *range_p);

#endif
