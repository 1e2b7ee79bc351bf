/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stack: the frames of one thread of execution. It is independent of the C stack, so any worker
 * can continue it.
 *
 *   base (a range of closures stolen from another stack's frame; empty for main's stack)
 *    | its closures' frames:
 *   mem -> frame | closures | frame | closures | frame ...
 *          oldest                    top          next: the frame of the running closure
 *
 * Three groups of fields: line 0 belongs to the owner; thieves set "flags" to make the owner stop
 * and look; the last group belongs to thieves and is protected by "lock". A stack is type-stable:
 * its memory remains a struct kd_stack until kdds_finalize, so a thief may look at one that has
 * just ended.
 *
 * The lock between owner and thief is Dekker's algorithm, biased: the owner stores its claim
 * (kdds_frame.head) and then loads flags, with no fence in between. A thief sets KD_LOCK and then
 * makes the owner's stores visible with membarrier(2) before it reads any claim. From then until
 * KD_LOCK is cleared, the owner cannot get past its next claim. While an owner is robbed often, it
 * runs with KD_SHARED set: it fences each claim (and sets "ack" to say so), and thieves need no
 * membarrier.
 */
#ifndef KD_STACK_H
#define KD_STACK_H

#include "base/atomic.h"
#include "base/base.h"

struct kd_parts;
struct kd_worker;
struct kd_stack;

/* The distance between the first frame names of two consecutive runs of the owner's loop; each run
 * counts on from its first name. 2^64 times the golden ratio: the first names of n runs are
 * 2^64 / 2.7 n apart, and no two are equal. Copies of data in other processes (copies.h) live much
 * longer than frames: with round steps of 2^40 the names repeated after 2^24 runs. */
#define KD_SERIALS 0x9e3779b97f4a7c15u

#define KD_ARENA_SHARE 8 /* a stack's arena has an eighth of its address space */

/* A stolen range of closures [begin, end) of a frame of this process or of an import. The thief
 * returns it to its victim when the closures are complete. */
struct kd_range {
	struct kd_stack *from; /* NULL: the range belongs to an import */
	struct kdds_frame *frame;
	struct kd_import *import; /* import.h */
	uint64_t serial;          /* identifies the import, as gen identifies a frame */
	char *begin, *end;
	uint32_t count;
	uint8_t independent; /* no closure of it waits for another: it may be divided */
	uint8_t more;        /* the thief could have taken more */
	uint8_t fine;        /* its tasks are too short for the range to be worth dividing */
	uint8_t remote;      /* the thief is another process */
	uint8_t stays;       /* the rank that it goes to must not pass it on (place.h) */
	uint64_t start_ns;
	uint64_t whole_ns; /* until then other ranks get no part of it: its data have just come */
};

enum {
	KD_LOCK = 1,   /* a thief is visiting: the owner waits at its next claim */
	KD_SHARED = 2, /* the owner fences every claim */
	KD_HINT = 4,   /* wake hint: a worker sleeps; wake it if there is work for it */
	KD_HALT = 8,   /* set this stack aside: its worker's bound stack can continue */
	KD_FAILING = 16, /* tasks have failed: look at the inputs of each closure (fail.h) */
	KD_AHEAD = 32, /* run LOCAL closures ahead of reference order (ahead.h) */
	KD_PASS = 64,  /* closures of other ranks wait for what the owner runs (place.h): say when
			  it goes on */
	KD_ELSEWHERE = 128, /* results are retained elsewhere: look where the data of each closure
			       are (place.h) */
	KD_UNSHARE = 256, /* a thief takes one successor after another (successor.h), and nobody
			     has visited meanwhile: fence no more */
};

/* An event: a closure may be given to the rank that it belongs to (place.h). */
#define KD_STACK_PLACED 1u

/* Where calls in place of closures are counted (KDDS_STATS=counts). The floor of the frames is the
 * address of this with KD_FLOOR_COUNTS added: above every C stack, so that each spawn asks
 * (kd_counted). */
struct kd_calls {
	uint64_t calls;
	char *floor; /* a call needs the stack pointer above it */
};

#define KD_FLOOR_COUNTS ((uintptr_t)1 << (8 * sizeof(uintptr_t) - 1)) /* bit 63 in keep.c */

