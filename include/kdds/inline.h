/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The part of libkdds that is compiled into programs: the layouts of closures, access records and
 * frames, and the straight-line code that pushes a closure. All data here are private to the owner
 * or published by one release store. Operations that may block, allocate or fail are calls into the
 * library.
 *
 *   stack     | frame | closure | closure | closure ...| frame | closure ...
 *               |        |                             ^tail
 *               |        +- access records: data, last writer, last accessor
 *               +- tail: where the next frame begins, fixed once the body has returned
 *
 * A frame holds the closures that one task has committed, contiguously and in reference order. A
 * link names a closure by its address in units of 8 bytes plus a link base, which changes each time
 * the frame is emptied and reused (see kd_link_of). A thief converts a link to an address without a
 * table, and the owner maintains no counter.
 */
#ifndef KDDS_INLINE_H
#define KDDS_INLINE_H

#include <stddef.h>
#include <stdint.h>

/* configure makes the same checks when the library is built. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libkdds needs a little-endian machine: links of data are taken two at a time, and so are messages"
#endif
#if __SIZEOF_POINTER__ != 8
#error "libkdds needs a 64-bit machine: each stack reserves address space by the gigabyte, and layouts count on 8-byte pointers"
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** How a task accesses one shared parameter: the access modes of Athapascan (T. Gautier,
 *  J.-L. Roch, F. Wagner, "Fine Grain Distributed Implementation of a Dataflow Language with
 *  Provable Performances", 2007, section 2). */
enum kdds_mode {
	KDDS_MODE_ANY = 0, /**< not a shared parameter: data of the body itself, any use allowed */
	KDDS_R = 1,        /**< read */
	KDDS_W = 2,        /**< overwrite without reading the old value */
	KDDS_RW = 3,       /**< exclusive update */
	KDDS_CW = 4        /**< cumulative write: a contribution to a reduction */
};

/** Functions that the library calls must not throw, because nothing catches the exception. Part of
 *  the type of a function since C++17. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define KD_NOEXCEPT noexcept
#else
#define KD_NOEXCEPT
#endif

/** The code of a task that has failed by an exception; no errno value. */
#define KDDS_EXCEPTION (-65536)

#define KDDS_MAX_ACCESSES 16 /**< shared parameters a task may have */
#define KDDS_MAX_PARAMS 16   /**< parameters a KDDS_TASK may have, values included */

/** @cond internal */
#define KD_CLOSURE_MAX 65520 /* bytes of a closure: a multiple of 16 in its 16 bits */
#define KD_ALIGN_MAX 4096    /* largest alignment of shared data that their copies preserve */
#define KD_ROOM_MAX 1024     /* largest private copy of reduced data that a closure has room for */
/** @endcond */

struct kd_uses;
struct kdds_closure;
struct kdds_frame;

/** A reduction: an associative operator and its neutral element, over arrays of elements of @c size
 *  bytes. */
struct kdds_op {
	const char *name;
	size_t size;                                            /**< bytes of one element */
	void (*neutral)(void *x, size_t n) KD_NOEXCEPT;         /**< x[0..n) = neutral element */
	/** x[i] = x[i] op contribution[i], left to right */
	void (*merge)(void *x, const void *contribution, size_t n) KD_NOEXCEPT;
	int exact; /**< same bits for any grouping; the owner may accumulate in place */
};

/** Converts a data item to bytes and back, for its transfer to another process. Never called for
 *  tasks that run in their own process. */
struct kdds_pack {
	size_t (*bytes)(const void *data) KD_NOEXCEPT;          /**< bytes that pack will write */
	void (*pack)(const void *data, void *buffer) KD_NOEXCEPT;
	/** replaces the value at data, which may be all zeroes */
	void (*unpack)(void *data, const void *buffer, size_t bytes) KD_NOEXCEPT;
	/** frees what unpack has allocated in a copy that is no longer needed; may be NULL */
	void (*release)(void *data) KD_NOEXCEPT;
};

/** The shape of a data item: rows x cols elements, with consecutive rows ld elements apart. rows 0
 *  means one element and no array. */
struct kdds_shape {
	size_t rows, cols;            /**< a vector is one row */
	size_t ld;                    /**< elements from one row to the next, >= cols */
	const struct kdds_pack *pack; /**< NULL: the bytes are transferred unchanged */
};

/** One shared parameter of a task type. */
struct kdds_param {
	uint32_t offset;          /**< of its access record in the closure */
	uint16_t mode;            /**< enum kdds_mode */
	uint8_t array;            /**< the record is a struct kdds_access_array */
	uint8_t pointers;         /**< the data is a pointer, or a C++ object that is not trivially
				       copyable, or an array of these */
	uint32_t size;            /**< bytes of the data, or of one element of an array */
	uint32_t room;            /**< KDDS_CW: offset of the space for a private copy, after its
				       struct kdds_access_reduce; 0: none */
	const struct kdds_op *op; /**< KDDS_CW only */
	const char *name;         /**< NULL: it has none */
};

