/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work W and critical path D of a run, measured on the graph that was really there: bodies, the children they commit, and among
 * siblings the data.
 *
 *   length of a closure = the longest path from its first instruction to the end of its last descendant
 *     = max(body, body + the longest path through its children)
 *   a child begins when the body has ended (in main: or reached kdds_sync), and when all it depends on has ended
 *
 * All times are relative to the parent's first instruction, so a thief needs to know nothing of where its closures stand in the
 * graph: it runs them and leaves their length with the victim. The owner of a frame passes its closures in reference order, its
 * own and the stolen ones; only then, when everything before has been passed, are beginning and end computed: one look at the
 * last user of each data, by the link p.
 *
 * The records lie in a third reservation, as large as the stack, each at the offset of what it is about: a frame's (128 bytes
 * there), a closure's head (16), an access (16). Nothing is allocated, nothing cleared: a link never leads to what this life of
 * the frame has not passed.
 *
 * A reader after a reduction waits for everything up to the last contribution, as it does in reality (index.h): the end of a
 * reducing closure counts as that of the frame so far.
 */
#ifndef KD_SPAN_H
#define KD_SPAN_H

#include "base/clock.h"
#include "core/worker.h"

/* Everything in ticks. */
struct kd_span_frame {
	uint64_t base;  /* of the body whose frame it is: how long it has run, children it waited for included */
	uint64_t span;  /* the latest end of a closure passed */
	uint64_t self;  /* of base, in the body alone */
	uint64_t begun; /* on the clock: the body, or the part of the task since its stack was last taken up */
	uint64_t parts; /* times the stack was set aside meanwhile */
	uint64_t node;  /* its number in the graph */
};

struct kd_span_closure {
	uint64_t length; /* left by who ran it; then its end */
	uint64_t end;    /* of what a user after it has to wait for, if it reduces */
};

struct kd_span_access {
	uint64_t writer; /* the end of the last writer, up to here */
	uint64_t users;  /* of all users since then, and its own */
};

_Static_assert(sizeof(struct kd_span_frame) <= sizeof(struct kdds_frame), "a frame's record is as long as its header");
_Static_assert(sizeof(struct kd_span_closure) <= sizeof(struct kdds_closure), "as long as a closure's head");
_Static_assert(sizeof(struct kd_span_access) <= sizeof(struct kdds_access), "as long as an access record");

static inline void *kd_span_at(const struct kd_stack *s, const void *p)
{
	return s->spans + ((const char *)p - s->mem);
}

static inline struct kd_span_frame *kd_span_frame(const struct kd_stack *s, const struct kdds_frame *f)
{
	return kd_span_at(s, f);
}

/* The length of closure c of a stolen range, for who has it from its victim. */
void kd_span_deliver(const struct kd_range *range, const char *c, uint64_t length);
/* Closure c of frame f, not a base, is passed: it and all before it are complete. */
void kd_span_pass(struct kd_stack *s, struct kdds_frame *f, char *c, uint64_t length);

/* Main's body, as far as it has been charged, and what it has waited for. */
uint64_t kd_span_main(void);

#endif
