/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libkdds: work-stealing dataflow tasks.
 *
 * A program is a tree of tasks that share data. Each task declares how it accesses each data item
 * (READ, WRITE, UPDATE, REDUCE). The library runs tasks in parallel and guarantees that every read
 * returns the value that the sequential program would have produced. In the sequential program the
 * children of a task run after its body, one after the other, each with all its descendants; this
 * order is called *reference order*. The values that a program computes therefore do not depend on
 * the number of workers.
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
 * Conventions for all functions: A function that can fail returns 0 or a negative errno value,
 * which kdds_strerror() describes. A programming error (a task spawned before kdds_init, a
 * read-only parameter passed on for writing) ends the program with one line on stderr that
 * describes the error. The caller keeps ownership of the memory it passes.
 * "Context" states where a function may be called: *main* is the thread that called kdds_init,
 * *task* is the body of a task or a function that it calls.
 *
 * Source of the model: T. Gautier, J.-L. Roch, F. Wagner, "Fine Grain Distributed Implementation of
 * a Dataflow Language with Provable Performances", 2007.
 */
#ifndef KDDS_H
#define KDDS_H

#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#error "kdds.h needs C11: compile with -std=gnu11, -std=c11 or later"
#endif

#include <stdio.h>
#ifdef __cplusplus
#include <type_traits>
#endif

#include "kdds/inline.h"
#include "kdds/saved.h"
#include "kdds/task.h"

#define KDDS_VERSION_MAJOR 0
#define KDDS_VERSION_MINOR 2
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
	KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP( \
	KD_LAYOUT_STEP(KD_LAYOUT_STEP(KD_LAYOUT_STEP(19u, \
		sizeof(struct kdds_frame)), offsetof(struct kdds_frame, link_base)), \
		sizeof(struct kdds_closure)), \
		offsetof(struct kdds_closure, state)), sizeof(struct kdds_access_array)), sizeof(struct kdds_type)), \
		sizeof(struct kdds_param))
int kdds_init_layout(int version, uint32_t layout);
/** @endcond */

/**
 * Starts the workers. The calling thread becomes worker 0 and *main*. Compares the data layouts
 * compiled into the program with those of the library.
 *
 * Context: a thread outside all tasks; once before each kdds_finalize, and only once in a job of
 * several ranks.
 * @return 0; -EALREADY if already initialised; -EINVAL for an invalid KDDS_ variable or a library
 *         with other layouts; -ENOMEM or -EAGAIN if memory or threads cannot be allocated. A line
 *         on stderr describes the error. If there is no address space for a stack, the program
 *         ends, as it does whenever a stack cannot be allocated. In a job of several ranks an
 *         error after the ranks have met ends the process by exit(1), because the other ranks
 *         depend on it.
 */
#define kdds_init() kdds_init_layout(KDDS_VERSION, KD_LAYOUT)

/**
 * Waits for all tasks, stops the workers and frees the resources of the library.
 *
 * If a task has failed (kdds_fail) and the program has not asked for it by kdds_failure, prints a
 * line on stderr, and the process ends with status 1 even if main returns 0.
 *
 * Context: main. @return 0; the code of a task that has failed since the last kdds_sync; -EPERM if
 *         the library is not initialised, or if called from another thread or from a task. Other
 *         errors: a file for KDDS_TRACE or KDDS_DOT could not be written; all tasks have run, and a
 *         line on stderr describes the error.
 */
int kdds_finalize(void);
/** @} */

/** A function of the program that the library calls before it ends the program because of an error.
 *  @param line what it has printed on stderr, without the end of the line */
typedef void kdds_error_handler(const char *line, void *arg);

/**
 * Installs @p handler, in place of another one; NULL: none. The library calls it once, on the
 * thread that found the error, while other threads may run tasks and hold locks. It may write a
 * log, or end the program by abort(3) or _exit(2). If it returns, the program exits with status 1.
 * It must not call this library. Errors that a function of the library returns, and signals, are
 * not passed to it.
 *
 * Context: anywhere, also before kdds_init.
 */
void kdds_on_error(kdds_error_handler *handler, void *arg);

/** @name Ranks and workers
 * Context: anywhere. Before kdds_init and after kdds_finalize there are no workers and no places.
 * @{ */
int kdds_rank(void);    /**< number of this process in the job, 0 to kdds_size() - 1 */
int kdds_size(void);    /**< number of processes in the job, those included that are not live */
/** number of processes that are part of the job now, as far as this one knows: fewer than
 * kdds_size() when ranks have died or left, or may still join (kddsrun --survive) */
int kdds_live(void);
int kdds_workers(void); /**< number of workers in this process */
int kdds_worker(void);  /**< the calling worker, 0 to kdds_workers() - 1; -1 on other threads */
int kdds_places(void);  /**< number of places (NUMA nodes) over which the workers are distributed */
/** @} */

