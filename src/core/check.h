/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariants of stacks, indices and ranges as code. They are checked after every steal, at
 * every completion, and whenever a stack changes hands, in builds with --enable-debug only. Each
 * check looks at a bounded number of frames or closures. One that fails ends the program like any
 * kd_assert.
 */
#ifndef KD_CHECK_H
#define KD_CHECK_H

struct kd_range;
struct kd_stack;
struct kd_view;

#ifdef KDDS_DEBUG
/* The caller owns s and is not between a claim and the end of its body. */
void kd_stack_check(const struct kd_stack *s);
/* The lists and positions of the view's index. The caller holds the lock. */
void kd_index_check(const struct kd_view *v);
/* The same, and each stolen range begins with a closure that the owner does not pass. */
void kd_index_check_stolen(const struct kd_view *v);
/* A range just stolen: inside its frame, with as many closures as it says. */
void kd_range_check(const struct kd_range *r);
#else
static inline void kd_stack_check(const struct kd_stack *s)
{
	(void)s;
}

static inline void kd_index_check(const struct kd_view *v)
{
	(void)v;
}

static inline void kd_index_check_stolen(const struct kd_view *v)
{
	(void)v;
}

static inline void kd_range_check(const struct kd_range *r)
{
	(void)r;
}
#endif

#endif