/* In array: the parameter is a list. At offset is a struct kdds_list_items. */
#define KD_LIST 2

/** A task type: one per KDDS_TASK, or created by kdds_type_create. */
struct kdds_type {
	void (*run)(struct kdds_closure *c, struct kdds_frame *f);
	uint32_t size;   /**< bytes of a closure, a multiple of 16 */
	uint16_t naccess;
	uint16_t reduces; /**< at least one access is KDDS_CW */
	const struct kdds_param *access;
	const char *name;
	uint32_t magic;   /**< KD_TYPE_MAGIC if other processes may receive closures of the type;
			       the receiver checks it before it uses the type */
	uint16_t pointers; /**< an immediate value is a pointer: closures stay in their process */
	uint16_t lists;    /**< parameters that are lists, which naccess does not count. Closures are
				of types that the library derives, one for each number of items,
				where each item is an access */
	const struct kdds_loop *loop; /**< NULL: it is none */
};

#define KD_TYPE_MAGIC 0x6b646473u

/** A parameter that kdds_for cuts. */
struct kdds_cut {
	uint32_t offset; /**< of its access record in the closure, or of its struct kdds_range */
	uint32_t size;   /**< bytes of an element; 0: a RANGE */
	const char *name; /**< NULL: the end of the table */
};

/** A task as a loop: its closures are those of the task, followed by a struct kdds_loop_part. */
struct kdds_loop {
	const struct kdds_type *body;
	const struct kdds_cut *cuts;
	uint32_t part; /**< offset of the struct kdds_loop_part */
};

struct kdds_loop_part {
	uint64_t length; /**< indices */
	uint64_t leaf : 40;  /**< indices per leaf of the tree by which contributions are combined;
				  0: to be chosen */
	uint64_t ranks : 11; /**< it is to be spread over so many ranks, */
	uint64_t first : 11; /**< from this one on */
	uint64_t whole : 1;  /**< it is not divided where its data lie: it is a part */
};

/** The indices of a RANGE parameter: begin <= k < end. */
struct kdds_range {
	size_t begin, end;
};

/** The head of a closure. Access records and values follow at the offsets that its type gives. */
struct kdds_closure {
	const struct kdds_type *type;
	uint16_t bytes; /**< its size. It is here, and not read through type, because finding the
			     next closure is the owner's longest chain of dependent loads */
	uint16_t attr;  /**< spawn attributes, KDDS_LOCAL ... */
	uint32_t state; /**< internal to the library. Initially 0, or KD_SPECIAL if the closure
			     reduces with an operator that is not exact */
};

/** A closure's access to one data item, with the two links that order it after other closures of
 *  the same frame (see kd_link_of). A link of 0 means none. */
struct kdds_access {
	void *data;
	uint32_t w; /**< the last closure before this one that writes the data */
	uint32_t p; /**< the last closure before this one that uses the data in any mode */
};

/**
 * The access of a single REDUCE parameter. Space for a private copy follows if the type provides
 * it. Thieves may read the links while the owner begins to run the closure, so the links do not
 * change.
 */
struct kdds_access_reduce {
	struct kdds_access a;
	void *original; /**< the data, while `a` refers to the private copy */
};

/** The access of an _ARRAY parameter, whose data has a shape. */
struct kdds_access_array {
	struct kdds_access a;
	struct kdds_shape shape;
};

/** Where in the closure the items of a list are: one struct kdds_access_array after another. */
struct kdds_list_items {
	uint32_t count;
	uint32_t at; /**< offset of the first */
};

/** The references that a spawn passes for one shared parameter: one, or those of a list. */
struct kdds_given {
	const void *const *refs;
	size_t n;
};

/**
 * A data item as the body of one task sees it: its address, and the last closures committed by this
 * body that use it. The anchor is a local object of the body (compilers keep it in registers); the
 * children have copies of its links.
 */
struct kdds_anchor {
	void *data;
	int32_t single;  /**< KD_USABLE(mode): how the body itself may use the data; 0: only _ARRAY
			      parameters accept it */
	int16_t use;     /**< KD_USE(mode): the same for _ARRAY parameters */
	uint16_t shaped; /**< it is a struct kdds_anchor_array; KD_TRACKED, KD_WHOLE */
	struct kdds_anchor *self; /**< a reference may point to the anchor as to a handle */
	uint64_t links; /**< w (the low half) and p of struct kdds_access, in one word, so that each
			     use takes one load and one store */
} __attribute__((may_alias));

/*
 * What a reference points to, unless it points to the anchor itself: the address of the data, again,
 * and the anchor. Functions that are not inlined get the anchor. So compilers keep handles in
 * registers, and the address of what a body writes is known early: had it been loaded after a call,
 * later loads would wait for it (a third of the time of fib).
 */
struct kd_handle {
	void *data;
	uint64_t kind; /**< KD_HANDLE, which no anchor has there */
	struct kdds_anchor *anchor;
} __attribute__((may_alias));
#define KD_HANDLE 0x776569766b646473u