/** @name Waiting
 * @{ */

/** @cond internal */
int kdds_sync_frame(struct kdds_frame *f, uint32_t start);
int kdds_wait_frame(struct kdds_frame *f, struct kdds_anchor *a, size_t size);
static inline int kd_sync(struct kdds_frame *self, const struct kd_room *room)
{
	int code;

	if (self && self->tail == kd_frame_first(self))
		return 0;
	code = kdds_sync_frame(self, room ? room->start : 0);
	if (room) /* no closure uses data, and no function is going to push without raising keep */
		self->keep = self->parent->keep;
	return code;
}
static inline int kd_wait(struct kdds_frame *self, const struct kd_room *room, const void *ref,
			  size_t size)
{
	int code;

	if (KD_UNLIKELY(!kd_is_reference(ref)))
		kdds_no_reference("kdds_wait", NULL);
	if (self && self->tail == kd_frame_first(self))
		return 0;
	code = kdds_wait_frame(self, kd_anchor_of(ref), size);
	if (room && self->tail == kd_frame_first(self))
		self->keep = self->parent->keep;
	return code;
}
/** @endcond */

/**
 * Waits for the children that this body has committed so far. Meanwhile the worker runs them and,
 * while some run elsewhere, other tasks. Afterwards the body may access their data again. Intended
 * for main and for fork-join code; a dataflow program does not need it in a task. A waiting body
 * occupies part of the C stack of its worker (ulimit -s). If nested waiting bodies fill the stack,
 * the job ends with a line on stderr.
 *
 * Context: main, task. @return 0; or the code of a failed descendant (kdds_fail), of main since its
 *         last kdds_sync. The values of failed data are undefined. Main may use them again: what it
 *         spawns from now on runs. In a task they have failed until it ends.
 */
#define kdds_sync() kd_sync(kd_self, kd_room)

/**
 * Waits for the children committed so far that use the data of the reference @p x, and for those
 * before them in reference order. Others may still wait or run. Afterwards the body may access the
 * data of x, but no other data of these children: between ranks, results stay where they were made
 * until somebody waits for them, and a later kdds_sync stores them. For main, and for loops that
 * keep some tasks ahead: a ring of buffers, or a test of convergence.
 *
 * Context: main, task. @return 0; or, if the data have failed, the code of a failed task.
 */
#define kdds_wait(x) kd_wait(kd_self, kd_room, (x), sizeof(**(x)))
/** @} */

/** @name Frozen data
 * Between two waits main may write to any data, so other ranks have to compare what they have read
 * with what main has, each time that tasks use it again. Of large data that do not change, such as
 * the points of a clustering or the links of a graph, a program can say so:
 *
 * @code
 * fill(points);
 * kdds_freeze(points);
 * while (!converged) {
 *         kdds_for(assign, points, centres, sums);
 *         kdds_wait(sums);
 *         converged = move(centres, sums);
 * }
 * kdds_thaw(points);
 * @endcode
 * @{ */

/** @cond internal */
int kdds_freeze_data(struct kdds_frame *f, struct kdds_anchor *a, size_t size);
int kdds_thaw_data(struct kdds_frame *f, struct kdds_anchor *a, size_t size);
static inline struct kdds_anchor *kd_frozen(const char *what, const void *ref)
{
	if (KD_UNLIKELY(!kd_is_reference(ref)))
		kdds_no_reference(what, NULL);
	return kd_anchor_of(ref);
}
/** @endcond */

/**
 * Waits for all children, as kdds_sync does, but only the data of the reference @p x are main's
 * again, to read. From then on until kdds_thaw nobody writes to these data: neither main, nor a
 * task, which may only READ them, or a part of them. Each rank reads them once at most, as long as
 * its copy cache has room (KDDS_CACHE). If they are written to all the same, tasks may use old
 * values: KDDS_CHECK reports that. Data are thawed before their memory is freed or, as KDDS_DATA,
 * ends. Data with pack functions are converted each time, frozen or not.
 *
 * Context: main. @return as kdds_wait
 */
#define kdds_freeze(x) kdds_freeze_data(kd_self, kd_frozen("kdds_freeze", (x)), sizeof(**(x)))

/**
 * Waits for all children, as kdds_freeze does. From then on the data of @p x may be written to
 * again, unless they have been frozen twice, or as a part of others: each kdds_freeze has its
 * kdds_thaw. @p x has the address and the shape of the reference that was given to kdds_freeze.
 * kdds_finalize thaws all data.
 *
 * Context: main. @return as kdds_wait
 */
#define kdds_thaw(x) kdds_thaw_data(kd_self, kd_frozen("kdds_thaw", (x)), sizeof(**(x)))
/** @} */

/** @name Failures
 * @{ */
/** A task that has failed. */
struct kdds_failure {
	int code;      /**< 0: none has */
	int rank;      /**< that has run it */
	char task[64]; /**< its name */
	char text[184]; /**< why */
};

