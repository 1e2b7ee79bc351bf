/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The part of libkdds that is compiled into users' programs: the layouts of closures, access records and frames, and the
 * straight-line code that pushes a closure. Everything here is owner-private or published by one release store; whatever
 * may block, grow or fail is one call into the library.
 *
 *   stack     | frame | closure | closure | closure ...| frame | closure ...
 *               |        |                             ^tail
 *               |        +- access records: data, last writer, last accessor
 *               +- next frame's place, fixed once the parent's body has returned
 *
 * A frame holds the closures one task has committed, in reference order, contiguously. A closure's sequence number is its
 * offset in the frame in units of 16 bytes (plus a bias that moves on each time the frame is emptied and reused), so a
 * thief turns a link into an address without any table and the owner pays no counter.
 */
#ifndef KDDS_INLINE_H
#define KDDS_INLINE_H

#include <stddef.h>
#include <stdint.h>

/* configure says the same to who builds the library. */
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

/** How a task uses one shared parameter (Athapascan's access specifications; dds.txt, section 2). */
enum kdds_mode {
	KDDS_MODE_ANY = 0, /**< not a parameter: the data's own creator, every use allowed */
	KDDS_R = 1,        /**< read */
	KDDS_W = 2,        /**< overwrite: the old value is not read */
	KDDS_RW = 3,       /**< exclusive update */
	KDDS_CW = 4        /**< cumulative write: a contribution to a reduction */
};

/** What the library calls cannot throw: there is nobody to catch it. Part of a function's type since C++17. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define KD_NOEXCEPT noexcept
#else
#define KD_NOEXCEPT
#endif

#define KDDS_MAX_ACCESSES 16 /**< shared parameters a task may have */
#define KDDS_MAX_PARAMS 16   /**< parameters a KDDS_TASK may have, values included */

/** @cond internal */
#define KD_CLOSURE_MAX 65520 /* bytes of a closure: a multiple of 16 in its 16 bits */
#define KD_ALIGN_MAX 4096    /* alignment of shared data that copies of them have, too */
#define KD_ROOM_MAX 1024     /* bytes a closure has room for in a private copy of what it reduces */
/** @endcond */

struct kdds_closure;
struct kdds_frame;

/** A reduction: an associative operator and its neutral element, over arrays of @c size-byte elements. */
struct kdds_op {
	const char *name;
	size_t size;                                            /**< bytes of one element */
	void (*neutral)(void *x, size_t n) KD_NOEXCEPT;         /**< x[0..n) = neutral element */
	/** x[i] = x[i] op contribution[i], left to right */
	void (*merge)(void *x, const void *contribution, size_t n) KD_NOEXCEPT;
	int exact; /**< op gives the same bits however it is grouped: the owner may accumulate in place */
};

/** Turns a data into bytes and back for its travel to another process; the local machine never calls it. */
struct kdds_pack {
	size_t (*bytes)(const void *data) KD_NOEXCEPT;          /**< how many pack will write */
	void (*pack)(const void *data, void *buffer) KD_NOEXCEPT;
	/** data is a value to be replaced, or zeroes */
	void (*unpack)(void *data, const void *buffer, size_t bytes) KD_NOEXCEPT;
	/** NULL, or: frees what unpack has allocated in a copy that is not needed any more */
	void (*release)(void *data) KD_NOEXCEPT;
};

/** The extent of a data: rows x cols elements, consecutive rows ld elements apart. rows 0: one element, no array. */
struct kdds_shape {
	size_t rows, cols;            /**< a vector is one row */
	size_t ld;                    /**< elements from one row to the next, >= cols */
	const struct kdds_pack *pack; /**< NULL: the bytes travel as they are */
};