/* Values that memory is unlikely to hold, so the comparison that every use needs also detects
 * pointers that are not to anchors, and anchors that were not bound. */
#define KD_USABLE(mode) (INT32_MIN + (int32_t)KD_USE_CODE(mode))
#define KD_USE(mode) (int16_t)(INT16_MIN + (int16_t)KD_USE_CODE(mode))
#define KD_USE_CODE(mode) \
	((mode) == KDDS_CW ? KD_USE_CW : (mode) == KDDS_R ? KD_USE_R : (int)(mode))
/* These show in sums of up to KDDS_MAX_ACCESSES uses: see kd_fresh. */
#define KD_USE_CW 64
/* Added to KD_USE: memory of the program, which other anchors may share; and, with it, bound by a
 * body that was called: to its callers the links of the anchor are not known. */
#define KD_USE_BOUND 128
#define KD_USE_PART 256
#define KD_USE_HOW (KD_USE_BOUND | KD_USE_PART)
#define KD_USE_R 4096

/** The anchor of data with a shape. */
struct kdds_anchor_array {
	struct kdds_anchor a;
	struct kdds_shape shape;
} __attribute__((may_alias));

/** The anchor of a part of an array that the body may write. */
struct kd_part {
	struct kdds_anchor_array array;
	struct kdds_anchor *whole; /**< of which array it is a part, directly or not */
	size_t size;               /**< bytes of an element */
} __attribute__((may_alias));

/* In shaped. Their sums lie above those of uses. */
#define KD_TRACKED 16 /**< a struct kd_part: the library has its links (parts.h) */
#define KD_WHOLE 32   /**< closures use parts of it */
#define KD_TRACKED_LINK (KD_NO_LINK | 4u) /**< in place of links: none, but it is not fresh */

#define KD_FRAME_DATA 64 /**< bytes of the arena that a body takes at its first KDDS_DATA */
/** Larger data are allocated, not in the arena. */
#define KD_IS_LARGE(size, align) ((size) > 4096 || (align) > 4096)

/**
 * The closures of one task, and of those that were called in its place (kd_callable). The owner
 * writes all fields; thieves read them under the lock of the stack, and write only limit and floor.
 * The owner uses scalar stores only: on Zen 4 a 4-byte load of what a 16-byte vector store has
 * written waits 10 cycles, and after an 8-byte store 1 cycle.
 */
struct kdds_frame {
	char *tail;   /**< end of the closures; the owner publishes each closure by advancing it */
	char *head;   /**< the running closure, before which all are complete; NULL: none has run */
	char *limit;  /**< a push beyond it calls the library, because the window is full or, if
			   limit is NULL, because a thief requests attention */
	char *resume; /**< the closure of the parent to run when this frame is done; NULL: the
			   closure at the parent's head reduces and must be finished first */
	struct kdds_frame *parent;
	uint64_t gen; /**< epoch of the frame; readiness records of another epoch are invalid */
	uint32_t link_base; /**< see kd_link_of. Not initialised: any initial value works */
	uint32_t turns; /**< how often link_base has wrapped around; not initialised either */
	char *floor; /**< a spawn with the stack pointer below it pushes a closure; above every
			  stack if closures are wanted */
	char *arena; /**< the data of all bodies on the C stack lie below it */
	char *arena_end;
	char *keep; /**< closures may use what lies below it; it is not above arena */
	char ordered; /**< thieves take nothing: links do not order all of its closures */
	char failed; /**< one of its closures, or a descendant of one, has failed (fail.h) */
	char waited; /**< the body may have written data between closures: see kd_outgoing_make */
	char used; /**< KD_CALLED, KD_RAISED, or 0: one byte, which the owner's loop tests */
	char pad[36]; /* thieves have half the size of a frame for what they record of it */
	/* closures follow */
};

#define KD_RAISED 1 /* keep, to arena, by a function or while closures ran */
#define KD_CALLED 2 /* the running body has called others; keep may have been raised, too */

typedef uint64_t kd_word __attribute__((may_alias));

/* Links are odd. An anchor has this in place of none if it is not a single object that the body may
 * use in any way and that no other anchor can refer to: a spawn has to look at its use. */
#define KD_NO_LINK 2u

/** Initial state of a closure that reduces into private copies. */
#define KD_SPECIAL 4u
/** The same of one that is not to run, */
#define KD_OVER 32u
/** because its body has been called and has failed, which others are to know when it is claimed. */
#define KD_UNMARKED 128u
/** The same of one that has a rank; the bits above, and attr, have its number (KD_ON_RANK). */
#define KD_PLACED 256u
/** The number r of a rank as spawn attributes: KD_PLACED, bits 0 to 12 in attr and bits 13 to 19 in
 *  state. A constant if r is one, and r is evaluated once: the product has r twice, the mask keeps
 *  bits 0 to 12 of the one and 13 to 19 of the other, and the remainder adds the two halves. */