/** Describes the failure whose code kdds_sync, kdds_wait or kdds_finalize has returned last. If
 *  several tasks have failed, it is the first that was found, which may differ from run to run.
 *  Context: anywhere. @return its code; 0 if no task has failed since kdds_init */
int kdds_failure(struct kdds_failure *failure_p);
/** @} */

/** @name Checkpoints
 * Main saves its state in a file, and another run of the program continues from there:
 *
 * @code
 * long step = 0;
 *
 * fill(x);
 * error = kdds_restore("run/heat", &step, x);
 * if (error && error != -ENOENT)
 *         return 1;
 * while (step < STEPS) {
 *         spawn_step(x);
 *         if (++step % 1000 == 0 && kdds_checkpoint("run/heat", &step, x))
 *                 return 1;
 * }
 * @endcode
 *
 * The arguments after the name, at most 16, are the state:
 * - a reference, to a single object, an array or a tile;
 * - kdds_list(refs, n), which counts as two: n references;
 * - the address of a variable (@c &step), or an array of variables (@c totals). A pointer to
 *   allocated memory stands for one object: make a reference to save more.
 *
 * The values are saved as bytes, so elements are trivially copyable and no pointers. Data bound by
 * kdds_bind_packed are saved as their functions convert them.
 *
 * Context: main, in rank 0, on whose host the files are.
 * @{ */

/**
 * Waits for all children, as kdds_sync does, and then saves the state. The last two checkpoints are
 * kept, as @p name.kdds1 and @p name.kdds2; the directory must exist. When the function returns 0,
 * the checkpoint is on disk. If it fails, or the process or the machine does, those before are as
 * they were. Uses a few threads and a few MiB of memory.
 *
 * @return 0; the code of a task that has failed, whose data must not be saved (it is returned once,
 *         as by kdds_sync: a program that goes on saves what main has then); or, after a line on
 *         stderr, -ENOSPC (the disk is full), -EBUSY (another process writes this checkpoint), or
 *         another error of the file system, or -ENOMEM
 */
#define kdds_checkpoint(name, ...) kdds_checkpoint_state(name, KD_STATE(__VA_ARGS__))

/**
 * Waits for all children, and replaces the state by that of the last checkpoint. The arguments are
 * those of kdds_checkpoint, with the same types and shapes; the numbers of ranks and workers need
 * not be. A file that is torn or has been altered gets a line on stderr; the one before is used.
 *
 * @return 0; -ENOENT if there is no checkpoint; the code of a task that has failed; or, after a
 *         line on stderr, -EBADMSG (none of the files is usable), -EINVAL (the checkpoint has
 *         other types or shapes), -EIO or another error of the file system, or -ENOMEM. The state
 *         is unchanged then, unless the line says that the disk has failed while it was being read.
 */
#define kdds_restore(name, ...) kdds_restore_state(name, KD_STATE(__VA_ARGS__))

/** Removes the checkpoints of this name, for a program that has reached its end. Context: main.
 *  @return 0, also if there are none; or an error of the file system */
int kdds_checkpoint_remove(const char *name);
/** @} */

/** @name Flags
 * To end a search: tasks look at a flag before they do more work. A flag is a hint. It has no order
 * with data: a result travels as data, such as a reduction.
 * @{ */
/** @cond internal */
#define KD_FLAG_MAGIC 0x67616c6673646473ull
/** @endcond */
/** A flag, declared by KDDS_FLAG. */
struct kdds_flag {
	uint64_t magic;    /**< internal, as the others */
	uint32_t raised;   /**< on this rank */
	uint64_t lowered;  /**< rank 0: the epoch in which it was */
	struct kdds_flag *next; /**< that is raised on this rank */
};

/** At file scope: defines @p flag, a struct kdds_flag that is not raised. A header declares it by
 *  extern struct kdds_flag. A flag of a library that is loaded after kdds_init is raised on one
 *  rank only. */
#define KDDS_FLAG(flag) struct kdds_flag flag = {KD_FLAG_MAGIC, 0, 0, 0}

/** Raises @p flag on this rank, and soon after on the others. Context: any thread, between
 *  kdds_init and kdds_finalize; not a signal handler. */
void kdds_raise(struct kdds_flag *flag);

/** Whether this rank knows that @p flag is raised. Costs a load. Context: anywhere. */
static inline int kdds_raised(const struct kdds_flag *flag)
{
	return (int)__atomic_load_n(&flag->raised, __ATOMIC_RELAXED);
}

/** Lowers @p flag: no task that is spawned afterwards finds it raised, on any rank, until it is
 *  raised again. Context: main, while no task uses the flag (after kdds_sync). */
void kdds_lower(struct kdds_flag *flag);
/** @} */