/** One shared parameter of a task type. */
struct kdds_param {
	uint32_t offset;          /**< of its access record in the closure */
	uint16_t mode;            /**< enum kdds_mode */
	uint8_t array;            /**< the record is a struct kdds_access_array */
	uint8_t pointers;         /**< the data is a pointer, or a C++ object that is more than its bytes,
				       or an array of these */
	uint32_t size;            /**< bytes of the data, or of one element of an array */
	uint32_t room;            /**< KDDS_CW: offset of the room for a private copy behind its struct kdds_access_reduce; 0: none */
	const struct kdds_op *op; /**< KDDS_CW only */
};

/** A task type: one per KDDS_TASK, or made by kdds_type_create. */
struct kdds_type {
	void (*run)(struct kdds_closure *c, struct kdds_frame *f);
	uint32_t size;   /**< bytes of a closure, a multiple of 16 */
	uint16_t naccess;
	uint16_t reduces; /**< some access is KDDS_CW */
	const struct kdds_param *access;
	const char *name;
	uint32_t magic;   /**< KD_TYPE_MAGIC, if closures of it may be named to other processes: what such a name leads to is a type */
	uint32_t pointers; /**< some immediate value is a pointer: closures stay in their process */
};

#define KD_TYPE_MAGIC 0x6b646473u

/** The head of a closure; access records and values follow at the offsets its type gives. */
struct kdds_closure {
	const struct kdds_type *type;
	uint16_t bytes; /**< its size: here, not behind type, since the way to the next closure is the owner's longest chain
			     of dependent loads */
	uint16_t attr;  /**< spawn attributes, KDDS_LOCAL ... */
	uint32_t state; /**< src/core/closure.h draws the states; born 0, or KD_SPECIAL when it reduces by an operator that is not exact */
};

/** A closure's use of one data, and the two links that order it, to closures of the same frame (see kd_link_of); 0: none. */
struct kdds_access {
	void *data;
	uint32_t w; /**< the last closure before me that writes */
	uint32_t p; /**< the last closure before me that uses the data at all */
};

/**
 * The access of a single REDUCE parameter; room for a private copy comes behind it where the type has it.
 * Thieves may look at the links while the owner begins to run the closure, so they stay as they are.
 */
struct kdds_access_reduce {
	struct kdds_access a;
	void *original; /**< while `a` refers to the private copy in the room */
};

/** The access of an _ARRAY parameter: the data has a shape. */
struct kdds_access_array {
	struct kdds_access a;
	struct kdds_shape shape;
};

/**
 * A data as one task's body sees it: where it lies and who used it last among the closures this body committed. It lives in
 * the body (compilers keep it in registers) and dies with it; the children carry copies of the links.
 */
struct kdds_anchor {
	void *data;
	uint64_t links; /**< w, the low half, and p of struct kdds_access: one word, one load and one store for each use */
	int32_t single;  /**< KD_USABLE(mode): what the body itself may do with it; 0: only _ARRAY
			      parameters take it */
	int16_t use;     /**< KD_USE(mode): the same for _ARRAY parameters */
	uint16_t shaped; /**< it is a struct kdds_anchor_array */
} __attribute__((may_alias));

/* Far from what memory is likely to hold: the comparison that every use needs also finds what is no
 * anchor, or was not bound. */
#define KD_USABLE(mode) (INT32_MIN + (int32_t)(mode))
#define KD_USE(mode) (int16_t)(INT16_MIN + (int16_t)(mode))

/** The anchor of data with a shape. */
struct kdds_anchor_array {
	struct kdds_anchor a;
	struct kdds_shape shape;
} __attribute__((may_alias));

#define KD_FRAME_DATA 64 /**< bytes of frame data that cost nothing */

/**
 * One task's closures. The owner writes all of it; a thief reads it under the stack's lock (src/core/steal.c). Scalar stores only:
 * a 4-byte load from a 16-byte vector store waits 10 cycles on Zen 4, from an 8-byte store 1.
 */
