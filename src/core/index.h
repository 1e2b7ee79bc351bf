/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What thieves know about the closures of a frame: which are ready, which wait and for whom. The owner never looks (but for
 * the end of a stolen range). Readiness is computed once per closure and access: a closure is read when the frame's cursor
 * passes it and waits on one list at a time, that of the first closure before it that is not complete; when that one is, the
 * search goes on from where it was. So 10^6 closures in a frame cost each link once, not once per steal.
 *
 * The notes lie in the stack's mirror, at half the offset: 16 bytes for a closure, which is at least 32 long, 64 for a frame
 * header, which is 128 long. Nothing is allocated, and the lines the owner is about to read are not written.
 *
 *   first ... | complete, fired | ... head ...      | noted        | not looked at yet      tail
 *             ^first            ^passed             ^              ^cursor
 *
 * Everything here is called under the stack's lock; what reads the frame itself also under KD_LOCK, or for a frame that
 * cannot end because a range of it is still stolen.
 */
#ifndef KD_INDEX_H
#define KD_INDEX_H

#include "core/closure.h"
#include "core/stack.h"

enum kd_note_state { KD_WAITS, KD_READY, KD_TAKEN, KD_AWAY, KD_COMPLETE };

/* A closure's note. Positions are in units of 16 bytes from the stack's mem; 0 is no closure. */
struct kd_note {
	uint32_t waiters; /* first closure that waits for this one */
	uint32_t next;    /* in the waiters' or the ready list */
	uint32_t link;    /* of the access being waited for: how far its chain has been walked. KD_READY: the one before it on the
			     list. KD_AWAY: the rank where its results are, + 1. KD_COMPLETE at the beginning of a stolen range:
			     where it ends */
	uint16_t units : 12; /* its size in units of 16 bytes, so that walking needs no closure */
	uint16_t later : 1;  /* a closure that has been noted uses what it wrote */
	uint16_t high : 1;   /* KDDS_PRIORITY_HIGH */
	uint8_t access : 5, state : 3; /* access: the one that waits. KD_AWAY: whether somebody reads what it wrote */
	uint8_t life;     /* the index's: is this a note of the frame as it is now? */
};

/* A frame's notes. */
struct kd_index {
	uint64_t gen; /* kd_frame_life; with head and bias, the life of the frame they are about */
	char *head;   /* of the frame's parent */
	uint32_t cursor, passed; /* positions */
	uint32_t ready, ready_end, ready_count; /* a list, the oldest first: those in state KD_READY */
	uint32_t bias;
	uint32_t press;   /* position of a reducing closure that others wait for: the owner is to get past it */
	uint8_t life;
	uint8_t ordered : 1; /* its closures run in reference order: see kd_index_ordered */
	/* What steals from this frame have taught, kept when it is emptied and filled again: */
	uint8_t rests : 7;   /* times in a row that the tasks were found too fine to steal; see kd_index_learn */
	uint16_t task_ns; /* what one of its tasks takes a thief; 0: not known */
	uint64_t rest_ns; /* leave the frame alone until this time */
};

/* The mirror has 64 bytes for a frame header, less 8 when the frame begins in the middle of a note's 32. */
_Static_assert(sizeof(struct kd_index) <= 56, "an index overlaps the note of its frame's first closure");
_Static_assert(sizeof(struct kd_note) == 16, "a note is as large as half the smallest closure");

/* What a visitor knows of the frame: read once, head before tail. */
struct kd_view {
	struct kd_stack *stack;
	struct kdds_frame *frame;
	struct kd_index *index;
	char *first, *head, *tail;
	uint32_t thief; /* a rank, + 1, for which what is away there counts as complete; 0: none; KD_ANYWHERE: wherever it is */
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

/* Looks at frame f of s, brings its notes up to date with what the owner has done. 0: it has no closures. */
int kd_index_open(struct kd_view *v, struct kd_stack *s, struct kdds_frame *f);

/*
 * Whether nothing may be taken from the frame: the task it is of has been given one data twice, or two that overlap, and may write it. Its
 * children know the data by two references, so no link says which of them follows which; in reference order they do what they do
 * on one worker. Their own children can be taken.
 */
int kd_index_ordered(const struct kd_view *v);

/*
 * Finds where a range of up to length closures (0: a share of those that are ready, see share()) may begin, noting at most budget new
 * ones: so that it ends with the youngest that the caller may have, for the owner comes to that last, or with one of high priority.
 * Marks its first closure taken; *length_p is how many there may be. NULL: none. wanted(c, arg) says whether the caller may have c.
 */
char *kd_index_take(struct kd_view *v, unsigned budget, uint32_t length, int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		    uint32_t *length_p);
/* The range of at most length closures that begins at c, which has been taken: those behind it that wait for nothing outside. The owner
 * cannot get past c, so this needs no KD_LOCK. */
void kd_index_extend(struct kd_view *v, char *c, uint32_t length, int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		     struct kd_range *range_p);

/* Notes what lies behind, for the next steal: so much that it can take twice as many as the `taken` of this one. Likewise. */
void kd_index_look_ahead(struct kd_view *v, uint32_t taken);

/* The closures of a range stolen by rank `thief` have been run, and their results stay there for a while: for others than that rank
 * they are not complete. What waits for them, now or later, is the stack's `news`. */
void kd_index_away(struct kd_view *v, const struct kd_range *range, uint32_t thief);
/* The results are being fetched: until they are here, what overwrites them is not to be begun, not even where they come from. */
void kd_index_fetch(struct kd_view *v, const struct kd_range *range);

enum {
	KD_AWAY_WANTED = 1,   /* a closure waits to read the results, or for the owner to get past them */
	KD_AWAY_FOLLOWED = 2, /* one waits for nothing but results that are away, here or there */
	KD_AWAY_LATER = 4,    /* one will use them, or what is to come in the frame may */
};

/* Which of these, of those asked for, are true of such a range. */
unsigned kd_index_look_away(struct kd_view *v, const struct kd_range *range, unsigned asked);
/*
 * As kd_index_take, for rank `thief`: a closure that waits for nothing but the range, which is away there, and for others like it.
 * The owner cannot be about to reach it, so it needs no KD_LOCK.
 */
int kd_index_follow(struct kd_view *v, const struct kd_range *away, uint32_t thief, uint32_t length,
		    int (*wanted)(const struct kdds_closure *c, void *arg), void *arg, struct kd_range *range_p);

/* The closures of a stolen range are complete: what waited for them may be ready now. The view is of the range's frame. Returns how many
 * there were: others may have divided it. */
uint32_t kd_index_complete(struct kd_view *v, const struct kd_range *range);

/*
 * A thief ran count closures in ns. Short tasks are taken many at a time, long ones singly. Tasks that take a thief less than 60 ns
 * cost about as much to steal as to run, so their frame is left alone for a while: 0.1 ms, doubled up to 6 ms as long as it is found so.
 */
void kd_index_learn(struct kd_index *x, uint32_t count, uint64_t ns, uint64_t now_ns);
int kd_index_rests(const struct kd_index *x, uint64_t now_ns);

/* Whether the frame has a ready closure that nobody has taken, as far as is known. */
int kd_index_has_ready(const struct kd_view *v);

#endif