/** @name Spawn attributes
 * For kdds_spawn_with: a bitwise OR, with at most one KDDS_ON_ attribute. They guide thieves: the
 * owner of a frame runs its closures in reference order, except for KDDS_LOCAL ones while other
 * ranks wait for what follows these. KDDS_ON_RANK binds the owner, too.
 * @{ */
/** stays in this process: for I/O and pointers to objects of this process */
#define KDDS_LOCAL 0x8000u
#define KDDS_PRIORITY_HIGH 0x4000u /**< is stolen before other ready tasks */
#define KDDS_PRIORITY_LOW 0x2000u  /**< is stolen after other ready tasks */
/** other workers take it only if they find nothing else */
#define KDDS_ON_WORKER(i) (0x1000u | ((unsigned)(i) & 0x7ffu))
/** workers of other places take it only if they find nothing else */
#define KDDS_ON_PLACE(i) (0x1800u | ((unsigned)(i) & 0x7ffu))
/**
 * runs on rank r modulo kdds_size(), for 0 <= r < 2^20, and on no other. What the task writes is in
 * the memory of that rank afterwards, for the tasks that follow there. The children of the task may
 * run anywhere. A loop over the parts of a matrix distributes it:
 *
 * @code
 * for (int i = 0; i < n; i++)
 *         kdds_spawn_with(KDDS_ON_RANK(i), fill, i, kdds_ref(part[i]));
 * @endcode
 *
 * A task that cannot go to its rank runs where it was spawned: with KDDS_LOCAL, while a failure is
 * known of which main has not been told, when the rank is not live (kddsrun --survive), with two views
 * of the same data, or, after a line on stderr, with other arguments that other processes cannot
 * use.
 */
#define KDDS_ON_RANK(r) KD_ON_RANK(r)
/** @} */

/** @name Data
 * KDDS_DATA (task.h) makes one new T. The macros below make references to arrays, or to memory of
 * the program, which must outlive the tasks that use it. The shape is passed with the reference
 * to _ARRAY parameters. References to a const T are for READ parameters.
 *
 * Context: main, task.
 * @{ */

/** @cond internal */
void kdds_shape_check(size_t rows, size_t cols, size_t ld);
static inline struct kdds_anchor *kd_anchor_init(void *anchor, const volatile void *data,
						 uint32_t mode, uint32_t bound)
{
	struct kdds_anchor *a = (struct kdds_anchor *)anchor;

	a->data = (void *)(uintptr_t)data;
	a->links = KD_NO_LINK;
	kd_anchor_use(a, KD_USABLE(mode), (int16_t)(KD_USE(mode) | (int16_t)bound));
	return a;
}

/* A reference may point to the anchor. */
static inline void kd_anchor_show(struct kdds_anchor *a)
{
	a->self = a;
}

/* The anchor is the object around the shape, so macros evaluate the object, which may be t[i++],
 * only once. */
static inline struct kdds_anchor *
kd_anchor_init_array(struct kdds_shape *shape, const volatile void *data, uint32_t mode,
		     uint32_t bound, size_t rows, size_t cols, size_t ld,
		     const struct kdds_pack *pack)
{
	void *anchor = (char *)shape - offsetof(struct kdds_anchor_array, shape);
	struct kdds_anchor *a = (struct kdds_anchor *)anchor;

	if (ld < cols)
		kdds_shape_check(rows, cols, ld);
	if (!rows) { /* rows 0 means that there is no shape, so use one row without elements */
		rows = 1;
		cols = 0;
	}
	shape->rows = rows;
	shape->cols = cols;
	shape->ld = ld;
	shape->pack = pack;
	kd_anchor_init(a, data, mode, bound);
	a->single = kd_single(shape, mode);
	a->shaped = 1;
	return a;
}

static inline struct kdds_anchor *kd_anchor_init_row(struct kdds_shape *shape,
						     const volatile void *data, uint32_t mode,
						     uint32_t bound, size_t n)
{
	return kd_anchor_init_array(shape, data, mode, bound, 1, n, n, NULL);
}

/* KD_LIKE is ptr; it compiles if ptr points to the type that at points to, or to void, and not to
 * const unless at does. KD_ALLOWS is the mode in which tasks may use the data that at points to.
 * Neither evaluates at. */
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

static inline void *kd_frame_array(struct kd_lifetime *life, size_t size, size_t align)
{
	return life->data = kd_frame_data(life, size, align);
}

/* On overflow, the largest possible request, which the library rejects with a message. */
static inline size_t kd_array_bytes(size_t n, size_t size)
{
	return size && n > SIZE_MAX / size ? SIZE_MAX : n * size;
}
#define KD_BIND(d, ptr) \
	kd_anchor_init(&(d).at, KD_LIKE((d).at, ptr), KD_ALLOWS((d).at), kd_bound(kd_room))
