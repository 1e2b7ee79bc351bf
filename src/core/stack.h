/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stack: the frames of one thread of execution, independent of the C stack, so that any worker can go on with it.
 *
 *   base (a range of closures stolen from another stack's frame; empty for main's stack)
 *    | its closures' frames:
 *   mem -> frame | closures | frame | closures | frame ...
 *          oldest                    top          next: the frame of the closure being run
 *
 * Who touches what: line 0 is the owner's; "flags" is where thieves make the owner stop and look; the last part belongs to
 * thieves, under "lock". A stack is type-stable: its memory stays a struct kd_stack until kdds_finalize, so that a thief
 * may look at one that has just ended.
 *
 * The lock between owner and thief is Dekker's, biased: the owner stores its claim (kdds_frame.head) and then loads flags,
 * with no fence between them. A thief sets KD_LOCK and then makes the owner's stores visible with membarrier(2), before it
 * reads any claim; from there to the clearing of KD_LOCK the owner cannot get past its next claim. While an owner is robbed
 * often it runs with KD_SHARED set: it fences each claim (it says so in "ack") and thieves need no membarrier.
 */
#ifndef KD_STACK_H
#define KD_STACK_H

#include "base/atomic.h"
#include "base/base.h"

struct kd_worker;
struct kd_stack;

/* From the names that one run of the owner's loop gives to frames (it counts on from its first) to those of the next: 2^64 times the
 * golden ratio, so that n runs are 2^64 / 2.7 n apart and none begins where another has. Copies of data in other processes
 * (gdata.h) outlive frames by far: with round steps of 2^40 their names came again after 2^24 runs. */
#define KD_SERIALS 0x9e3779b97f4a7c15u

/* A stolen range of closures [begin, end), of a frame of this process or of an import: what a thief owes its victim. */
struct kd_range {
	struct kd_stack *from; /* NULL: it is of an import */
	struct kdds_frame *frame;
	struct kd_import *import; /* import.h */
	uint64_t serial;          /* names the import as a frame's gen does the frame */
	char *begin, *end;
	uint32_t count;
	uint8_t independent; /* no closure of it waits for another: it may be divided */
	uint8_t more;        /* there was more to take */
	uint8_t fine;        /* of tasks so short that it is not worth dividing */
	uint8_t far;         /* the thief is another process */
	uint64_t start_ns;
};

enum {
	KD_LOCK = 1,   /* a thief is looking: wait at the next claim */
	KD_SHARED = 2, /* fence every claim */
	KD_POKE = 4,   /* a worker sleeps: wake it if there is work for it */
	KD_HALT = 8,   /* set this stack aside: its worker's bound stack can go on */
};

/* Of results that are away (index.h): a closure waits to read some; one waits that could follow them. */
enum { KD_NEWS_WANTED = 1, KD_NEWS_FOLLOWER = 2 };

struct kd_stack {
	/* owner */
	struct kdds_frame *top; /* frame whose closures are being run; thieves read */
	char *mem, *end;
	char *soft;        /* frames beyond it: the stack is deep, or (at end) full */
	uint64_t serial;   /* gen of the next frames */
	uint32_t bound;    /* bodies waiting in kdds_sync on a C stack: only this thread may go on with the stack */
	uint32_t merge;    /* a closure of the base range reduces into a private copy */
	struct kdds_frame *waiting; /* the frame of the innermost of them */
	uint64_t drains;   /* times a frame was emptied while its body went on; thieves read */
	uint32_t quiet;    /* claims since a thief was last seen */
	uint32_t seen;     /* visits at that time */
	struct kd_block *blocks; /* frame data that is not in the frame */
	struct kd_range range;
	char *spans;       /* span.h: as large as mem; NULL: nobody watches */

	/* both: RMW only, except the owner's load at every claim */
	uint32_t flags kd_aligned(KD_CACHE_LINE);
	uint32_t ack; /* owner writes: it fences its claims */

