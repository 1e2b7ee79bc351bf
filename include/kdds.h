/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libkdds: work-stealing dataflow tasks.
 *
 * A program is a tree of tasks that share data. A task declares how it uses each data (READ, WRITE, UPDATE, REDUCE); the
 * library runs tasks in parallel as far as every read still sees the last write before it in *reference order*, the order
 * of the sequential program in which a task's children run after its body, one after the other, each with all its
 * descendants. The values a program computes therefore do not depend on the number of workers.
 *
 * @code
 * #include <kdds.h>
 *
 * KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r)) { **r = **a + **b; }
 *
 * KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
 * {
 *         if (n < 2) {
 *                 **r = n;
 *                 return;
 *         }
 *         KDDS_DATA(long, x);
 *         KDDS_DATA(long, y);
 *         kdds_spawn(fib, n - 1, x);
 *         kdds_spawn(fib, n - 2, y);
 *         kdds_spawn(sum, x, y, r);
 * }
 * @endcode
 *
 * Conventions, said once for all functions. Functions that can fail return 0 or a negative errno value that kdds_strerror()
 * explains; what the program itself got wrong (a task spawned before kdds_init, a read-only parameter handed on for
 * writing) ends it with one line on stderr that says what and where. Memory passed in stays the caller's. "Context" says
 * who may call: *main* is the thread that called kdds_init, *task* a task's body or a function it calls.
 *
 * The model and its source: T. Gautier, J.-L. Roch, F. Wagner, "Fine Grain Distributed Implementation of a Dataflow Language
 * with Provable Performances", 2007 (below: dds.txt).
 */
#ifndef KDDS_H
#define KDDS_H

#include <stdio.h>
#ifdef __cplusplus
#include <type_traits>
#endif

#include "kdds/inline.h"
#include "kdds/task.h"

#define KDDS_VERSION_MAJOR 0
#define KDDS_VERSION_MINOR 1
#define KDDS_VERSION_PATCH 0
/** The version of this header, as one number. */
#define KDDS_VERSION (KDDS_VERSION_MAJOR * 10000 + KDDS_VERSION_MINOR * 100 + KDDS_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** @name Start and stop
 * @{ */

/** @cond internal */
#define KD_LAYOUT_STEP(h, x) (((h) * 31u) + (uint32_t)(x))
#define KD_LAYOUT \
	KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP(9u, \
		sizeof(struct kdds_frame)), offsetof(struct kdds_frame, bias)), sizeof(struct kdds_closure)), \
		offsetof(struct kdds_closure, state)), sizeof(struct kdds_access_array)), sizeof(struct kdds_type)), \
		sizeof(struct kdds_param))
int kdds_init_layout(int version, uint32_t layout);
/** @endcond */

/**
 * Starts the workers; the calling thread becomes worker 0 and *main*. The layouts compiled into the program are compared
 * with the library's.
 *
 * Context: a thread that is in no task, once until kdds_finalize; in a job of several ranks, once.
 * @return 0; -EALREADY when already initialised; -EINVAL for a bad KDDS_ variable or a library whose layouts differ;
 *         -ENOMEM, -EAGAIN when memory or threads cannot be had. A line on stderr says which. (Without address space for
 *         a single stack the program ends, as it does whenever a stack cannot be had; in a job of several ranks, by exit(1),
 *         after any of these: the others count on it.)
 */
#define kdds_init() kdds_init_layout(KDDS_VERSION, KD_LAYOUT)

/**
 * Waits for every task, stops the workers and frees what the library holds.
 *
 * Context: main. @return 0; -EPERM when not initialised (or already finalised), not called from main, or from a task. Another
 *         value if all went well, but a file that KDDS_TRACE or KDDS_DOT asked for cannot be written; a line on stderr says so.
 */
int kdds_finalize(void);
/** @} */

/** @name Where am I
 * Context: anywhere. Without the library, before kdds_init and after kdds_finalize, there are no workers and no places.
 * @{ */
int kdds_rank(void);    /**< this process's number, 0 to kdds_size() - 1 */
int kdds_size(void);    /**< processes in the job */
int kdds_workers(void); /**< workers in this process */
int kdds_worker(void);  /**< the calling worker's number, 0 to kdds_workers() - 1; -1 on a thread that is no worker */
int kdds_places(void);  /**< places (NUMA nodes) the workers are spread over */
/** @} */

/** @name Waiting
 * @{ */

/** @cond internal */
void kdds_sync_frame(struct kdds_frame *f);
/** @endcond */