#define KD_ON_RANK(r) \
	((KD_PLACED << 16) | (uint32_t)((((uint32_t)(r) * (uint64_t)0x100000000001u) & \
					 0xfe00000000001fffu) % 0xffffffffu))

#define KD_ROUND16(n) (((n) + 15u) & ~(size_t)15u)
#define KD_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* At -O2, compilers leave functions of this size to a call, and then constants are not known. */
#define KD_INLINE __attribute__((always_inline)) static inline
/* A body, too, which they would call from two places. At -O0 debuggers step into it. */
#ifdef __OPTIMIZE__
#define KD_INLINE_BODY KD_INLINE
#else
#define KD_INLINE_BODY static inline
#endif

/** @cond internal */
struct kdds_frame *kdds_frame_current(void) __attribute__((returns_nonnull));
char *kdds_push_slow(const char *end) __attribute__((cold));
void kdds_place(uint32_t attributes) __attribute__((cold));
void kdds_examine(const struct kd_uses *u) __attribute__((cold));
void *kdds_frame_alloc(struct kdds_frame *f, size_t size, size_t align);
void kdds_frame_check(struct kdds_frame *f) __attribute__((cold));
int kdds_frame_count(struct kdds_frame *f) __attribute__((cold));
void *kdds_frame_extend(struct kdds_frame *f, char *top, size_t size, size_t align)
	__attribute__((cold));
void kdds_data_leave(const void *data);
char *kdds_list_push(struct kdds_frame *f, const struct kdds_type *type, uint32_t attr,
		     uint32_t state, const struct kdds_given *given);
const void *const *kdds_list_open(struct kdds_closure *c, size_t offset, uint32_t mode);
void kdds_list_close(void *list);
void kdds_loop_begin(struct kdds_closure *c, const struct kdds_loop *loop);
void kdds_loop_run(struct kdds_closure *c, struct kdds_frame *f, const struct kdds_loop *loop);
void kdds_exception(const char *what, const char *name, const char *text)
	__attribute__((noreturn, cold));
void kdds_fail_task(const struct kdds_type *type, int code, const char *text)
	__attribute__((cold));
void kdds_fail_running(void) __attribute__((cold));
void kdds_no_reference(const char *task, const char *param) __attribute__((noreturn, cold));
void kdds_reference_error(const char *task, const char *param, int use, uint32_t mode)
	__attribute__((noreturn, cold));

#define KD_HANDLES 4 /* to which kd_renew applies, and so many scalars */

/* Where it applies to scalars: in C++ there is no way to reach them (KD_ENTRY), and clang gains
 * nothing. */
#if defined(__OPTIMIZE__) && defined(__x86_64__) && !defined(__cplusplus) && !defined(__clang__)
#define KD_SCALARS
#endif

/* A VALUE of the body that is an integer or a pointer of size bytes, 4 or 8. */
struct kd_scalar {
	void *at;
	size_t size;
};

/* What a body has of the arena of its stack. Compilers keep it in registers. */
struct kd_room {
	char *top; /* end of its data */
	char *base; /* of the first KD_FRAME_DATA bytes, */
	uint32_t used; /* so many of which are in use */
	int unchecked; /* the body runs a closure whose arguments may overlap */
	int called;    /* the body was called */
	int parts;     /* and has bound memory */
	int failed;    /* kdds_fail */
	uint32_t start; /* called: the link of the next closure when it began; or 0 */
	const struct kdds_type *type; /* of its task */
	int renewed;   /* kd_renew has been called */
	struct kd_handle *handles[KD_HANDLES]; /* of its first parameters, then NULL */
	struct kd_scalar scalars[KD_HANDLES];  /* its last VALUEs that are scalars */
};

/* Outside the body of a task (main, a helper function) NULL selects the running frame of the
 * calling thread. */
static struct kdds_frame *const kd_self __attribute__((unused)) = NULL;
static struct kd_room *const kd_room __attribute__((unused)) = NULL;

KD_INLINE struct kdds_frame *kd_frame_of(struct kdds_frame *f)
{
	return f ? f : kdds_frame_current();
}

KD_INLINE char *kd_frame_first(struct kdds_frame *f)
{
	return (char *)(f + 1);
}

#if defined(__SANITIZE_THREAD__)
#define KD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KD_TSAN 1
#endif
#endif

/*
 * A push beyond the limit. With an ordinary call, compilers would keep the values that a body
 * needs after a push in callee-saved registers, and would save six of these at the entry of the
 * body, even in leaf tasks; this takes a sixth of the time of a dataflow fib. kdds_push_keep
 * therefore preserves all registers except two. The code jumps to it instead of calling it,
 * because there may be a red zone below the stack pointer.
 */
