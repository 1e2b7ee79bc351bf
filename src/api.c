/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions, with the checks of their arguments. */
#include <errno.h>
#include <stdint.h>

#include "base/env.h"
#include "base/log.h"
#include "core/fail.h"
#include "core/idle.h"
#include "core/parts.h"
#include "core/place.h"
#include "core/sched.h"
#include "core/topo.h"
#include "core/value.h"
#include "core/watch.h"
#include "core/worker.h"
#include "ending.h"
#include "kdds.h"
#include "observe/span.h"
#include "observe/stats.h"
#include "observe/tasks.h"
#include "observe/watched.h"
#include "rank.h"

#define LEFT_MOST ((size_t)1 << 30) /* bytes of data that wait for the tasks that use them */

static struct kd_worker *self(const char *what)
{
	if (kd_unlikely(!kd_self_worker))
		kd_die("%s: %s", what, kd_ending_forked() ?
		       "called by a child of fork, which has no workers: it can only call exec" :
		       kd_process.pool.workers ?
		       "called by a thread that is no worker of the library" :
		       "the library is not initialised: call kdds_init first, kdds_finalize last");
	return kd_self_worker;
}

static struct kdds_frame *running_frame(const char *what)
{
	struct kd_stack *s = self(what)->current;

	return kd_stack_next(s, s->top);
}

/* Called by a function that is going to push, outside a body: it may use any data that exist, and
 * by references of its own, of which the caller of a body that was called does not know
 * (kd_order). */
struct kdds_frame *kdds_frame_current(void)
{
	struct kdds_frame *f = running_frame("kdds_spawn or KDDS_DATA");

	f->keep = f->arena;
	f->used |= KD_RAISED;
	if (f->used & KD_CALLED) {
		kd_store_relaxed(&f->ordered, 1);
		kd_store_relaxed(&f->floor, KD_FLOOR_PUSH);
	}
	return f;
}

/* Sleepers may have left their wake hint while the frame was being emptied: the next push must see
 * it. */
static void set_limit(struct kd_worker *w, struct kdds_frame *f, size_t bytes)
{
	kd_store_relaxed(&f->limit, kd_frame_first(f) + bytes);
	if (kd_load_acquire(&w->current->flags) & KD_HINT)
		kd_store_relaxed(&f->limit, NULL);
}

/* The windows that the frame has been given so far. */
static size_t windows_of(const struct kdds_frame *f)
{
	size_t used = (size_t)(f->tail - (const char *)(f + 1));

	return used ? (used + kd_env.window - 1) / kd_env.window : 1;
}

/* Makes room for another closure, if necessary. Returns the windows that the frame has then. */
static size_t make_room(struct kd_worker *w, struct kdds_frame *f, size_t bytes)
{
	size_t windows = windows_of(f), used = (size_t)(f->tail - kd_frame_first(f));

	if (used + bytes <= windows * kd_env.window && !(kd_watch.full && kd_watch.full(w, f)))
		return windows;
	windows = kd_sched_drain(w, f, NULL, windows >= 4) ? 1 : windows + 1;
	kd_place_left(w->pool, f);
	return windows;
}

/* Ends the program if a data item is used as it may not be, and orders the uses of parts of arrays.
 * The closure will be at the tail. */
void kdds_examine(const struct kd_uses *u)
{
	struct kdds_frame *f = u->frame;
	struct kd_worker *w;
	uint32_t tracked = 0;

	for (uint32_t i = 0; i < u->type->naccess; i++) {
		const struct kdds_param *p = &u->type->access[i];
		const struct kdds_anchor *a = kd_uses_anchor(u, i);

		if (!a)
			continue;
		if (kd_doubt(a, p->mode, p->array) << 16)
			kdds_reference_error(u->type->name, p->name, a->use, p->mode);
		tracked |= kd_tracked(a);
	}
	if (!tracked)
		return;
	w = self("kdds_spawn");
	kd_parts_settle(w->current, u);
	set_limit(w, f, make_room(w, f, u->type->size) * kd_env.window);
	kd_parts_link(w->current, u);
}

