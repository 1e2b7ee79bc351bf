/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work W and critical path D of a run, measured on the graph that was executed: bodies, the
 * children that they commit, and the data that order siblings.
 *
 *   length of a closure
 *     = the longest path from its first instruction to the end of its last descendant
 *     = max(body, body + the longest path through its children)
 *   a child begins when the body has ended, or waits, and all that the child depends on has
 *   ended
 *
 * All times are relative to the parent's first instruction, so a thief need not know the position
 * of its closures in the graph: it runs them and stores their lengths at the victim. The owner of
 * a frame passes its closures in reference order, its own and the stolen ones. Only then, when
 * all earlier ones have been passed, are begin and end of a closure computed, with one look at
 * the last user of each data item, by the link p.
 *
 * The records lie in a third reservation, as large as the stack, each at the offset of its
 * subject: a frame (128 bytes there), the head of a closure (16), an access (16). Nothing is
 * allocated and nothing is cleared: a link never leads to a closure that this epoch of the frame
 * has not passed.
 *
 * Contributions wait for nothing. They are merged when all earlier uses of the data have ended, so
 * a reader after them begins at the latest of these ends and their own.
 */
#ifndef KD_SPAN_H
#define KD_SPAN_H

#include "base/clock.h"
#include "core/worker.h"

/* Everything in ticks. */
struct kd_span_frame {
	uint64_t base;  /* time that the frame's body has run, with the children it waited for */
	uint64_t span;  /* the latest end of a closure passed */
	uint64_t self;  /* the part of base in the body alone */
	uint64_t begun; /* clock when the body began, or when its stack was last continued */
	uint64_t parts; /* how often the stack was set aside since the body began */
	uint64_t node;  /* its number in the graph (dot.h) */
	const char *held; /* closures before it have had their begin recorded (kd_span_wait) */
};

struct kd_span_closure {
	uint64_t length; /* stored by the worker that ran it */
	uint64_t begin;  /* the earliest, until it is passed, if it is before `held' */
};

struct kd_span_access {
	uint64_t writer; /* the end of the last writer so far */
	uint64_t users;  /* of all users since then, and its own */
};

_Static_assert(sizeof(struct kd_span_frame) <= sizeof(struct kdds_frame),
	       "a frame's record is no longer than its header");
_Static_assert(sizeof(struct kd_span_closure) <= sizeof(struct kdds_closure),
	       "a closure's record is no longer than its head");
_Static_assert(sizeof(struct kd_span_access) <= sizeof(struct kdds_access),
	       "an access's record is no longer than it");

static inline void *kd_span_at(const struct kd_stack *s, const void *p)
{
	return s->spans + ((const char *)p - s->mem);
}

static inline struct kd_span_frame *kd_span_frame(const struct kd_stack *s,
						  const struct kdds_frame *f)
{
	return kd_span_at(s, f);
}

/* Stores the length of closure c of a stolen range where the victim, or the import, finds it. */
void kd_span_deliver(const struct kd_range *range, const char *c, uint64_t length);
/* Closure c of frame f, not a base, is passed: it and all before it are complete. */
void kd_span_pass(struct kd_stack *s, struct kdds_frame *f, char *c, uint64_t length);

/* The body of f has waited for its closures before `head': it goes on when they have ended. The
 * others could begin when it began to wait. */
void kd_span_wait(struct kd_stack *s, struct kdds_frame *f);

/* The longest path through main so far: its body, up to the last charge, and its children. */
uint64_t kd_span_main(void);

#endif