#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__)
#define KD_KEEP 1
#endif
#if defined(KD_KEEP) && !defined(KD_TSAN)
void kdds_push_keep(void); /* declares the symbol; C cannot call it */
KD_INLINE char *kd_slow_push(char *end)
{
	__asm__ volatile("lea 1f(%%rip), %%r11\n\tjmp *kdds_push_keep@GOTPCREL(%%rip)\n1:"
			 : "+a"(end) : : "r11", "cc", "memory");
	return end;
}
#else
#define kd_slow_push kdds_push_slow
#endif

/* Returns the place for a closure of size bytes in the running frame. keep: registers, rather than
 * what compilers know of memory. */
KD_INLINE char *kd_push(struct kdds_frame *f, size_t size, int keep)
{
	char *c = f->tail;

	if (KD_UNLIKELY(c + size > __atomic_load_n(&f->limit, __ATOMIC_RELAXED)))
		c = keep ? kd_slow_push(c + size) : kdds_push_slow(c + size);
	return c;
}

/*
 * The link by which later closures refer to the closure at c: its address in units of 8 bytes plus
 * the link base of the frame. The link base advances each time the frame is emptied and its memory
 * is reused, so old links refer to no closure. Closures are aligned to 16 bytes; the low bit is set
 * so that no link is 0.
 */
KD_INLINE uint32_t kd_link_of(struct kdds_frame *f, const char *c)
{
	uint32_t base = __atomic_load_n(&f->link_base, __ATOMIC_RELAXED);

	return ((uint32_t)((uintptr_t)c >> 3) + base) | 1u;
}

/* The same for the next closure. The owner alone writes the base: without an atomic load, compilers
 * leave out a link that a body does not need. */
KD_INLINE uint32_t kd_link_next(const struct kdds_frame *f)
{
	return ((uint32_t)((uintptr_t)f->tail >> 3) + f->link_base) | 1u;
}

/*
 * Stores v in *p with release order: a thief that sees the new tail also sees the closure. On
 * x86-64 every store is a release, so only compiler reordering must be prevented. A plain
 * assignment after the signal fence lets the compiler keep the tail in a register between pushes;
 * an atomic store would make it reload the tail (2.3 ns per dataflow fib call).
 */
#if defined(__x86_64__) && !defined(KD_TSAN)
#define KD_PUBLISH(p, v) do { __atomic_signal_fence(__ATOMIC_RELEASE); *(p) = (v); } while (0)
#else
#define KD_PUBLISH(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#endif

/* Uses two scalar stores and no vector store, because of the loads that follow (see struct
 * kdds_frame). */
KD_INLINE void kd_init_closure(struct kdds_closure *c, const struct kdds_type *type, uint32_t bytes,
			       uint32_t attr, uint32_t state) /* the upper half of attr: state, too */
{
	uint64_t word = bytes | (uint64_t)attr << 16 | (uint64_t)state << 32;

	c->type = type;
	__atomic_store_n((kd_word *)&c->bytes, word, __ATOMIC_RELAXED);
}

KD_INLINE void kd_commit(struct kdds_frame *f, char *c, size_t size)
{
	KD_PUBLISH(&f->tail, c + size);
}

/* A closure with these attributes has been committed. */
KD_INLINE void kd_place(uint32_t attributes)
{
	if (KD_UNLIKELY(attributes & (KD_PLACED << 16)))
		kdds_place(attributes);
}

/*
 * The block of a program in which data are declared. When it is left and the frame is empty, no
 * closure uses them: then their part of the arena is free again. In bodies whose data end with the
 * body, compilers see that nothing of this has an effect.
 */
struct kd_lifetime {
	struct kdds_frame *self;
	struct kd_room *room;
	char *top, *base; /* of the room before */
	uint32_t used;
	void *data; /* what the library may have allocated; NULL: nothing */
};

KD_INLINE struct kd_lifetime kd_lifetime_begin(struct kdds_frame *self, struct kd_room *room)
{
	struct kd_lifetime s = {self, room, NULL, NULL, 0, NULL};

	if (room) {
		s.top = room->top;
		s.base = room->base;
		s.used = room->used;
	}
	return s;
}

KD_INLINE void kd_lifetime_end(struct kd_lifetime *s)
{
	if (s->data)
		kdds_data_leave(s->data);
	if (s->room && s->self->tail == kd_frame_first(s->self)) {
		s->room->top = s->top;
		s->room->base = s->base;
		s->room->used = s->used;
	}
}

#define KD_LIFETIME(x) \
	struct kd_lifetime kd_life_##x __attribute__((cleanup(kd_lifetime_end))) = \
		kd_lifetime_begin(kd_self, kd_room)

/* Compilers know whether there is a handle, unless they do not inline. */
KD_INLINE void kd_renew_one(struct kd_handle *h)
{
	if (__builtin_constant_p(!h) && h)
		__asm__("" : "+r"(h->data));
}

/* For each VALUE as the body begins (KD_ENTRY). size is 0 if it is no scalar. */
KD_INLINE int kd_enter(struct kd_room *room, void *at, size_t size)
{
	struct kd_scalar x = {at, size};

	if (size) {
		room->scalars[3] = room->scalars[2];
		room->scalars[2] = room->scalars[1];
		room->scalars[1] = room->scalars[0];
		room->scalars[0] = x;
	}
	return 1;
}