	/* thieves */
	uint32_t lock kd_aligned(KD_CACHE_LINE);
	uint32_t visits; /* sessions under the lock */
	uint32_t misses; /* of those, the last ones that found nothing */
	uint32_t divisible; /* the range in the base may be divided; a hint */
	uint32_t news;   /* KD_NEWS_: what the index has found and whoever visits is to pass on */
	uint32_t looked; /* links that the index has followed, for the tests */
	uint32_t active; /* in use: running, parked or halted */
	uint32_t life;   /* of thieves' notes, see index.h */
	uint64_t next_ns; /* when to look again */
	char *park;      /* the stolen closure whose end this stack waits for, nobody owning the stack meanwhile; marked by
			    kd_park_bound when its runner waits for it, at the foot of its C stack */
	char *mirror;    /* index.h: thieves' notes, half as large as mem */
	struct kdds_frame *low; /* see lowest() in steal.c */
	char *low_head;
	uint64_t low_gen, low_drains;
	uint64_t robbed; /* of the visits, the ones that took something */
	struct kd_worker *home;   /* in whose list it is */
	struct kd_worker *runner; /* who runs it; valid while bound */
	struct kd_stack *next;    /* in home's list; fixed */
	struct kd_stack *link;    /* in a free or a halted list */

	struct kdds_frame base kd_aligned(KD_CACHE_LINE);
};

/* Frame data from the allocator, freed once the frame it was made in has ended (see kd_block_alloc). */
struct kd_block {
	struct kd_block *next;
	struct kdds_frame *frame;
	uint64_t gen;
	char *head; /* of the frame's parent */
	void *data;
};

/* A new stack in home's list. Dies when there is no memory. */
struct kd_stack *kd_stack_create(struct kd_worker *home);
void kd_stack_destroy(struct kd_stack *s);

/* Makes an idle stack ready to run the range, or (range NULL) to be main's; the caller owns it. */
void kd_stack_start(struct kd_stack *s, const struct kd_range *range);
/* Its frames are all done: from here on no thief looks at it. Gives back the memory of a deep stack. */
void kd_stack_stop(struct kd_stack *s);
/* A frame is to begin at f, beyond soft: notes that, or dies because the stack is full. */
void kd_stack_deepen(struct kd_stack *s, const char *f);

/* Mutual exclusion of thieves; the owner takes part only when the stack starts, stops or changes hands. */
int kd_stack_trylock(struct kd_stack *s);
void kd_stack_lock(struct kd_stack *s);
void kd_stack_unlock(struct kd_stack *s);

static inline char *kd_park_bound(char *c)
{
	return c + 1;
}

/* The frame of the closure that is being run: what kdds_spawn pushes into. */
static inline struct kdds_frame *kd_stack_next(const struct kd_stack *s, struct kdds_frame *f)
{
	return (struct kdds_frame *)(f == &s->base ? s->mem : f->tail);
}

/* Empties f, whose closures, if any, are complete. A thief may be looking: it reads head, then tail, so tail goes first. With
 * head gone and the closures still there it would take those it has noted as ready for not yet run. */
static inline void kd_frame_reset(struct kdds_frame *f)
{
	kd_store_release(&f->tail, kd_frame_first(f));
	kd_store_release(&f->head, NULL);
}

/* The same for a frame whose body goes on: what has been noted of its closures, and the names that links give them, are void. The
 * bias last: under a new one a thief would find the old closures neither noted nor linked. */
static inline void kd_frame_renew(struct kdds_frame *f)
{
	uint32_t used = (uint32_t)((f->tail - kd_frame_first(f)) >> 3), bias = f->bias + used;

	kd_frame_reset(f);
	if (bias < used)
		kd_store_release(&f->turns, f->turns + 1);
	kd_store_release(&f->bias, bias);
}

/* Names, with the bias, what f is between two times that it is emptied. By gen and bias alone it would be what it was 32 GiB of
 * closures ago: notes, and copies in other processes, can be older. */
static inline uint64_t kd_frame_life(const struct kdds_frame *f)
{
	return kd_load_relaxed(&f->gen) + 0x94d049bb133111ebu * (uint64_t)kd_load_acquire(&f->turns);
}

static inline void kd_frame_init(struct kdds_frame *f, struct kdds_frame *parent, char *limit, uint64_t gen)
{
	kd_store_relaxed(&f->limit, limit);
	kd_store_relaxed(&f->gen, gen);
	f->parent = parent;
	kd_frame_reset(f);
}

/* Memory for frame f, the running one of s; freed some time after the frame has ended. */
void *kd_block_alloc(struct kd_stack *s, struct kdds_frame *f, size_t size, size_t align);

#endif