struct kdds_frame {
	char *tail;   /**< end of the closures; the owner publishes each closure by moving it */
	char *head;   /**< closure being run; everything before it is complete. NULL: none yet */
	char *limit;  /**< pushing past it calls the library: the window is full, or (NULL) a thief asks for attention */
	char *resume; /**< closure of the parent to run when this frame is done; NULL: the closure at the parent's head reduces
			   and has yet to be finished */
	struct kdds_frame *parent;
	uint64_t gen; /**< names this life of the frame: what thieves noted under another gen is void */
	uint32_t bias; /**< see kd_link_of; not initialised: any value will do as long as the frame lives */
	uint32_t turns; /**< times that bias has come round; likewise */
	uint32_t pad[2];
	char data[KD_FRAME_DATA]; /**< the first KDDS_DATA of the body */
	/* closures follow */
};

typedef uint64_t kd_word __attribute__((may_alias));

/** State of a closure that reduces into private copies. */
#define KD_SPECIAL 4u

#define KD_ROUND16(n) (((n) + 15u) & ~(size_t)15u)
#define KD_UNLIKELY(x) __builtin_expect(!!(x), 0)

/** @cond internal */
struct kdds_frame *kdds_frame_current(void);
char *kdds_push_slow(const char *end) __attribute__((cold));
void *kdds_frame_alloc(struct kdds_frame *f, size_t size, size_t align);
void kdds_exception(const char *what, const char *name, const char *text)
	__attribute__((noreturn, cold));
void kdds_reference_error(const char *task, const char *param, int use, int shaped, uint32_t mode)
	__attribute__((noreturn, cold));

/* Outside a task's body (main, a helper function) the frame is the calling thread's running one. */
static struct kdds_frame *const kd_self __attribute__((unused)) = NULL;
static uint32_t kd_used __attribute__((unused));

static inline struct kdds_frame *kd_frame_of(struct kdds_frame *f)
{
	return f ? f : kdds_frame_current();
}

static inline char *kd_frame_first(struct kdds_frame *f)
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
 * A push past the limit. Were it an ordinary call, compilers would keep in callee-saved registers whatever a body needs after
 * a push, and save six of those at its entry, in leaf tasks too: a sixth of a dataflow fib. So src/core/keep.c keeps every register
 * but two. It is jumped to, not called, since there may be a red zone below the stack pointer.
 */
#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__)
#define KD_KEEP 1
#endif
#if defined(KD_KEEP) && !defined(KD_TSAN)
void kdds_push_keep(void); /* for its name; C cannot call it */
__attribute__((always_inline)) static inline char *kd_push_slow(char *end)
{
	__asm__ volatile("lea 1f(%%rip), %%r11\n\tjmp *kdds_push_keep@GOTPCREL(%%rip)\n1:"
			 : "+a"(end) : : "r11", "cc", "memory");
	return end;
}
#else
#define kd_push_slow kdds_push_slow
#endif

/* The place for a closure of size bytes in the running frame. */
__attribute__((always_inline)) static inline char *kd_push(struct kdds_frame *f, size_t size)
{
	char *c = f->tail;

	if (KD_UNLIKELY(c + size > __atomic_load_n(&f->limit, __ATOMIC_RELAXED)))
		c = kd_push_slow(c + size);
	return c;
}

/*
 * The name by which later closures link to the closure at c: its address in units of 8 bytes plus the frame's bias, which
 * moves on each time the frame is emptied and its memory used again, so that old links name no closure. Closures are aligned
 * to 16 bytes; the low bit is set so that no name is 0.
 */
static inline uint32_t kd_link_of(struct kdds_frame *f, const char *c)
{
	return ((uint32_t)((uintptr_t)c >> 3) + __atomic_load_n(&f->bias, __ATOMIC_RELAXED)) | 1u;
}

/*
 * Publishes v in *p after everything stored before: a thief that sees the tail sees the closure. On x86-64 every store is a
 * release, so only the compiler must be held back; a plain assignment behind the fence lets it keep the tail in a register
 * from one push to the next, where an atomic store makes it reload (2.3 ns per dataflow fib call).
 */