typedef uint32_t kd_word4 __attribute__((may_alias));

/* By the copy that is needed anyway: gcc takes x for one value if the instruction is empty. Only
 * what is in a register: if the body has given the address of x away, others may be writing it, and
 * then compilers assume that x differs after the fence. */
#define KD_RENEW_ALONE(x) \
	do { \
		__typeof__(x) kd_before = (x); \
		__atomic_signal_fence(__ATOMIC_SEQ_CST); \
		if (__builtin_constant_p(kd_before == (x))) \
			__asm__("mov %1, %0" : "=r"(x) : "r"(x)); \
	} while (0)

KD_INLINE void kd_renew_scalar(struct kd_scalar x)
{
#ifdef KD_SCALARS
	if (!__builtin_constant_p(!x.at) || !x.at)
		return;
	if (x.size == 4)
		KD_RENEW_ALONE(*(kd_word4 *)x.at);
	else if (x.size == 8)
		KD_RENEW_ALONE(*(kd_word *)x.at);
#else
	(void)x;
#endif
}

/*
 * Called before a body allocates data or spawns. To compilers the addresses of the parameters'
 * data, and in C the scalar VALUEs, are new values after the first call. A body that has returned
 * before then needs no register that it would have to save: compilers keep a value that is used
 * after a call in such a register from the start (addresses: integrate 8 % with gcc, fib 20 % with
 * clang; VALUEs: fib 21 % with gcc). Later calls, and those in loops, do nothing. Written out,
 * since gcc unrolls loops too late to find the handles.
 */
KD_INLINE void kd_renew(struct kd_room *room)
{
	if (!__builtin_constant_p(room->renewed) || room->renewed)
		return;
	room->renewed = 1;
	kd_renew_one(room->handles[0]);
	kd_renew_one(room->handles[1]);
	kd_renew_one(room->handles[2]);
	kd_renew_one(room->handles[3]);
	kd_renew_scalar(room->scalars[0]);
	kd_renew_scalar(room->scalars[1]);
	kd_renew_scalar(room->scalars[2]);
	kd_renew_scalar(room->scalars[3]);
}

/*
 * Frame data. Where used is known at compile time, data that fit into the first KD_FRAME_DATA bytes
 * cost no instruction but for the first of them.
 */
KD_INLINE void *kd_frame_data(struct kd_lifetime *life, size_t size, size_t align)
{
	struct kdds_frame *self = life->self;
	struct kd_room *room = life->room;
	uint32_t at;
	void *p;

	if (!room) /* not in a body */
		return life->data = kdds_frame_alloc(kd_frame_of(self), size, align);
	kd_renew(room);
	at = room->used;
	if (align > 16 || size + !size > KD_FRAME_DATA - at) {
		p = kdds_frame_extend(self, room->top, size, align);
		room->top = self->arena;
		if (KD_IS_LARGE(size, align))
			life->data = p;
		return p;
	}
	if (!at) {
		if (KD_UNLIKELY(room->top < self->keep))
			room->top = self->keep;
		room->base = room->top;
		self->arena = room->top = room->base + KD_FRAME_DATA;
		if (KD_UNLIKELY(room->top > self->arena_end)) {
			self->arena = room->top = room->base;
			room->base = (char *)kdds_frame_extend(self, room->top, KD_FRAME_DATA, 16);
		}
	}
	/* empty structs have distinct addresses */
	room->used = at + (uint32_t)KD_ROUND16(size + !size);
	return room->base + at;
}

#define KD_FLOOR_PUSH ((char *)UINTPTR_MAX) /* value of floor: every spawn pushes a closure */

/*
 * Whether a spawn may call the body instead of pushing a closure: nobody wants closures, and the C
 * stack has room. Depth-first execution gives the values of reference order if no closure of the
 * frame is to use the arguments (kd_fresh). A relaxed load: a thief that raises the floor wants the
 * spawns that come, and whether the first of them sees it does not matter.
 */
KD_INLINE int kd_callable(struct kdds_frame *f, struct kd_room *room)
{
	int above;

	if (KD_UNLIKELY(room->unchecked)) {
		room->unchecked = 0;
		kdds_frame_check(f);
	}
#if defined(__x86_64__) && !defined(KD_TSAN)
	__asm__("cmpq %1, %%rsp" : "=@cca"(above) : "m"(f->floor));
#else
	above = (char *)__builtin_frame_address(0) > __atomic_load_n(&f->floor, __ATOMIC_RELAXED);
#endif
	return above;
}

/*
 * The same where calls are counted: asked by what would push a closure, so that calls cost nothing
 * where they are not. A jump, as in kd_slow_push: a call would cost bodies registers (fib 5 %), and
 * the code itself their being inlined into each other (fib 30 %).
 */