/**
 * Waits for the children committed so far by this body, running them and, while some are elsewhere, other tasks. Afterwards
 * the body may touch their data again. For main, and for fork-join code: a dataflow program has no need of it in a task.
 * A body that waits holds its worker's C stack (ulimit -s): when bodies that wait for one another fill it the job ends with a line.
 *
 * Context: main, task.
 */
#define kdds_sync() kdds_sync_frame(kd_self)
/** @} */

/** @name Spawn attributes
 * For kdds_spawn_with. They guide thieves; the owner of a frame runs its closures in reference order whatever they say.
 * @{ */
#define KDDS_LOCAL 0x8000u                                      /**< stay in this process: I/O, pointers to local things */
#define KDDS_PRIORITY_HIGH 0x4000u                              /**< stolen before others that are ready */
#define KDDS_PRIORITY_LOW 0x2000u                               /**< stolen after others that are ready */
#define KDDS_ON_WORKER(i) (0x1000u | ((unsigned)(i) & 0x7ffu))  /**< other workers take it only when they find nothing else */
#define KDDS_ON_PLACE(i) (0x1800u | ((unsigned)(i) & 0x7ffu))   /**< likewise, for the workers of a place */
/** @} */

/** @name Data
 * KDDS_DATA (task.h) makes one fresh T. These make references to more, or to memory of the program's own, which must outlive
 * the tasks that use it. A shape travels with the reference to _ARRAY parameters. References to a
 * const T are for READ parameters: KDDS_OVER_ARRAY(const double, half, *a, kdds_count(a) / 2) makes
 * one to a part of what a body may read.
 *
 * Context: main, task.
 * @{ */

/** @cond internal */
void kdds_shape_check(size_t rows, size_t cols, size_t ld);
static inline void kd_anchor_init(void *anchor, const volatile void *data, uint32_t mode)
{
	struct kdds_anchor *a = (struct kdds_anchor *)anchor;

	a->data = (void *)(uintptr_t)data;
	a->links = 0;
	a->single = KD_USABLE(mode);
	a->use = KD_USE(mode);
	a->shaped = 0;
}

/* The anchor is the object around the shape, so that macros need mention the object, which may be t[i++], only once. */
static inline void kd_anchor_init_array(struct kdds_shape *shape, const volatile void *data,
					uint32_t mode, size_t rows, size_t cols, size_t ld,
					const struct kdds_pack *pack)
{
	void *anchor = (char *)shape - offsetof(struct kdds_anchor_array, shape);
	struct kdds_anchor *a = (struct kdds_anchor *)anchor;

	if (ld < cols)
		kdds_shape_check(rows, cols, ld);
	if (!rows) { /* rows 0 says that there is no shape; no rows are one row of no elements */
		rows = 1;
		cols = 0;
	}
	shape->rows = rows;
	shape->cols = cols;
	shape->ld = ld;
	shape->pack = pack;
	kd_anchor_init(a, data, mode);
	a->single = kd_single(shape, mode);
	a->shaped = 1;
}

static inline void kd_anchor_init_row(struct kdds_shape *shape, const volatile void *data,
				      uint32_t mode, size_t n)
{
	kd_anchor_init_array(shape, data, mode, 1, n, n, NULL);
}

/* KD_LIKE is ptr, if it points to what at points to, or to memory of no type, and not to const where
 * at does not; KD_ALLOWS is what tasks may do with what at points to. Neither evaluates at. */
