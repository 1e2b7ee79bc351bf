/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What thieves know about the closures of a frame: which are ready, which wait, and for which
 * closure. The owner never looks (except for the end of a stolen range). Readiness is computed once
 * per closure and access: a closure is read when the frame's cursor passes it. It waits on one list
 * at a time, that of the first earlier closure found that it depends on and that is not complete.
 * When that closure completes, the search continues from where it stopped. So each link of a frame
 * of 10^6 closures is followed once, not once per steal.
 *
 * The readiness records lie in the stack's mirror, at half the offset: 16 bytes for a closure,
 * which has at least 32 bytes, and 64 for a frame header, which has 128. Nothing is allocated, and
 * thieves do not write to the cache lines that the owner is about to read.
 *
 *   first ... | complete, fired | ... head ...      | recorded     | not looked at yet      tail
 *             ^first            ^passed             ^              ^cursor
 *
 * All functions are called under the stack's lock. Those that read the frame itself are also called
 * under KD_LOCK, or for a frame that cannot end because a range of it is still stolen.
 */
#ifndef KD_INDEX_H
#define KD_INDEX_H

#include "core/closure.h"
#include "core/stack.h"

enum kd_note_state { KD_WAITS, KD_READY, KD_TAKEN, KD_AWAY, KD_COMPLETE };

/* The readiness record of a closure. Positions are in units of 16 bytes from the stack's mem; 0 is
 * no closure. */
struct kd_note {
	uint32_t waiters; /* the first closure that waits for this one */
	uint32_t next;    /* in the list of waiters or the ready list */
	uint32_t link;    /* KD_WAITS: how far the chain of the waiting access has been walked.
			     KD_READY: the previous closure on the ready list.
			     KD_AWAY: the rank that retains its results, + 1.
			     KD_COMPLETE, at the begin of a stolen range: where the range ends */
	uint16_t units : 12; /* its size in units of 16 bytes: a walk need not read the closure */
	uint16_t later : 1;  /* a recorded closure uses what it wrote */
	uint16_t high : 1;   /* KDDS_PRIORITY_HIGH */
	uint8_t access : 5, state : 3; /* access: the one that waits. KD_AWAY: whether another
					  closure reads what this one wrote */
	uint8_t life;     /* that of the index if the record belongs to the frame's current epoch */
};

/* The index of a frame. */
struct kd_index {
	uint64_t gen; /* kd_frame_life; with head and bias, the epoch of the frame it describes */
	char *head;   /* of the frame's parent */
	uint32_t cursor, passed; /* positions */
	uint32_t ready, ready_end, ready_count; /* the ready list, oldest first: those in state
						   KD_READY */
	uint32_t bias;
	uint32_t press;   /* position of a reducing closure that the owner must get past: others
			     wait for that */
	uint8_t life;
	uint8_t ordered : 1; /* its closures run in reference order: see kd_index_ordered */
	/* Learned from steals from this frame; kept when it is emptied and filled again: */
	uint8_t rests : 7;   /* how often in a row its tasks were found too fine to steal; see
				kd_index_learn */
	uint16_t task_ns; /* time a thief needs for one of its tasks; 0: not known */
	uint64_t rest_ns; /* steal nothing from the frame until this time */
};

/* The mirror has 64 bytes for a frame header, minus 8 if the frame begins in the middle of the 32
 * bytes of a record. */
_Static_assert(sizeof(struct kd_index) <= 56,
	       "an index overlaps the record of its frame's first closure");
_Static_assert(sizeof(struct kd_note) == 16, "a record is as large as half the smallest closure");

/* A visitor's view of the frame: read once, head before tail. */
struct kd_view {
	struct kd_stack *stack;
	struct kdds_frame *frame;
	struct kd_index *index;
	char *first, *head, *tail;
	uint32_t thief; /* a rank, + 1: results that it retains count as complete; 0: no retained
			   results do; KD_ANYWHERE: all do */
};

#define KD_ANYWHERE UINT32_MAX

static inline uint32_t kd_position(const struct kd_stack *s, const char *c)
{
	return (uint32_t)((size_t)(c - s->mem) >> 4);
}

static inline char *kd_position_at(const struct kd_stack *s, uint32_t position)
{
	return s->mem + ((size_t)position << 4);
}

static inline struct kd_note *kd_note_at(const struct kd_stack *s, const char *c)
{
	return (struct kd_note *)(s->mirror + ((size_t)(c - s->mem) >> 5) * sizeof(struct kd_note));
}

static inline struct kd_index *kd_index_at(const struct kd_stack *s, const struct kdds_frame *f)
{
	return (struct kd_index *)(s->mirror + ((size_t)((const char *)f - s->mem) >> 1));
}

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

/* Records the closures after the range, for the next steal: enough for it to take twice the `taken`
 * closures of this one. Does not need KD_LOCK either. */
void kd_index_look_ahead(struct kd_view *v, uint32_t taken);

/* Rank `thief` has run the closures of a stolen range and retains the results: to all others they
 * are not complete. What waits for them, now or later, becomes an event in the stack's `news`. */
void kd_index_away(struct kd_view *v, const struct kd_range *range, uint32_t thief);
/* The retained results are being fetched. Until they have arrived, nothing that overwrites them may
 * begin, not even at the rank that retained them. */
void kd_index_fetch(struct kd_view *v, const struct kd_range *range);

/* Conditions that a range whose results are retained can meet; "one" is another closure. */
enum {
	KD_AWAY_WANTED = 1,   /* one waits to read the results, or for the owner to pass them */
	KD_AWAY_FOLLOWED = 2, /* one waits only for retained results, of this range or others */
	KD_AWAY_LATER = 4,    /* a later one uses them, or one not recorded yet may */
};

/* Which of the conditions in asked are true of such a range. */
unsigned kd_index_look_away(struct kd_view *v, const struct kd_range *range, unsigned asked);
/*
 * Like kd_index_take, for rank `thief`: takes a closure that waits only for results that the thief
 * retains, those of the range `away` and others. The owner cannot be about to reach it, so this
 * does not need KD_LOCK.
 */
int kd_index_follow(struct kd_view *v, const struct kd_range *away, uint32_t thief, uint32_t length,
		    int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		    struct kd_range *range_p);

/* The closures of a stolen range are complete: closures that waited for them may be ready now. The
 * view is of the range's frame. Returns their number, which is smaller than when the range was
 * stolen if other thieves have divided it. */
uint32_t kd_index_complete(struct kd_view *v, const struct kd_range *range);

/*
 * A thief ran count closures in ns. Short tasks are stolen many at a time, long ones singly. Tasks
 * that take a thief less than 60 ns cost about as much to steal as to run, so thieves leave their
 * frame alone for a while: 0.1 ms, doubled up to 6 ms each time the tasks are found too fine again.
 */
void kd_index_learn(struct kd_index *x, uint32_t count, uint64_t ns, uint64_t now_ns);
int kd_index_rests(const struct kd_index *x, uint64_t now_ns);

/* Whether the frame is known to have a ready closure that nobody has taken. */
int kd_index_has_ready(const struct kd_view *v);

#endif