#if defined(KD_KEEP) && !defined(KD_TSAN)
void kdds_count_keep(void); /* declares the symbol; C cannot call it */
KD_INLINE int kd_counted(struct kdds_frame *f)
{
	const void *x = &f->floor;

	__asm__ volatile __inline__("lea 1f(%%rip), %%r11\n\t"
				    "jmp *kdds_count_keep@GOTPCREL(%%rip)\n1:"
				    : "+a"(x) : : "r11", "cc");
	return x != NULL;
}
#else
#define kd_counted kdds_frame_count
#endif

KD_INLINE struct kdds_anchor *kd_anchor_of(const void *ref)
{
	return ((const struct kd_handle *)ref)->anchor;
}

/* One store, where compilers would make three. */
KD_INLINE void kd_anchor_use(struct kdds_anchor *a, int32_t single, int16_t use)
{
	const struct {
		int32_t single;
		int16_t use;
		uint16_t shaped;
	} word = {single, use, 0};

	__builtin_memcpy(&a->single, &word, sizeof(word));
}

/* Of data of a body. self stays undefined: its reference is a handle. */
KD_INLINE void kd_anchor_init_data(void *anchor, void *data)
{
	struct kdds_anchor *a = (struct kdds_anchor *)anchor;

	a->data = data;
	a->single = KD_USABLE(KDDS_MODE_ANY);
	a->use = KD_USE(KDDS_MODE_ANY);
	a->shaped = 0;
	a->links = 0;
}

/* Not 0 either if the reference is an anchor, or none: memory of the program. */
KD_INLINE uint64_t kd_links_of(const void *ref)
{
	const struct kd_handle *h = (const struct kd_handle *)ref;

	return h->anchor->links | (h->kind == KD_HANDLE ? 0 : KD_NO_LINK);
}

KD_INLINE int kd_is_reference(const void *ref)
{
	const struct kd_handle *h = (const struct kd_handle *)ref;

	return __builtin_expect((const void *)h->anchor == ref, 1) ||
	       __builtin_expect(h->kind == KD_HANDLE, 1);
}

/* use and shaped */
KD_INLINE uint32_t kd_use_of(const struct kdds_anchor *a)
{
	uint32_t use;

	__builtin_memcpy(&use, &a->use, sizeof(use));
	return use;
}

/* Of an anchor that a body which is called may use itself: it refers to a single object (shaped: an
 * array), of which the spawning body may do anything. */
#define KD_FREE_USE(shaped) ((uint16_t)KD_USE(KDDS_MODE_ANY) | (uint32_t)(shaped) << 16)

/*
 * Whether the n arguments of a spawn allow a call: no closure of the frame uses the data (links
 * that are left in an empty frame name none), their modes allow what the body declares, and no two
 * may overlap. For all arguments at a time: links is the union of theirs, which is not 0, reads and
 * writes the sums of uses, less those of data that may be used in any way. Otherwise the push
 * decides, and reports mistakes.
 */
KD_INLINE int kd_fresh(struct kdds_frame *f, unsigned n, uint64_t links, uint32_t reads,
		       uint32_t writes)
{
	uint32_t any = (KD_USE_CW - 1) | (n > 1 ? 0 : KD_USE_HOW | KD_TRACKED << 16);

	return (links == KD_NO_LINK || f->tail == kd_frame_first(f)) &&
	       !(reads & ~(15u * KD_USE_R | any)) && !(writes & ~any);
}

KD_INLINE int kd_may_add(unsigned n, const struct kdds_anchor *a, uint32_t shaped)
{
	uint32_t use = kd_use_of(a) - KD_FREE_USE(shaped);

	return !(use & ~(uint32_t)(KDDS_RW | KD_USE_CW | (n > 1 ? 0 : KD_USE_HOW)));
}

/* Compilers see which flags are never set, unless accesses are atomic. A flag goes from 0 to 1 once,
 * and a spawn that sees it late is right, too (kd_order). */
#ifdef KD_TSAN
#define KD_FLAG(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define KD_SET_FLAG(x) __atomic_store_n(&(x), 1, __ATOMIC_RELAXED)
#else
#define KD_FLAG(x) (x)
#define KD_SET_FLAG(x) ((x) = 1)
#endif

/* Whether no two of n anchors are one. */
KD_INLINE int kd_distinct(struct kdds_anchor *const *a, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			if (a[i] == a[j])
				return 0;
	return 1;
}

/* How data that a body may use for mode differ from data that it may use in any way: by these bits
 * of single, and of use. */
KD_INLINE uint32_t kd_allowed(uint32_t mode)
{
	return KDDS_RW | (mode == KDDS_R ? KD_USE_R : mode == KDDS_CW ? KD_USE_CW : 0);
}

/* Of use: whether the body may pass the data on for mode, to an _ARRAY parameter. */
KD_INLINE int kd_may(int16_t use, uint32_t mode)
{
	return !((uint16_t)(use ^ KD_USE(0)) & ~(kd_allowed(mode) | KD_USE_HOW));
}