/* Marked used for -flto: the compiler does not see that keep.c calls it, in assembly. */
__attribute__((used)) char *kdds_push_slow(const char *end)
{
	struct kd_worker *w = self("kdds_spawn");
	struct kdds_frame *f = running_frame("kdds_spawn");
	size_t bytes = (size_t)(end - f->tail);
	int hinted = !kd_load_relaxed(&f->limit);

	if (hinted)
		kd_fetch_and(&w->current->flags, ~(uint32_t)KD_HINT); /* one hint, one wake-up */
	set_limit(w, f, make_room(w, f, bytes) * kd_env.window);
	if (hinted) /* after the limit: the woken worker may set it to NULL again */
		kd_idle_wake_one(w->pool);
	if (kd_watch.push)
		kd_watch.push(w, f, bytes);
	return f->tail;
}

/* In a loop that does not wait, data whose scope has been left pile up: then tasks that use them run
 * first. */
void *kdds_frame_alloc(struct kdds_frame *f, size_t size, size_t align)
{
	struct kd_worker *w = self("KDDS_DATA");
	struct kd_stack *s = w->current;

	if (kd_unlikely(s->left_bytes > LEFT_MOST) && !w->filling && f->tail != kd_frame_first(f)) {
		kd_sched_drain(w, f, NULL, s->left_bytes > 4 * LEFT_MOST);
		kd_place_left(w->pool, f);
	}
	return kd_block_alloc(s, f, size, align);
}

/* Data that closures of the frame may use live until it is empty. Called bodies share the frame, and
 * there may be many that leave such data: from then on its spawns push. */
void kdds_data_leave(const void *data)
{
	struct kd_stack *s = kd_self_worker ? kd_self_worker->current : NULL;

	if (!s || ((const char *)data >= s->arena && (const char *)data < s->base.arena_end))
		return; /* after kdds_finalize; or in the arena */
	if (!kd_block_leave(s, data))
		kd_store_relaxed(&kd_stack_next(s, s->top)->floor, KD_FLOOR_PUSH);
}

/* The first spawn of a body with several arguments. If they overlap, links do not order what its
 * children do with them: thieves take the closures of its frame in reference order, and no child is
 * called. */
void kdds_frame_check(struct kdds_frame *f)
{
	if (kd_value_aliased(kd_load_relaxed(&f->parent->head)))
		kd_store_relaxed(&f->floor, KD_FLOOR_PUSH);
}

/* kdds_count_keep where a caller keeps no registers. */
int kdds_frame_count(struct kdds_frame *f)
{
	uintptr_t floor = (uintptr_t)kd_load_relaxed(&f->floor);
	struct kd_calls *c = (struct kd_calls *)(floor - KD_FLOOR_COUNTS);

	if (floor < KD_FLOOR_COUNTS || floor == (uintptr_t)KD_FLOOR_PUSH ||
	    (char *)__builtin_frame_address(0) <= c->floor)
		return 0;
	kd_store_relaxed(&c->calls, c->calls + 1);
	return 1;
}

void *kdds_frame_extend(struct kdds_frame *f, char *top, size_t size, size_t align)
{
	uintptr_t at, unit = kd_max(align, 16);
	char *end;

	if (KD_IS_LARGE(size, align))
		return kdds_frame_alloc(f, size, align);
	at = ((uintptr_t)kd_max(top, f->keep) + unit - 1) & -unit;
	end = (char *)at + KD_ROUND16(size + !size);
	if (end > f->arena_end) { /* lives until the frame ends, which many called bodies share */
		kd_store_relaxed(&f->floor, KD_FLOOR_PUSH);
		return kdds_frame_alloc(f, size, align);
	}
	f->arena = end;
	return (void *)at;
}

void kdds_shape_check(size_t rows, size_t cols, size_t ld)
{
	if (rows > 1)
		kd_die("a shape of %zu rows of %zu elements cannot have them %zu apart", rows, cols,
		       ld);
}