#ifdef __cplusplus
}
template <typename T> inline const volatile void *kd_like(T *ptr)
{
	return ptr;
}
template <typename T>
inline const volatile void *
kd_like(std::conditional_t<std::is_const<T>::value, const void, void> *ptr)
{
	return ptr;
}
extern "C" {
#define KD_TARGET(at) std::remove_pointer_t<decltype(at)>
#define KD_LIKE(at, ptr) kd_like<KD_TARGET(at)>(1 ? (ptr) : static_cast<KD_TARGET(at) *>(nullptr))
#define KD_ALLOWS(at) (std::is_const<KD_TARGET(at)>::value ? KDDS_R : KDDS_MODE_ANY)
#else
#define KD_IS(T, U) __builtin_types_compatible_p(T, U)
#define KD_IS_CONST(T, U) KD_IS(T *, const U *)
#define KD_POINTS_TO(P, T, U) \
	(KD_IS(P, T *) || KD_IS(P, U *) || KD_IS(P, void *) || \
	 (KD_IS_CONST(T, U) && KD_IS(P, const void *)))
#define KD_TARGET(at) __typeof__(*(at))
#define KD_UNQUALIFIED(at) __typeof__((void)0, *(at))
#define KD_LIKE(at, ptr) \
	((void)sizeof(struct { \
		 int kd; \
		 _Static_assert(KD_POINTS_TO(__typeof__(1 ? (ptr) : (ptr)), KD_TARGET(at), \
					     KD_UNQUALIFIED(at)), \
				"a pointer to another type, or to what is const"); \
	 }), (ptr))
#define KD_ALLOWS(at) (KD_IS_CONST(KD_TARGET(at), KD_UNQUALIFIED(at)) ? KDDS_R : KDDS_MODE_ANY)
#endif

/* Too many to have is as many as can be asked for: the library says so. */
static inline size_t kd_array_bytes(size_t n, size_t size)
{
	return size && n > SIZE_MAX / size ? SIZE_MAX : n * size;
}
/** @endcond */

/** Makes @p d, an object of type kdds_data(T), refer to the T at @p ptr. */
#define kdds_bind(d, ptr) kd_anchor_init(&(d).at, KD_LIKE((d).at, ptr), KD_ALLOWS((d).at))
/** Makes @p d, an object of type kdds_array(T), refer to the @p n consecutive T at @p ptr. */
#define kdds_bind_array(d, ptr, n) \
	kd_anchor_init_row(&(d).kd_shape, KD_LIKE((d).at, ptr), KD_ALLOWS((d).at), n)
/** Makes @p d refer to a 2-D view: @p rows rows of @p cols elements, consecutive rows @p ld elements apart. */
#define kdds_bind_tile(d, ptr, rows, cols, ld) kdds_bind_packed(d, ptr, rows, cols, ld, NULL)
/** The same with the functions that turn it into bytes for another process. */
#define kdds_bind_packed(d, ptr, rows, cols, ld, pack) \
	kd_anchor_init_array(&(d).kd_shape, KD_LIKE((d).at, ptr), KD_ALLOWS((d).at), rows, cols, \
			     ld, pack)

/** Declares @p x, a reference to the program's own T at @p ptr. */
#define KDDS_OVER(T, x, ptr) kdds_data(T) kd_data_##x; T **const x = (kdds_bind(kd_data_##x, ptr), &kd_data_##x.at)
/** Declares @p x, a reference to the @p n consecutive T at @p ptr. */
#define KDDS_OVER_ARRAY(T, x, ptr, n) \
	kdds_array(T) kd_data_##x; T **const x = (kdds_bind_array(kd_data_##x, ptr, n), &kd_data_##x.at)
/** Declares @p x, a reference to @p n fresh T that live as long as the running task's frame. */
#define KDDS_DATA_ARRAY(T, x, n) \
	const size_t kd_n_##x = n; \
	KDDS_OVER_ARRAY(T, x, (T *)kdds_frame_alloc(kd_frame_of(kd_self), kd_array_bytes(kd_n_##x, sizeof(T)), __alignof__(T)), kd_n_##x)

/** The shape of what @p x, a reference to an array, refers to (NULL for a single T): a const struct kdds_shape *. */
#define kdds_shape_of(x) kd_shape_of((const struct kdds_anchor *)(const void *)(x))
/** Elements (rows times columns) of what @p x refers to. */
#define kdds_count(x) kd_count_of(kdds_shape_of(x))
/** @cond internal */
static inline const struct kdds_shape *kd_shape_of(const struct kdds_anchor *a)
{
	const struct kdds_shape *s;

	if (!a->shaped)
		return NULL;
	s = (const struct kdds_shape *)(const void *)((const char *)a + offsetof(struct kdds_anchor_array, shape));
	return s->rows ? s : NULL;
}
static inline size_t kd_count_of(const struct kdds_shape *s)
{
	return s ? s->rows * s->cols : 1;
}
/** @endcond */
/** @} */

/** @name Reductions
 * KDDS_SUM(T) and its like name the operators over a numeric type T; KDDS_OP declares one over a type of the program's own.
 * Contributions are combined in reference order, so floating-point results are the same on any number of workers.
 * @{ */

/** @cond internal */
enum { KD_OP_SUM, KD_OP_PROD, KD_OP_MIN, KD_OP_MAX, KD_OP_AND, KD_OP_OR, KD_OP_XOR, KD_NOPS };
enum { KD_T_CHAR, KD_T_SCHAR, KD_T_UCHAR, KD_T_SHORT, KD_T_USHORT, KD_T_INT, KD_T_UINT, KD_T_LONG, KD_T_ULONG, KD_T_LLONG,
       KD_T_ULLONG, KD_NINTS, KD_T_FLOAT = KD_NINTS, KD_T_DOUBLE, KD_T_LDOUBLE, KD_NTYPES };
extern const struct kdds_op kdds_ops[KD_NOPS][KD_NTYPES];
#define KD_INT_CASES(m) m(char, CHAR) m(signed char, SCHAR) m(unsigned char, UCHAR) m(short, SHORT) m(unsigned short, USHORT) \
	m(int, INT) m(unsigned, UINT) m(long, LONG) m(unsigned long, ULONG) m(long long, LLONG) m(unsigned long long, ULLONG)
#define KD_FLOAT_CASES(m) m(float, FLOAT) m(double, DOUBLE) m(long double, LDOUBLE)
#ifdef __cplusplus
}
#define KD_NUM_FN(T, N) constexpr int kd_int_of(T *) { return KD_T_##N; } constexpr int kd_num_of(T *) { return KD_T_##N; }
KD_INT_CASES(KD_NUM_FN)
#undef KD_NUM_FN
#define KD_NUM_FN(T, N) constexpr int kd_num_of(T *) { return KD_T_##N; }
KD_FLOAT_CASES(KD_NUM_FN)
#undef KD_NUM_FN
template <typename T> union kd_operator {
	struct kdds_op kd_op;
	T *kd_type;
};
#define KD_OPERATOR(T) kd_operator<T>
#define KD_INT(T) kd_int_of((T *)nullptr)
#define KD_NUM(T) kd_num_of((T *)nullptr)
extern "C" {
#else
/* An operator that knows its type, for REDUCE to compare with that of the data. */
#define KD_OPERATOR(T) union { struct kdds_op kd_op; T *kd_type; }
#define KD_NUM_CASE(T, N) , T *: KD_T_##N
#define KD_INT(T) _Generic((T *)0, struct kd_none *: 0 KD_INT_CASES(KD_NUM_CASE))
#define KD_NUM(T) _Generic((T *)0, struct kd_none *: 0 KD_INT_CASES(KD_NUM_CASE) KD_FLOAT_CASES(KD_NUM_CASE))
#endif
#define KD_OPERATOR_AT(op, T, number) ((const KD_OPERATOR(T) *)&kdds_ops[op][number])
/** @endcond */

#define KDDS_SUM(T) KD_OPERATOR_AT(KD_OP_SUM, T, KD_NUM(T))   /**< neutral element 0 */
#define KDDS_PROD(T) KD_OPERATOR_AT(KD_OP_PROD, T, KD_NUM(T)) /**< neutral element 1 */
/** neutral element: the type's maximum, or infinity */
#define KDDS_MIN(T) KD_OPERATOR_AT(KD_OP_MIN, T, KD_NUM(T))
/** neutral element: the type's minimum, or minus infinity */
#define KDDS_MAX(T) KD_OPERATOR_AT(KD_OP_MAX, T, KD_NUM(T))
#define KDDS_AND(T) KD_OPERATOR_AT(KD_OP_AND, T, KD_INT(T)) /**< bitwise, integer types; all ones */
#define KDDS_OR(T) KD_OPERATOR_AT(KD_OP_OR, T, KD_INT(T))   /**< bitwise, integer types; 0 */
#define KDDS_XOR(T) KD_OPERATOR_AT(KD_OP_XOR, T, KD_INT(T)) /**< bitwise, integer types; 0 */

/** Operator attributes of KDDS_OP. */
#define KDDS_ORDERED 0 /**< contributions are kept apart and combined in reference order: same bits on any number of workers */
#define KDDS_EXACT 1   /**< the same bits however it is grouped (integers), or the program does not mind: faster */

/**
 * Declares the reduction operator @p op over T: @p zero is an expression, the neutral element; the block that follows
 * combines: *x = *x op *y. It must be associative; it need not be commutative.
 *
 *   KDDS_OP(widest, struct span, ((struct span){0}), KDDS_EXACT) { if (y->length > x->length) *x = *y; }
 */
#define KDDS_OP(op, T, zero, attributes) \
	static inline void kd_op_##op(T *x, const T *y); \
	static void kd_neutral_##op(void *x, size_t n) KD_NOEXCEPT \
	{ \
		KD_TRY \
			for (size_t i = 0; i < n; i++) \
				((T *)x)[i] = zero; \
		KD_CATCH("operator", #op) \
	} \
	static void kd_merge_##op(void *x, const void *y, size_t n) KD_NOEXCEPT \
	{ \
		KD_TRY \
			for (size_t i = 0; i < n; i++) \
				kd_op_##op((T *)x + i, (const T *)y + i); \
		KD_CATCH("operator", #op) \
	} \
	static const KD_OPERATOR(T) op = { \
		{#op, sizeof(T), kd_neutral_##op, kd_merge_##op, attributes}}; \
	static inline void kd_op_##op(T *x, const T *y)
/** @} */

/** @name The abstract machine
 * The instructions of dds.txt, figure 1, for generators and bindings: a closure is allocated, its parameters are pushed in
 * the order the type declares them, and it is committed. KDDS_TASK compiles to the same closures.
 * @{ */

/** One parameter of a type made at run time. */
struct kdds_param_spec {
	enum kdds_mode mode;      /**< KDDS_MODE_ANY: an immediate value of size bytes */
	size_t size;              /**< bytes of the value, or of one element of the data */
	const void *op;           /**< KDDS_CW only: KDDS_SUM(T) and its like, or the address of a
				       KDDS_OP, over a T of that size */
};

/** The body of a type made at run time; kdds_arg gives its parameters. In C++ it is noexcept. */
typedef void kdds_body(struct kdds_closure *c) KD_NOEXCEPT;

/**
 * Makes a task type. @p name and @p params are copied. In a job of several ranks closures of it may be stolen by other ranks if
 * all make the same types in the same order before kdds_init; those of a type made later stay in the process.
 *
 * Context: any thread. @param type_p the new type, to be destroyed by kdds_type_destroy when no closure of it is left.
 * @return 0, -EINVAL (a parameter count above KDDS_MAX_PARAMS, a mode or size that means nothing,
 *         values of 64 KiB or more together, an operator over elements of another size), -ENOMEM
 */
int kdds_type_create(const char *name, kdds_body *body, const struct kdds_param_spec *params, size_t nparams,
		     struct kdds_type **type_p);
/** Frees a type made by kdds_type_create. */
void kdds_type_destroy(struct kdds_type *type);

/** Reserves the next closure of the running task's frame. One at a time: nothing else is spawned before it is committed.
 *  Context: main, task. */
struct kdds_closure *kdds_closure_allocate(const struct kdds_type *type);
/** Pushes the next parameter, an immediate value: size bytes, the type's, are copied. */
void kdds_push_value(struct kdds_closure *c, const void *value);
/** Pushes the next parameter, a shared data, for the use the type declares. @param ref a reference as kdds_spawn takes it
 *  (&d.at, or what KDDS_DATA declares) */
void kdds_push_access(struct kdds_closure *c, void *ref);
/** Gives the closure spawn attributes, as kdds_spawn_with does; without this it has none. */
void kdds_closure_attributes(struct kdds_closure *c, uint16_t attributes);
/** Completes the closure: it may now run. Ends the program when a parameter has not been pushed. */
void kdds_commit(struct kdds_closure *c);
/** In a body: the address of parameter @p i, of the value or of a reference to the data (a T **). */
void *kdds_arg(struct kdds_closure *c, size_t i);
/** @} */

/** @name Observing
 * @{ */

/** Counts since kdds_init, summed over the workers. */
struct kdds_stats {
	uint64_t tasks;      /**< closures run */
	uint64_t requests;   /**< attempts at a victim */
	uint64_t steals;     /**< attempts that brought work */
	uint64_t stolen;     /**< closures they brought */
	uint64_t steal_ns;   /**< time those took, from asking for the victim's lock to leaving it */
	uint64_t parks;      /**< stacks set aside because their next closure was being run elsewhere */
	uint64_t sleeps;     /**< times a worker went to sleep for want of work */
	uint64_t membarriers; /**< times a thief had to interrupt a victim to read its stack */
	uint64_t work_ns;    /**< time in tasks' bodies; 0 unless tasks are timed: KDDS_STATS=1, see kdds(7) */
	uint64_t depth_ns;   /**< critical path of what main has done so far; likewise */
};

/** Context: main, while no task runs (after kdds_sync). */
void kdds_stats_get(struct kdds_stats *stats_p);
/** Prints the table of KDDS_ environment variables, their defaults and meaning. Context: anywhere. */
void kdds_help(FILE *out);
/** What a negative return value means. Context: anywhere; the string is static. */
const char *kdds_strerror(int error);
/** The library's version, "major.minor.patch". Context: anywhere; the string is static. */
const char *kdds_version(void);
/** @} */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