/* Not 0 if the data are a part of an array, or an array of which closures use parts. */
KD_INLINE uint32_t kd_tracked(const struct kdds_anchor *a)
{
	return a->shaped & (KD_TRACKED | KD_WHOLE);
}

/* Not 0 if the body may not pass the data on for mode, to an _ARRAY parameter or to another one, or
 * if they are tracked. Of single, use and shaped as one word: then a spawn needs one test for all
 * of its arguments. */
KD_INLINE uint64_t kd_doubt(const struct kdds_anchor *a, uint32_t mode, int array)
{
	uint64_t any = (uint32_t)KD_USABLE(0) | (uint64_t)(uint16_t)KD_USE(0) << 32, word;
	uint64_t single = (uint32_t)~kd_allowed(mode);
	uint64_t use = (uint16_t)~(kd_allowed(mode) | KD_USE_HOW);

	__builtin_memcpy(&word, &a->single, sizeof(word));
	return (word ^ any) & ((array ? use << 32 : single) |
			       (uint64_t)(KD_TRACKED | KD_WHOLE) << 48);
}

/* The data that a closure of the type, which is about to be pushed, uses. */
struct kd_uses {
	struct kdds_frame *frame;
	const struct kdds_type *type;
	const ptrdiff_t *places; /* of the anchors, one per access, in bytes from the frame; 0 for
				    those that need no look: compilers see that these do not escape
				    (fib 3 %) */
};

KD_INLINE void kd_examine(struct kdds_frame *f, const struct kdds_type *type,
			  const ptrdiff_t *places)
{
	struct kd_uses u = {f, type, places};

	kdds_examine(&u);
}

/*
 * A closure that uses the n anchors is about to be pushed by a body. If one of them was bound by a
 * body that was called, its caller does not know what the closure uses: until the frame is popped,
 * everything is pushed and runs in reference order. A thief that sees the closure sees ordered: its
 * store comes before the release of the tail.
 */
KD_INLINE void kd_order(struct kdds_frame *f, struct kdds_anchor *const *a, unsigned n)
{
	uint32_t uses = 0;

	for (unsigned i = 0; i < n; i++)
		uses |= (uint16_t)a[i]->use;
	if (KD_UNLIKELY(uses & KD_USE_PART)) {
		__atomic_store_n(&f->ordered, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&f->floor, KD_FLOOR_PUSH, __ATOMIC_RELAXED);
	}
}

/* How a body or a function (room NULL) binds memory. */
KD_INLINE uint32_t kd_bound(struct kd_room *room)
{
	if (!room || !room->called)
		return KD_USE_BOUND;
	room->parts = 1;
	return KD_USE_HOW;
}

/* While a body that contributes to the data runs in place of a closure, the data are for
 * contributions. They are already if the spawning body contributes, too. */
KD_INLINE uint64_t kd_lend(struct kdds_anchor *a)
{
	uint64_t use;

	__builtin_memcpy(&use, &a->single, sizeof(use));
	if (kd_use_of(a) & KD_USE_CW)
		return use;
	a->single = a->single ? KD_USABLE(KDDS_CW) : 0;
	a->use = (int16_t)(KD_USE(KDDS_CW) | (a->use & KD_USE_HOW));
	if (!a->links)
		a->links = KD_NO_LINK;
	return use;
}

KD_INLINE void kd_return(struct kdds_anchor *a, uint64_t use)
{
	__builtin_memcpy(&a->single, &use, sizeof(use));
}

KD_INLINE void kd_link(struct kdds_access *to, struct kdds_anchor *from, uint32_t link,
		       uint32_t mode)
{
	to->data = from->data;
	/* One scalar store: gcc would build the pair in a vector register (1.3 ns per fib call). */
	__atomic_store_n((kd_word *)&to->w, from->links, __ATOMIC_RELAXED);
	from->links = (uint64_t)link << 32 | (mode == KDDS_R ? (uint32_t)from->links : link);
}

/* The value of single in struct kdds_anchor. An array of one element counts as a single object
 * unless it has pack functions, which only _ARRAY parameters pass to other processes. rows 0 means
 * that a single object was passed to an _ARRAY parameter. */
static inline int32_t kd_single(const struct kdds_shape *s, uint32_t mode)
{
	return !s->pack && (!s->rows || (s->rows == 1 && s->cols == 1)) ? KD_USABLE(mode) : 0;
}

/* gcc warns about the shape of anchors that have none, before it finds that this code does not read
 * it. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
static inline void kd_link_array(struct kdds_access_array *to, struct kdds_anchor *from,
				 uint32_t link, uint32_t mode)
{
	if (from->shaped) {
		to->shape = *(const struct kdds_shape *)(const void *)((const char *)from +
								       offsetof(struct kdds_anchor_array, shape));
	} else {
		to->shape.rows = to->shape.cols = to->shape.ld = 0;
		to->shape.pack = NULL;
	}
	kd_link(&to->a, from, link, mode);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
/** @endcond */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