void kdds_part_error(const struct kdds_anchor *whole, size_t row, size_t col, size_t rows,
		     size_t cols)
{
	const struct kdds_shape *s = kd_shape_of(whole);

	if (s && s->pack)
		kd_die("a part of data with pack functions cannot be transferred");
	if (!rows && s && s->rows > 1 && s->ld != s->cols)
		kd_die("a slice of a tile whose rows are %zu elements and %zu apart: use "
		       "KDDS_SUBTILE", s->cols, s->ld);
	kd_die("KDDS_SLICE, KDDS_SUBTILE: a part of %zu x %zu elements from element (%td, %td) on "
	       "does not lie in data of %zu x %zu",
	       kd_max(rows, 1), cols, (ptrdiff_t)row, (ptrdiff_t)col,
	       s ? s->rows : 1, s ? s->cols : 1);
}

static struct kdds_frame *waiting_frame(struct kdds_frame *f, const char *what)
{
	struct kdds_frame *running = running_frame(what);

	if (f && f != running)
		kd_die("%s: called for a task that is not the one being run", what);
	return running;
}

static int is_main(const struct kdds_frame *f)
{
	const struct kd_stack *s = kd_self_worker->current;

	return f->parent == &s->base && !s->range.count;
}

static int failure_code(void)
{
	struct kdds_failure failure;

	kd_fail_get(&failure);
	return failure.code;
}

/* Main, whose frame f is, is told that tasks have failed, and all are complete. */
static void forgive(struct kdds_frame *f)
{
	if (f->tail != kd_frame_first(f))
		kd_sched_empty(kd_self_worker->current, f);
	kd_store_relaxed(&f->failed, 0);
	kd_fail_forget(kd_self_worker->pool);
}

int kdds_sync_frame(struct kdds_frame *f, uint32_t start)
{
	int code = 0;

	f = waiting_frame(f, "kdds_sync");
	if (f->tail != kd_frame_first(f))
		kd_sched_drain(kd_self_worker, f, NULL, 1);
	if (kd_unlikely(kd_load_relaxed(&f->failed))) {
		code = kd_fail_since(f, start) ? failure_code() : 0;
		if (is_main(f))
			forgive(f);
	}
	kd_place_bring(kd_self_worker, NULL);
	set_limit(kd_self_worker, f, kd_env.window);
	return code;
}

/* Whether the last writer of the data has failed; where links do not name it, whether any closure
 * has. */
static int has_failed(struct kdds_frame *f, const struct kdds_anchor *a)
{
	return kd_load_relaxed(&f->failed) &&
	       (a->shaped & (KD_TRACKED | KD_WHOLE) || kd_value_unlinked(f) ||
		kd_fail_wrote(f, (uint32_t)a->links, a->data));
}

/* For the closures of f up to c; NULL: for all. What they have left at other ranks remains
 * there. */
static void wait_up_to(struct kdds_frame *f, char *c)
{
	kd_sched_drain(kd_self_worker, f, c, 1);
	kd_place_left(kd_self_worker->pool, f);
	set_limit(kd_self_worker, f, windows_of(f) * kd_env.window);
}

static void wait_for_data(struct kdds_frame *f, struct kdds_anchor *a)
{
	uint32_t link;
	size_t offset;
	char *first, *c;

	/* relaxed: who finds a closure that is pushed later finds this, too */
	kd_store_relaxed(&f->waited, 1);
	link = a->shaped & (KD_TRACKED | KD_WHOLE) ?
		       kd_parts_last(kd_self_worker->current, f, a) : (uint32_t)(a->links >> 32);
	first = kd_frame_first(f);
	offset = (size_t)(uint32_t)(link - kd_link_of(f, first)) << 3;
	c = first + offset;
	if (kd_value_unlinked(f))
		c = NULL;
	else if (!(link & 1) || offset >= (size_t)(f->tail - first) || c < f->head)
		return; /* nothing of this frame uses it, or what does is complete */
	wait_up_to(f, c);
}

static struct kd_value value_of(const struct kdds_anchor *a, size_t size)
{
	const struct kdds_shape *s = kd_shape_of(a);