struct kd_stack {
	/* owner */
	struct kdds_frame *top; /* the frame whose closures are running; thieves read */
	char *mem, *end;
	char *floor;       /* the frames': KD_FLOOR_PUSH, or the current worker's */
	char *soft;        /* a frame beyond it: the stack is deep or, if soft is near end, full */
	uint64_t serial;   /* gen of the next frames */
	uint32_t bound;    /* bodies that wait in kdds_sync on a C stack: if not 0, only this thread
			      may continue the stack */
	uint32_t merge;    /* a closure of the base range reduces into a private copy */
	struct kdds_frame *waiting; /* the frame of the innermost waiting body */
	uint64_t drains;   /* times a frame was emptied while its body continued; thieves read */
	uint32_t quiet;    /* claims since the last visit of a thief */
	uint32_t seen;     /* visits at that time */
	uint32_t alone;    /* so many stolen closures are watched for longer before the owner looks
			      for others: the last time it found none */
	struct kd_block *blocks; /* frame data from the allocator, the youngest first */
	size_t left_bytes; /* of those whose scope has been left */
	struct kd_block *spare; /* freed, the youngest first */
	size_t spare_bytes;
	struct kd_parts *parts, *spare_parts; /* parts.h */
	struct kd_range range;
	char *arena;       /* for the data of bodies */
	char *spans;       /* span.h: as large as mem; NULL: no observers */

	/* both: read-modify-write only, except for the owner's load at every claim */
	uint32_t flags kd_aligned(KD_CACHE_LINE);
	uint32_t ack; /* the owner writes: it fences its claims */

	/* thieves */
	uint32_t lock kd_aligned(KD_CACHE_LINE);
	uint32_t visits; /* visits of thieves, each under the lock */
	uint32_t misses; /* how many of the latest visits, in a row, found nothing */
	uint32_t changes;  /* how often something may have become ready other than by the owner */
	uint32_t searched; /* changes + 1 when a visit to the parked stack found nothing ready;
			      until the next change another one finds nothing either */
	uint32_t divisible; /* the range in the base may be divided; a hint */
	uint32_t events; /* KD_STACK_: events recorded by the index, passed on by the visitor */
	uint32_t looked; /* links that the index has followed, for the tests */
	uint32_t active; /* in use: running, parked or halted */
	uint32_t placed; /* closures of its frames that have yet to be given to their ranks
			    (place.h). Atomic, and may be too large until main has waited, or the
			    stack ends */
	uint32_t epoch;   /* epoch of the latest readiness records, see record.h */
	uint64_t next_ns; /* when to look again, */
	uint64_t early_ns; /* or from then on if the owner has claimed another closure: */
	struct kdds_frame *watched; /* the frame of the last one had this head; */
	char *watched_head;
	struct kdds_frame *asked; /* or if a body that was asked for closures has pushed: its frame */
	char *asked_tail;         /* had this tail. Hints: thieves may store both without the lock */
	uint32_t vain;    /* how many visits in a row found nothing although it had */
	uint32_t lead;    /* ahead.h; 0: nothing has waited for LOCAL closures */
	uint32_t given;   /* other ranks have taken some since it was last set */
	char *park;      /* the stolen closure whose completion this stack waits for. Nobody owns
			    the stack meanwhile, unless the closure is marked (kd_park_bound):
			    then the runner waits for it at the foot of its C stack */
	char *records;   /* record.h: the readiness records, half as large as mem */
	struct kdds_frame *low; /* see kd_visit_lowest() */
	char *low_head;
	uint64_t low_gen, low_drains;
	uint64_t robbed; /* number of visits that took something */
	struct kd_worker *home;   /* the worker whose list holds the stack */
	/* memory of data that bodies have made is about to be freed; NULL: nobody needs to know */
	void (*gone)(struct kd_stack *s, const void *p, size_t bytes);
	struct kd_worker *runner; /* who runs it; valid while bound */
	struct kd_stack *next;    /* in home's list; never changes */
	struct kd_stack *link;    /* in a list of free or of halted stacks */

	struct kdds_frame base kd_aligned(KD_CACHE_LINE);
};

/* The header of frame data from the allocator. They are freed after the frame they were made in has
 * ended, or after their scope has been left and the frame is empty (kd_blocks_sweep). */
struct kd_block {
	struct kd_block *next;
	struct kdds_frame *frame;
	uint64_t gen;
	char *head; /* of the frame's parent */
	size_t bytes;
	void *memory;
	int left; /* its scope has been left */
} kd_aligned(KD_CACHE_LINE);

/* Creates a stack in home's list. Ends the program if there is no memory. */
struct kd_stack *kd_stack_create(struct kd_worker *home);
void kd_stack_destroy(struct kd_stack *s);

