/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What thieves know about the closures of a frame: which are ready, which wait, and for which
 * closure. The owner never looks (except for the end of a stolen range). Readiness is computed once
 * per closure and access: a closure is read when the frame's cursor passes it. It waits on one list
 * at a time, that of the first earlier closure found that it depends on and that is not complete.
 * When that closure completes, the search continues from where it stopped. So each link of a frame
 * of 10^6 closures is followed once, not once per steal. The results are in the readiness records
 * and the index of the frame (record.h).
 *
 * All functions are called under the stack's lock. Those that read the frame itself are also called
 * under KD_LOCK, or for a frame that cannot end because a range of it is still stolen.
 */
#ifndef KD_INDEX_H
#define KD_INDEX_H

#include "core/record.h"

/* Ready closures that one call looks at; a later one begins with others. */
#define KD_INDEX_STEPS 64

/* Looks at frame f of s and updates its records with what the owner has done. 0: f has no
 * closures. */
int kd_index_open(struct kd_view *v, struct kd_stack *s, struct kdds_frame *f);

/*
 * Whether thieves must take nothing from the frame: its task has been given one data item twice, or
 * two that overlap, and may write it. Its children know the data by two references, so no link
 * orders the uses of one reference relative to those of the other. In reference order they behave
 * as on one worker. Their own children can be stolen.
 */
int kd_index_ordered(const struct kd_view *v);

/*
 * Finds where a range of up to length closures (0: a share of those that are ready, see share())
 * may begin, and records at most budget more closures meanwhile. The range ends with the youngest
 * closure that the caller may have, which the owner reaches last, or with one of high priority.
 * Marks the first closure as taken; *length_p is the maximal length of the range. NULL: none found.
 * wanted(c, arg) returns whether the caller may have c.
 */
char *kd_index_take(struct kd_view *v, unsigned budget, uint32_t length,
		    int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		    uint32_t *length_p);
/* Returns the range of at most length closures that begins at c, which has been taken: it includes
 * the closures after c that wait for nothing outside the range. The owner cannot get past c, so
 * this does not need KD_LOCK. */
void kd_index_extend(struct kd_view *v, char *c, uint32_t length,
		     int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		     struct kd_range *range_p);

/* Takes the closure at the head of the frame, which the owner has claimed and does not run. */
void kd_index_take_claimed(struct kd_view *v, struct kd_range *range_p);

/* c, whose record is n, waits or is ready: puts it on a list of waiters or on the ready list. */
void kd_index_settle(struct kd_view *v, struct kdds_closure *c, struct kd_record *n);

/* Records the closures after the range, for the next steal: enough for it to take twice the `taken`
 * closures of this one. Does not need KD_LOCK either. */
void kd_index_look_ahead(struct kd_view *v, uint32_t taken);

/* Whether a later closure of the frame uses what those of a stolen range have written, or one that
 * is not recorded yet may. */
int kd_index_used_later(const struct kd_view *v, const struct kd_range *range);

/* The closures of a stolen range are complete: closures that waited for them may be ready now. The
 * view is of the range's frame. Returns their number, which is smaller than when the range was
 * stolen if other thieves have divided it. */
uint32_t kd_index_complete(struct kd_view *v, const struct kd_range *range);
/*
 * Merges contributions that have become due: all earlier uses of the data are complete, and all
 * earlier contributions merged. So they are merged in reference order, and what waits for them may
 * be ready now. Only those of closures at `from' or behind, which the owner cannot reach meanwhile;
 * the owner merges the others when it passes them.
 */
void kd_index_merge(struct kd_view *v, const char *from);

/*
 * A thief ran count closures in ns. Short tasks are stolen many at a time, long ones singly. Tasks
 * that take a thief less than 60 ns cost about as much to steal as to run, so thieves leave their
 * frame alone for a while: 0.1 ms, doubled up to 6 ms each time the tasks are found too fine again.
 */
void kd_index_learn(struct kd_index *x, uint32_t count, uint64_t ns, uint64_t now_ns);
/* Until when the frame is left alone. 0: it need not be. */
uint64_t kd_index_rests(const struct kd_index *x, uint64_t now_ns);
void kd_index_rest(struct kd_index *x, uint64_t until_ns);

/* Whether closures of the frame are not recorded yet. */
int kd_index_more(const struct kd_view *v);

/* Whether the frame is known to have a ready closure that nobody has taken. */
int kd_index_has_ready(const struct kd_view *v);

#endif