	return (struct kd_value){a->data, s ? s->rows : 1, s ? s->cols : 1, s ? s->ld : 1, size,
				 s ? s->pack : NULL};
}

/* Waits up to the last closure that uses the data; for all where closures may use the data through
 * other references. */
int kdds_wait_frame(struct kdds_frame *f, struct kdds_anchor *a, size_t size)
{
	const struct kd_value v = value_of(a, size);

	f = waiting_frame(f, "kdds_wait");
	wait_for_data(f, a);
	kd_place_bring(kd_self_worker, &v);
	return has_failed(f, a) ? failure_code() : 0;
}

/* The running frame, which is main's, when no task uses the data any more, by whichever
 * reference. */
static struct kdds_frame *unused(struct kdds_frame *f, const struct kd_value *v, const char *what)
{
	f = waiting_frame(f, what);
	if (!is_main(f))
		kd_die("%s: called by a task: only main can say how long data stay as they are",
		       what);
	kd_store_relaxed(&f->waited, 1);
	if (f->tail != kd_frame_first(f))
		wait_up_to(f, NULL);
	kd_place_bring(kd_self_worker, v);
	return f;
}

int kdds_freeze_data(struct kdds_frame *f, struct kdds_anchor *a, size_t size)
{
	const struct kd_value v = value_of(a, size);

	f = unused(f, &v, "kdds_freeze");
	kd_frozen_add(&kd_self_worker->pool->frozen, &v);
	if (kd_unlikely(kd_watch.froze != NULL))
		kd_watch.froze(&v, 1);
	return has_failed(f, a) ? failure_code() : 0;
}

int kdds_thaw_data(struct kdds_frame *f, struct kdds_anchor *a, size_t size)
{
	const struct kd_value v = value_of(a, size);

	f = unused(f, &v, "kdds_thaw");
	if (!kd_frozen_remove(&kd_self_worker->pool->frozen, &v))
		kd_die("kdds_thaw: the data have not been frozen, or with another shape: give it a "
		       "reference like the one that kdds_freeze was given");
	if (kd_unlikely(kd_watch.froze != NULL))
		kd_watch.froze(&v, 0);
	return has_failed(f, a) ? failure_code() : 0;
}

void kdds_fail_task(const struct kdds_type *type, int code, const char *text)
{
	struct kd_worker *w = self("kdds_fail");
	struct kdds_failure failure = {.code = code, .rank = kdds_rank()};

	if (!code)
		kd_die("task %s fails with code 0, which means that it has not", type->name);
	snprintf(failure.task, sizeof(failure.task), "%s", type->name);
	snprintf(failure.text, sizeof(failure.text), "%s", text ? text : "");
	kd_fail_report(w->pool, &failure);
}

void kdds_fail_running(void)
{
	struct kd_stack *s = self("kdds_fail")->current;

	kd_fail_mark(s, s->top, kd_closure_at(kd_load_relaxed(&s->top->head)));
}

int kdds_failure(struct kdds_failure *failure_p)
{
	kd_fail_get(failure_p);
	kd_fail_told();
	return failure_p->code;
}

static struct kd_remote *flag_users(const struct kdds_flag *f, const char *what)
{
	const struct kd_pool *p = &kd_rank_self()->pool;

	if (!p->workers)
		kd_die("%s: the library is not initialised: call kdds_init first, kdds_finalize "
		       "last", what);
	if (f->magic != KD_FLAG_MAGIC)
		kd_die("%s needs a flag that KDDS_FLAG has declared, at file scope", what);
	return p->remote;
}

void kdds_raise(struct kdds_flag *f)
{
	struct kd_remote *r = flag_users(f, "kdds_raise");

	if (kdds_raised(f))
		return;
	if (r)
		r->ops->raise(r, f);
	else
		kd_store_relaxed(&f->raised, 1);
}

void kdds_lower(struct kdds_flag *f)
{
	struct kd_remote *r = flag_users(f, "kdds_lower");

	if (!is_main(running_frame("kdds_lower")))
		kd_die("kdds_lower: called by a task: only main lowers a flag, since tasks of other "
		       "ranks may still use it");
	if (r)
		r->ops->lower(r, f);
	else
		kd_store_relaxed(&f->raised, 0);
}