/* Prepares an idle stack to run the range, or (range NULL) to be main's. The caller owns it. */
void kd_stack_start(struct kd_stack *s, const struct kd_range *range);
/* All its frames are done: no thief looks at it from here on. Returns the memory of a deep stack
 * to the system. */
void kd_stack_stop(struct kd_stack *s);
/* A frame is about to begin at f, beyond soft: moves soft, or ends the program because the stack is
 * full. */
void kd_stack_deepen(struct kd_stack *s, const char *f);

/* Mutual exclusion of thieves. The owner takes the lock only when the stack starts, stops or
 * changes hands. */
int kd_stack_trylock(struct kd_stack *s);
void kd_stack_lock(struct kd_stack *s);
void kd_stack_unlock(struct kd_stack *s);
/* Whether the calling thread holds the lock. Defined in debug builds only, where the lock word
 * names its holder. */
int kd_stack_locked(const struct kd_stack *s);
#define kd_assert_locked(s) kd_assert(kd_stack_locked(s))

static inline char *kd_park_bound(char *c)
{
	return c + 1;
}

/* The frame of the running closure: kdds_spawn pushes into it. */
static inline struct kdds_frame *kd_stack_next(const struct kd_stack *s, struct kdds_frame *f)
{
	return (struct kdds_frame *)(f == &s->base ? s->mem : f->tail);
}

/* Empties f, whose closures, if any, are complete. A thief may be looking: it reads head, then
 * tail, so tail is reset first. If it found no head but the closures still there, it would take
 * those recorded as ready for closures that have not run. */
static inline void kd_frame_reset(struct kdds_frame *f)
{
	kd_store_release(&f->tail, kd_frame_first(f));
	kd_store_release(&f->head, NULL);
}

/* The same for a frame whose body continues: the readiness records of its closures, and the names
 * that links give them, become void. The link base is stored last: under a new one a thief would
 * find the old closures neither recorded nor linked. */
static inline void kd_frame_renew(struct kdds_frame *f)
{
	uint32_t used = (uint32_t)((f->tail - kd_frame_first(f)) >> 3);
	uint32_t link_base = f->link_base + used;

	kd_frame_reset(f);
	if (link_base < used)
		kd_store_release(&f->turns, f->turns + 1);
	kd_store_relaxed(&f->waited, 0);
	kd_store_release(&f->link_base, link_base);
}

/* With the link base, identifies the epoch of f: its use between two times that it is emptied. gen
 * and link base alone would repeat after 32 GiB of closures, and readiness records and copies in
 * other processes can be older than that. */
static inline uint64_t kd_frame_epoch(const struct kdds_frame *f)
{
	uint64_t gen = kd_load_relaxed(&f->gen), turns = kd_load_acquire(&f->turns);

	return gen + 0x94d049bb133111ebu * turns;
}

typedef uint32_t kd_flags __attribute__((may_alias));

/* The frame is empty: forgets the body whose it was. */
static inline void kd_frame_clear(struct kdds_frame *f)
{
	f->arena = f->keep = f->parent->keep;
	kd_store_relaxed((kd_flags *)(void *)&f->ordered, 0); /* failed, waited and used, too */
}

static inline void kd_frame_init(const struct kd_stack *s, struct kdds_frame *f,
				 struct kdds_frame *parent, char *limit, uint64_t gen)
{
	kd_store_relaxed(&f->limit, limit);
	kd_store_relaxed(&f->floor, s->floor);
	kd_store_relaxed(&f->gen, gen);
	f->parent = parent;
	f->arena_end = parent->arena_end;
	kd_frame_clear(f);
	kd_frame_reset(f);
}

/* The same for a frame that has ended: it is the next body's, which may call again. */
static inline void kd_frame_reuse(const struct kd_stack *s, struct kdds_frame *f)
{
	kd_frame_reset(f);
	kd_store_relaxed(&f->floor, s->floor);
	kd_frame_clear(f);
}

/* Allocates memory for frame f, the running frame of s. */
void *kd_block_alloc(struct kd_stack *s, struct kdds_frame *f, size_t size, size_t align);
/* The scope of the data is left, unless kdds_finalize has freed them before. 0: closures of the
 * frame may use them. */
int kd_block_leave(struct kd_stack *s, const void *data);
/* Frees blocks that nobody can use: of frames that have ended and, if f, the running frame of s, is
 * empty, those of its blocks whose scope has been left. */
void kd_blocks_sweep(struct kd_stack *s, const struct kdds_frame *f);

#endif