#if defined(__x86_64__) && !defined(KD_TSAN)
#define KD_PUBLISH(p, v) do { __atomic_signal_fence(__ATOMIC_RELEASE); *(p) = (v); } while (0)
#else
#define KD_PUBLISH(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#endif

/* Two scalar stores, not one vector copy, for the sake of the loads that follow (see struct kdds_frame). */
static inline void kd_closure_init(struct kdds_closure *c, const struct kdds_type *type, uint32_t bytes, uint32_t attr,
				   uint32_t state)
{
	c->type = type;
	__atomic_store_n((kd_word *)&c->bytes, bytes | (uint64_t)attr << 16 | (uint64_t)state << 32, __ATOMIC_RELAXED);
}

static inline void kd_commit(struct kdds_frame *f, char *c, size_t size)
{
	KD_PUBLISH(&f->tail, c + size);
}

/* Frame data. used is the body's own count, a constant to the compiler, so a few small data cost no instruction at all. */
static inline void *kd_frame_data(struct kdds_frame *self, uint32_t *used, size_t size, size_t align)
{
	uint32_t at = *used;

	if (!self || align > 16 || size + !size > KD_FRAME_DATA - at)
		return kdds_frame_alloc(kd_frame_of(self), size, align);
	*used = at + (uint32_t)KD_ROUND16(size + !size); /* empty structs have addresses of their own, too */
	return self->data + at;
}

/* Whether the body may hand the data on for mode; least is KD_USABLE(0), for _ARRAY KD_USE(0). */
static inline int kd_may(int32_t use, int32_t least, uint32_t mode)
{
	return use <= least + (mode == KDDS_CW ? KDDS_CW : KDDS_RW) &&
	       (mode == KDDS_R || use != least + KDDS_R);
}

static inline void kd_link_checked(struct kdds_access *to, struct kdds_anchor *from, uint32_t link,
				   uint32_t mode)
{
	to->data = from->data;
	/* One scalar store: gcc would make the pair in a vector register, at 1.3 ns per dataflow fib call. */
	__atomic_store_n((kd_word *)&to->w, from->links, __ATOMIC_RELAXED);
	from->links = (uint64_t)link << 32 | (mode == KDDS_R ? (uint32_t)from->links : link);
}

static inline void kd_link(struct kdds_access *to, struct kdds_anchor *from, uint32_t link,
			   uint32_t mode, const char *task, const char *param)
{
	if (KD_UNLIKELY(!kd_may(from->single, KD_USABLE(0), mode)))
		kdds_reference_error(task, param, from->use, from->shaped, mode);
	kd_link_checked(to, from, link, mode);
}

/* What struct kdds_anchor has in single. An array of one element is as good as a single data, if it
 * has no pack functions: only _ARRAY parameters take them along to other processes. rows 0: it was
 * a single data that was given to such a parameter. */
static inline int32_t kd_single(const struct kdds_shape *s, uint32_t mode)
{
	return !s->pack && (!s->rows || (s->rows == 1 && s->cols == 1)) ? KD_USABLE(mode) : 0;
}

/* gcc looks for the shape of anchors that have none, though it finds later that they are not asked for it. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
static inline void kd_link_array(struct kdds_access_array *to, struct kdds_anchor *from, uint32_t link, uint32_t mode,
				 const char *task, const char *param)
{
	if (KD_UNLIKELY(!kd_may(from->use, KD_USE(0), mode)))
		kdds_reference_error(task, param, from->use, 0, mode);
	if (from->shaped) {
		to->shape = *(const struct kdds_shape *)(const void *)((const char *)from +
								       offsetof(struct kdds_anchor_array, shape));
	} else {
		to->shape.rows = to->shape.cols = to->shape.ld = 0;
		to->shape.pack = NULL;
	}
	kd_link_checked(&to->a, from, link, mode);
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