#define KD_BIND_ARRAY(d, ptr, n) \
	kd_anchor_init_row(&(d).kd_shape, KD_LIKE((d).at, ptr), KD_ALLOWS((d).at), \
			   kd_bound(kd_room), n)
#define KD_BIND_TILE(d, ptr, rows, cols, ld, pack) \
	kd_anchor_init_array(&(d).kd_shape, KD_LIKE((d).at, ptr), KD_ALLOWS((d).at), \
			     kd_bound(kd_room), rows, cols, ld, pack)
/** @endcond */

/** Makes @p d, an object of type kdds_data(T), refer to the T at @p ptr. */
#define kdds_bind(d, ptr) kd_anchor_show(KD_BIND(d, ptr))
/** Makes @p d, an object of type kdds_array(T), refer to the @p n consecutive T at @p ptr. */
#define kdds_bind_array(d, ptr, n) kd_anchor_show(KD_BIND_ARRAY(d, ptr, n))
/** Makes @p d refer to a 2-D view: @p rows rows of @p cols elements, with consecutive rows @p ld
 *  elements apart. */
#define kdds_bind_tile(d, ptr, rows, cols, ld) kdds_bind_packed(d, ptr, rows, cols, ld, NULL)
/** The same with functions that convert the data to bytes for another process. */
#define kdds_bind_packed(d, ptr, rows, cols, ld, pack) \
	kd_anchor_show(KD_BIND_TILE(d, ptr, rows, cols, ld, pack))

/** The reference to the data of @p d, an object of type kdds_data(T) or kdds_array(T). */
#define kdds_ref(d) ((__typeof__((d).at) const *)&(d).at)

