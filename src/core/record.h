/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readiness records, one for each closure, and the index of a frame.
 *
 * They lie in kd_stack.records, at half the offset: 16 bytes for a closure, which has at least 32
 * bytes, and 64 for a frame header, which has 128. Nothing is allocated, and thieves do not write
 * to the cache lines that the owner is about to read.
 *
 *   first ... | complete, fired | ... head ...      | recorded     | not looked at yet      tail
 *             ^first            ^passed             ^              ^cursor
 *
 * Records are read and written under the stack's lock.
 */
#ifndef KD_RECORD_H
#define KD_RECORD_H

#include "core/closure.h"
#include "core/stack.h"

/* KD_UNMERGED: complete, and contributions to reductions have not been merged yet. */
enum kd_record_state { KD_WAITS, KD_READY, KD_TAKEN, KD_UNMERGED, KD_COMPLETE };

/* The readiness record of a closure. Positions are in units of 16 bytes from the stack's mem; 0 is
 * no closure. */
struct kd_record {
	uint32_t waiters; /* the first closure that waits for this one */
	uint32_t next;    /* in the list of waiters, the ready list, or kd_index.due */
	uint32_t link;    /* KD_WAITS: how far the chain of the waiting access has been walked.
			     KD_READY: the previous closure on the ready list.
			     Complete, at the begin of a stolen range: where the range ends */
	uint16_t units : 12; /* its size in units of 16 bytes: a walk need not read the closure */
	uint16_t later : 1;  /* a recorded closure uses what it wrote */
	uint16_t high : 1;   /* KDDS_PRIORITY_HIGH */
	uint16_t mixes : 1;  /* it contributes to what it also uses otherwise */
	uint16_t listed : 1; /* on a list of waiters, or in kd_index.due */
	uint8_t access : 5, state : 3; /* access: the one that waits, or KD_ACCESS_FAR */
	uint8_t epoch;    /* that of the index if the record belongs to the frame's current one */
};

/* The access that waits has its number behind the record: a closure with that many is large. */
#define KD_ACCESS_FAR 31

static inline uint32_t kd_record_access(const struct kd_record *n)
{
	return n->access < KD_ACCESS_FAR ? n->access : *(const uint32_t *)(const void *)(n + 1);
}

static inline void kd_record_set_access(struct kd_record *n, uint32_t access)
{
	n->access = kd_min(access, (uint32_t)KD_ACCESS_FAR) & KD_ACCESS_FAR;
	if (access >= KD_ACCESS_FAR)
		*(uint32_t *)(void *)(n + 1) = access;
}

/* How far the walk of a closure that waits has come. */
struct kd_record_place {
	uint32_t access, link;
};

static inline struct kd_record_place kd_record_place(const struct kd_record *n)
{
	return (struct kd_record_place){kd_record_access(n), n->link};
}

static inline void kd_record_return(struct kd_record *n, struct kd_record_place to)
{
	kd_record_set_access(n, to.access);
	n->link = to.link;
}

/* The index of a frame. */
struct kd_index {
	uint64_t gen; /* kd_frame_epoch; with head and link_base, the frame's epoch */
	char *head;   /* of the frame's parent */
	uint32_t cursor, passed; /* positions */
	uint32_t ready, ready_end, ready_count; /* the ready list, oldest first: those in state
						   KD_READY */
	uint32_t link_base;
	uint32_t due;     /* list of closures KD_UNMERGED: what they followed has changed */
	uint8_t epoch;
	uint8_t ordered : 1; /* its closures run in reference order: see kd_index_ordered */
	/* Learned from steals from this frame; kept when it is emptied and filled again: */
	uint8_t rests : 7;   /* how often in a row its tasks were found too fine to steal; see
				kd_index_learn */
	uint16_t task_ns; /* time a thief needs for one of its tasks; 0: not known */
	uint32_t rest;    /* steal nothing from the frame until this time; see kd_index_rests */
};

/* The records have 64 bytes for a frame header, minus 8 if the frame begins in the middle of the 32
 * bytes of a record. */
_Static_assert(sizeof(struct kd_index) <= sizeof(struct kdds_frame) / 2 - 8,
	       "an index overlaps the record of its frame's first closure");
_Static_assert(sizeof(struct kd_record) == 16, "a record is as large as half the smallest closure");

/* A visitor's view of the frame: read once, head before tail. */
struct kd_view {
	const struct kd_pool *pool; /* the stack's */
	struct kd_stack *stack;
	struct kdds_frame *frame;
	struct kd_index *index;
	char *first, *head, *tail;
};

static inline uint32_t kd_position(const struct kd_stack *s, const char *c)
{
	return (uint32_t)((size_t)(c - s->mem) >> 4);
}

static inline char *kd_position_at(const struct kd_stack *s, uint32_t position)
{
	return s->mem + ((size_t)position << 4);
}

static inline struct kd_record *kd_record_at(const struct kd_stack *s, const char *c)
{
	size_t i = (size_t)(c - s->mem) >> 5;

	return (struct kd_record *)(s->records + i * sizeof(struct kd_record));
}

static inline struct kd_index *kd_index_at(const struct kd_stack *s, const struct kdds_frame *f)
{
	return (struct kd_index *)(s->records + ((size_t)((const char *)f - s->mem) >> 1));
}

static inline struct kd_record *kd_record_of(const struct kd_view *v, uint32_t position)
{
	return kd_record_at(v->stack, kd_position_at(v->stack, position));
}

#endif