void kdds_no_reference(const char *task, const char *param)
{
	kd_die("%s%s needs a reference%s%s: it was given the address of a plain pointer, or of a "
	       "kdds_data that was not bound or has been moved since (KDDS_OVER makes references "
	       "to memory)", param ? "task " : "", task, param ? " for its parameter " : "",
	       param ? param : "");
}

void kdds_reference_error(const char *task, const char *param, int use, uint32_t mode)
{
	static const char *const names[] = {"any", "READ", "WRITE", "UPDATE", "REDUCE"};
	int code = (use & ~KD_USE_HOW) - KD_USE(0), known = code >= 0 && code <= KDDS_RW;

	if (!kd_may((int16_t)use, mode))
		kd_die("task %s was given for its %s parameter %s a data item that the spawning "
		       "task itself may only %s", task, names[mode], param,
		       names[known ? code : code == KD_USE_R ? KDDS_R : KDDS_CW]);
	kd_die("task %s was given an array for its %s parameter %s: declare it %s_ARRAY, or make a "
	       "reference to one element with KDDS_OVER", task, names[mode], param, names[mode]);
}

void kdds_exception(const char *what, const char *name, const char *text)
{
	kd_die("%s %s: a C++ exception leaves its body: %s", what, name, text);
}

void kdds_on_error(kdds_error_handler *handler, void *arg)
{
	kd_on_death(handler, arg);
}

int kdds_rank(void)
{
	return (int)kd_rank_self()->net.rank;
}

int kdds_size(void)
{
	return (int)kd_rank_self()->net.size;
}

int kdds_live(void)
{
	const struct kd_net *net = &kd_rank_self()->net;
	int live = 0;

	for (uint32_t r = 0; r < net->size; r++)
		live += !kd_net_lost(net, r);
	return live;
}

int kdds_workers(void)
{
	const struct kd_pool *p = &kd_rank_self()->pool;

	return p->workers ? p->count : 0;
}

int kdds_worker(void)
{
	return kd_self_worker ? kd_self_worker->id : -1;
}

int kdds_places(void)
{
	return kd_rank_self()->pool.workers ? kd_topo_places() : 0;
}

void kdds_stats_get(struct kdds_stats *stats_p)
{
	struct kd_worker *w = self("kdds_stats_get");
	struct kd_rank *r = kd_rank_self();

	*stats_p = (struct kdds_stats){0};
	if (kd_observe.tasks && !r->net.rank && w == r->pool.workers &&
	    w->current->top == &w->current->base)
		kd_tasks_main();
	if (kd_observe.tasks)
		kd_clock_settle();
	for (int i = 0; i < r->pool.count; i++) {
		struct kd_worker_counts c;

		kd_stats_worker(&r->pool.workers[i], &c);
		stats_p->tasks += c.tasks;
		stats_p->calls += c.calls;
		stats_p->attempts += c.attempts;
		stats_p->steals += c.steals;
		stats_p->stolen += c.stolen;
		stats_p->steal_ns += c.steal_ns;
		stats_p->parks += c.parks;
		stats_p->sleeps += c.sleeps;
		stats_p->membarriers += c.membarriers;
		stats_p->work_ns += c.work_ns;
	}
	if (kd_observe.tasks && !r->net.rank)
		stats_p->depth_ns = kd_clock_ns(kd_span_main());
}

void kdds_help(FILE *out)
{
	kd_env_help(out);
}

const char *kdds_strerror(int error)
{
	switch (error) {
	case 0:
		return "success";
	case -EALREADY:
		return "the library is already initialised";
	case -EPERM:
		return "the library is not initialised, or not by this thread, or a task is "
		       "running";
	default:
		return error < 0 && error >= -4095 ? kd_errno_text(-error) : "unknown error";
	}
}

#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x

const char *kdds_version(void)
{
	return TEXT(KDDS_VERSION_MAJOR) "." TEXT(KDDS_VERSION_MINOR) "." TEXT(KDDS_VERSION_PATCH);
}