/** Declares @p x, a reference to the T at @p ptr in memory of the program. */
#define KDDS_OVER(T, x, ptr) \
	kdds_data(T) kd_data_##x; \
	kd_handle(T) kd_handle_##x; \
	T *const *const x = (KD_BIND(kd_data_##x, ptr), kd_make_handle(kd_handle_##x, kd_data_##x))
/** Declares @p x, a reference to the @p n consecutive T at @p ptr. */
#define KDDS_OVER_ARRAY(T, x, ptr, n) \
	kdds_array(T) kd_data_##x; \
	kd_handle(T) kd_handle_##x; \
	T *const *const x = (KD_BIND_ARRAY(kd_data_##x, ptr, n), kd_make_handle(kd_handle_##x, kd_data_##x))
/** Declares @p x, a reference to a 2-D view of the T at @p ptr: see kdds_bind_tile. */
#define KDDS_OVER_TILE(T, x, ptr, rows, cols, ld) \
	kdds_array(T) kd_data_##x; \
	kd_handle(T) kd_handle_##x; \
	T *const *const x = (KD_BIND_TILE(kd_data_##x, ptr, rows, cols, ld, NULL), \
			     kd_make_handle(kd_handle_##x, kd_data_##x))
/** Declares @p x, a reference to @p n new T that live as long as those of KDDS_DATA. */
#define KDDS_DATA_ARRAY(T, x, n) \
	KD_NEW(T) \
	const size_t kd_n_##x = n; \
	kdds_array(T) kd_data_##x; \
	kd_handle(T) kd_handle_##x; \
	KD_LIFETIME(x); \
	T *const *const x = (kd_anchor_init_row(&kd_data_##x.kd_shape, kd_frame_array(&kd_life_##x, kd_array_bytes(kd_n_##x, sizeof(T)), __alignof__(T)), \
						KDDS_MODE_ANY, 0, kd_n_##x), kd_make_handle(kd_handle_##x, kd_data_##x))

/** Declares @p x, a reference to new T in @p rows rows of @p cols, one after another in memory, that
 *  live as long as those of KDDS_DATA. */
#define KDDS_DATA_TILE(T, x, rows, cols) \
	KD_NEW(T) \
	const size_t kd_rows_##x = rows, kd_cols_##x = cols; \
	kdds_array(T) kd_data_##x; \
	kd_handle(T) kd_handle_##x; \
	KD_LIFETIME(x); \
	T *const *const x = (kd_anchor_init_array( \
		&kd_data_##x.kd_shape, \
		kd_frame_array(&kd_life_##x, \
			       kd_array_bytes(kd_rows_##x, kd_array_bytes(kd_cols_##x, sizeof(T))), \
			       __alignof__(T)), \
		KDDS_MODE_ANY, 0, kd_rows_##x, kd_cols_##x, kd_cols_##x, NULL), \
		kd_make_handle(kd_handle_##x, kd_data_##x))

/** Declares @p y, a reference to @p n elements of the array that @p x refers to, from element @p from
 *  on. It has the type and the mode of x: a part of READ data is only read. A body may use an array
 *  and its parts by turns; tasks that use what overlaps run in reference order. */
#define KDDS_SLICE(y, x, from, n) \
	kdds_part(__typeof__(**(x))) kd_data_##y; \
	kd_handle(__typeof__(**(x))) kd_handle_##y; \
	__typeof__(**(x)) *const *const y = ( \
		kd_slice(&kd_data_##y.kd_shape, kd_anchor_of(x), sizeof(**(x)), from, n, kd_room), \
		kd_make_handle(kd_handle_##y, kd_data_##y))
/** The same for a two-dimensional part: @p rows rows of @p cols elements, which begin at element
 *  @p col of row @p row. */
#define KDDS_SUBTILE(y, x, row, col, rows, cols) \
	kdds_part(__typeof__(**(x))) kd_data_##y; \
	kd_handle(__typeof__(**(x))) kd_handle_##y; \
	__typeof__(**(x)) *const *const y = ( \
		kd_subtile(&kd_data_##y.kd_shape, kd_anchor_of(x), sizeof(**(x)), row, col, rows, \
			   cols, kd_room), \
		kd_make_handle(kd_handle_##y, kd_data_##y))
/** The same with @p d, an object of type kdds_part(T), for programs with arrays of parts; kdds_ref(d) is
 *  the reference. It may refer to another part later. */
#define kdds_bind_slice(d, x, from, n) \
	(kd_slice(&(d).kd_shape, kd_part_of((d).at, x), sizeof(**(x)), from, n, kd_room), \
	 kd_anchor_show((struct kdds_anchor *)(void *)&(d).at))
#define kdds_bind_subtile(d, x, row, col, rows, cols) \
	(kd_subtile(&(d).kd_shape, kd_part_of((d).at, x), sizeof(**(x)), row, col, rows, cols, \
		    kd_room), \
	 kd_anchor_show((struct kdds_anchor *)(void *)&(d).at))
/** @cond internal */
/* It compiles if at may point to what x refers to. */
#define kd_part_of(at, x) ((void)KD_LIKE(at, *(x)), kd_anchor_of(x))
/** @endcond */
/** Declares @p x, a reference to no data, for an _ARRAY parameter that is optional:
 *  kdds_count(x) is 0. */
#define KDDS_NONE(T, x) KDDS_OVER_ARRAY(T, x, (T *)NULL, 0)

/** The shape of the data that @p x refers to, a const struct kdds_shape *; NULL for a single T. */
#define kdds_shape_of(x) kd_shape_of(kd_anchor_of(x))
/** The number of elements (rows times columns) that @p x refers to. */
#define kdds_count(x) kd_count_of(kdds_shape_of(x))
/** @cond internal */
static inline const struct kdds_shape *kd_shape_of(const struct kdds_anchor *a)
{
	const struct kdds_shape *s;

	if (!a->shaped)
		return NULL;
	/* Where compilers see the anchor of a single T, they would warn of the access. */
	__asm__("" : "=r"(s) : "0"((const char *)a + offsetof(struct kdds_anchor_array, shape)));
	return s->rows ? s : NULL;
}
static inline size_t kd_count_of(const struct kdds_shape *s)
{
	return s ? s->rows * s->cols : 1;
}
/* rows 0: a slice */
void kdds_part_error(const struct kdds_anchor *whole, size_t row, size_t col, size_t rows,
		     size_t cols) __attribute__((noreturn, cold));

/* May be used as the whole may. What only reads need not be ordered; what contributes is given
 * back when the body that reduces has returned (kd_lend), and so is ordered with its frame. */
static inline void kd_part_init(struct kdds_shape *shape, struct kdds_anchor *whole, size_t size,
				size_t offset, struct kd_room *room, size_t rows, size_t cols,
				size_t ld)
{
	struct kdds_anchor *a = kd_anchor_init_array(shape, (char *)whole->data + offset,
						     KDDS_MODE_ANY, 0, rows, cols, ld, NULL);
	int16_t use = (int16_t)(whole->use & ~KD_USE_HOW);

	a->use = (int16_t)(use | KD_USE_BOUND);
	if (a->single)
		a->single = INT32_MIN + (use - INT16_MIN);
	if (whole->shaped && !(whole->use & KD_USE_PART) && kd_may(use, KDDS_W)) {
		struct kd_part *p = (struct kd_part *)(void *)a, *of;

		a->shaped |= KD_TRACKED;
		a->links = KD_TRACKED_LINK;
		/* Where compilers see a whole that is no part, they would warn of the access. */
		__asm__("" : "=r"(of) : "0"(whole));
		p->whole = whole->shaped & KD_TRACKED ? of->whole : whole;
		p->size = size;
		__asm__ volatile("" : : "r"(p) : "memory"); /* the library has it: kd_uses */
	} else {
		a->use = (int16_t)(use | (int16_t)kd_bound(room));
	}
}
static inline void kd_slice(struct kdds_shape *shape, struct kdds_anchor *whole, size_t size,
			    size_t from, size_t n, struct kd_room *room)
{
	const struct kdds_shape *s = kd_shape_of(whole);
	size_t count = kd_count_of(s);

	if (KD_UNLIKELY(from > count || n > count - from ||
			(s && (s->pack || (s->rows > 1 && s->ld != s->cols)))))
		kdds_part_error(whole, 0, from, 0, n);
	kd_part_init(shape, whole, size, from * size, room, 1, n, n);
}
static inline void kd_subtile(struct kdds_shape *shape, struct kdds_anchor *whole, size_t size,
			      size_t row, size_t col, size_t rows, size_t cols,
			      struct kd_room *room)
{
	const struct kdds_shape one = {1, 1, 1, NULL}, *s = kd_shape_of(whole);

	if (!s)
		s = &one;
	if (KD_UNLIKELY(row > s->rows || rows > s->rows - row || col > s->cols ||
			cols > s->cols - col || s->pack))
		kdds_part_error(whole, row, col, rows, cols);
	kd_part_init(shape, whole, size, (row * s->ld + col) * size, room, rows, cols, s->ld);
}
/** @endcond */
/** @} */

/** @name Reductions
 * KDDS_SUM(T) and the macros after it name the operators over a numeric type T. KDDS_OP declares an
 * operator over a type of the program. Contributions are combined in reference order, so
 * floating-point results are the same on any number of workers.
 * @{ */

/** @cond internal */
enum { KD_OP_SUM, KD_OP_PROD, KD_OP_MIN, KD_OP_MAX, KD_OP_AND, KD_OP_OR, KD_OP_XOR, KD_NOPS };
enum { KD_T_CHAR, KD_T_SCHAR, KD_T_UCHAR, KD_T_SHORT, KD_T_USHORT, KD_T_INT, KD_T_UINT, KD_T_LONG, KD_T_ULONG, KD_T_LLONG,
       KD_T_ULLONG, KD_NINTS, KD_T_FLOAT = KD_NINTS, KD_T_DOUBLE, KD_T_LDOUBLE, KD_NTYPES };
extern const struct kdds_op kdds_ops[KD_NOPS][KD_NTYPES];
/* A constant to compilers: they see the operators of the program, and the library's operators over
 * integers are exact. */
KD_INLINE int kd_exact(const struct kdds_op *op)
{
	size_t at = (size_t)(op - &kdds_ops[0][0]);

	return (__builtin_constant_p(at) && at % KD_NTYPES < KD_NINTS) || op->exact;
}
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
/* An operator with its type, which REDUCE compares with the type of the data. */
#define KD_OPERATOR(T) union { struct kdds_op kd_op; T *kd_type; }
#define KD_NUM_CASE(T, N) , T *: KD_T_##N
#define KD_INT(T) _Generic((T *)0, struct kd_none *: 0 KD_INT_CASES(KD_NUM_CASE))
#define KD_NUM(T) _Generic((T *)0, struct kd_none *: 0 KD_INT_CASES(KD_NUM_CASE) KD_FLOAT_CASES(KD_NUM_CASE))
#endif
#define KD_OPERATOR_AT(op, T, number) ((const KD_OPERATOR(T) *)&kdds_ops[op][number])
/** @endcond */

#define KDDS_SUM(T) KD_OPERATOR_AT(KD_OP_SUM, T, KD_NUM(T))   /**< neutral element 0 */
#define KDDS_PROD(T) KD_OPERATOR_AT(KD_OP_PROD, T, KD_NUM(T)) /**< neutral element 1 */
/** neutral element: the maximum of the type, or infinity */
#define KDDS_MIN(T) KD_OPERATOR_AT(KD_OP_MIN, T, KD_NUM(T))
/** neutral element: the minimum of the type, or minus infinity */
#define KDDS_MAX(T) KD_OPERATOR_AT(KD_OP_MAX, T, KD_NUM(T))
/** bitwise, integer types; neutral element: all ones */
#define KDDS_AND(T) KD_OPERATOR_AT(KD_OP_AND, T, KD_INT(T))
#define KDDS_OR(T) KD_OPERATOR_AT(KD_OP_OR, T, KD_INT(T))   /**< bitwise; neutral element 0 */
#define KDDS_XOR(T) KD_OPERATOR_AT(KD_OP_XOR, T, KD_INT(T)) /**< bitwise; neutral element 0 */

/* Operator attributes of KDDS_OP. */
/** Contributions are kept apart and combined in reference order, so the result has the same bits on
 *  any number of workers. */
#define KDDS_ORDERED 0
/** The result has the same bits for any grouping (integers), or the program accepts differences.
 *  Faster. */
#define KDDS_EXACT 1

/**
 * Declares the reduction operator @p op over T. @p zero is an expression whose value is the neutral
 * element. The block that follows combines two values: *x = *x op *y. The operator must be
 * associative; it need not be commutative. @p attributes is KDDS_ORDERED or KDDS_EXACT.
 *
 * @code
 * KDDS_OP(widest, struct span, ((struct span){0}), KDDS_EXACT)
 * {
 *         if (y->length > x->length)
 *                 *x = *y;
 * }
 * @endcode
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

/** *x = *x op *y, for an operator @p op that KDDS_OP has declared. Context: anywhere. */
#define kdds_combine(op, x, y) kd_op_##op(x, y)
/** @} */

/** @name The abstract machine
 * The instructions of the abstract machine (Gautier, Roch, Wagner 2007, figure 1), for code
 * generators and language bindings. The caller allocates a closure, pushes its parameters in the
 * order that the type declares, and commits it. KDDS_TASK compiles to the same closures.
 * @{ */

/** One parameter of a type created at run time. */
struct kdds_param_spec {
	enum kdds_mode mode;      /**< KDDS_MODE_ANY: an immediate value of size bytes */
	size_t size;              /**< bytes of the value, or of one element of the data */
	const void *op;           /**< KDDS_CW only: KDDS_SUM(T) or another predefined operator, or
				       the address of a KDDS_OP, over a T of this size */
};

/** The body of a type created at run time, noexcept in C++; kdds_arg returns its parameters. */
typedef void kdds_body(struct kdds_closure *c) KD_NOEXCEPT;

/**
 * Creates a task type. Copies @p name and @p params. In a job of several ranks, other ranks can
 * steal closures of the type if all ranks create the same types in the same order before
 * kdds_init; closures of a type created later stay in their process.
 *
 * Context: any thread. @param type_p receives the new type; destroy it with kdds_type_destroy
 * when no closure of it is left.
 * @return 0, -EINVAL (more than KDDS_MAX_PARAMS parameters, an invalid mode or size, values of
 *         64 KiB or more together, an operator over elements of another size), -ENOMEM
 */
int kdds_type_create(const char *name, kdds_body *body, const struct kdds_param_spec *params, size_t nparams,
		     struct kdds_type **type_p);
/** Frees a type created by kdds_type_create. */
void kdds_type_destroy(struct kdds_type *type);

/** Reserves the next closure of the frame of the running task. The caller must commit it before it
 *  spawns or waits. Context: main, task. */
struct kdds_closure *kdds_closure_allocate(const struct kdds_type *type);
/** Pushes the next parameter, an immediate value; copies as many bytes as the type declares. */
void kdds_push_value(struct kdds_closure *c, const void *value);
/** Pushes the next parameter, a reference to shared data, with the mode that the type declares.
 *  @param ref a reference as for kdds_spawn (kdds_ref(d), or a name declared by KDDS_DATA) */
void kdds_push_access(struct kdds_closure *c, const void *ref);
/** Sets the spawn attributes of the closure, as kdds_spawn_with does; the default is none. */
void kdds_closure_attributes(struct kdds_closure *c, uint32_t attributes);
/** Completes the closure; from now on it may run. Ends the program if a parameter is missing. */
void kdds_commit(struct kdds_closure *c);
/** In a body: kdds_fail for a type created at run time. */
void kdds_closure_fail(struct kdds_closure *c, int code, const char *text);
/** In a body: the address of parameter @p i, which is a value or a reference (a T *const *). */
void *kdds_arg(struct kdds_closure *c, size_t i);
/** @} */

/** @name Observation
 * @{ */

/** Counters since kdds_init, summed over the workers of this process. */
struct kdds_stats {
	uint64_t tasks;      /**< closures run, without bodies that were called in place */
	uint64_t calls;      /**< bodies called in place; 0 unless KDDS_STATS=counts, see kdds(7) */
	uint64_t attempts;   /**< steal attempts */
	uint64_t steals;     /**< successful steal attempts */
	uint64_t stolen;     /**< closures obtained by them */
	uint64_t steal_ns;   /**< their duration, from requesting the victim's lock to leaving it */
	uint64_t parks;      /**< stacks set aside as their next closure was running elsewhere */
	uint64_t sleeps;     /**< times that a worker went to sleep because it had no work */
	uint64_t membarriers; /**< times that a thief interrupted a victim to read its stack */
	uint64_t work_ns;    /**< time in task bodies; 0 unless tasks are timed, see kdds(7) */
	uint64_t depth_ns;   /**< critical path of main so far; likewise */
};

/** Stores the counters in @p stats_p. Context: main, while no task runs (after kdds_sync). */
void kdds_stats_get(struct kdds_stats *stats_p);
/** Prints a table of the KDDS_ environment variables with their defaults and meanings.
 *  Context: anywhere. */
void kdds_help(FILE *out);
/** Returns a description of a negative return value. Context: anywhere; the string is static. */
const char *kdds_strerror(int error);
/** Returns the version of the library, "major.minor.patch". Context: anywhere; the string is
 *  static. */
const char *kdds_version(void);
/** @} */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
