/* SPDX-License-Identifier: BSD-3-Clause */
/* Task types that are made at run time, and closures filled parameter by parameter. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/type.h"

#include "base/log.h"
#include "core/closure.h"
#include "core/list.h"
#include "core/module.h"
#include "core/watch.h"
#include "core/worker.h"
#include "kdds.h"

/* A type made at run time, followed by its access table and its name. */
struct dynamic {
	struct kdds_type type;
	kdds_body *body;
	size_t nparams;
	uint32_t state; /* initial state of closures */
	uint64_t wire_name; /* see kd_type_name */
	struct {
		struct kdds_param_spec spec;
		uint32_t offset, access; /* in the closure; index in the access table */
	} params[KDDS_MAX_PARAMS];
	struct kdds_param table[KDDS_MAX_PARAMS];
	char name[];
};

/* The types made before kdds_init, by number; NULL: destroyed. */
static struct dynamic **named;
static uint32_t nnamed;
static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;
static int fixed; /* the processes of the job may no longer all make the same types */

#define NUMBERED 0x80000000u

/* A running body, for kdds_arg. */
struct kd_call {
	struct kdds_closure *closure;
	int failed;
	struct kdds_anchor_array anchors[KDDS_MAX_PARAMS];
};

static struct dynamic *dynamic_of(const struct kdds_type *type)
{
	return (struct dynamic *)(uintptr_t)type;
}

void kd_type_expect_complete(void)
{
	if (kd_unlikely(kd_self_worker->filling != NULL))
		kd_die("task %s: its closure was allocated, but not committed before the next one "
		       "or the end", kd_self_worker->filling_type->name);
}

static void run_dynamic(struct kdds_closure *c, struct kdds_frame *f)
{
	struct dynamic *d = dynamic_of(c->type);
	struct kd_worker *w = kd_self_worker;
	struct kd_call call = {.closure = c}, *outer = w->call;

	(void)f;
	for (size_t i = 0; i < d->nparams; i++)
		if (d->params[i].spec.mode) {
			struct kdds_access_array *a = (void *)((char *)c + d->params[i].offset);

			call.anchors[i] = (struct kdds_anchor_array){
				.a = {.data = a->a.data,
				      .self = &call.anchors[i].a,
				      .single = kd_single(&a->shape, d->params[i].spec.mode),
				      .use = KD_USE(d->params[i].spec.mode),
				      .shaped = 1},
				.shape = a->shape};
		}
	w->call = &call;
	d->body(c);
	kd_type_expect_complete();
	w->call = outer;
	if (kd_unlikely(call.failed))
		kdds_fail_running();
}

static int valid(const struct kdds_param_spec *p)
{
	size_t most = p->mode ? UINT32_MAX : KD_CLOSURE_MAX;
	const struct kdds_op *op = p->op;

	return (unsigned)p->mode <= KDDS_CW && p->size && p->size <= most &&
	       (p->mode == KDDS_CW) == !!op && (!op || op->size == p->size);
}

static uint32_t fingerprint(const struct dynamic *d)
{
	uint32_t h = 2166136261u;

	for (const char *c = d->name; *c; c++)
		h = (h ^ (unsigned char)*c) * 16777619u;
	for (size_t i = 0; i < d->nparams; i++) {
		h = (h ^ (uint32_t)d->params[i].spec.mode) * 16777619u;
		h = (h ^ (uint32_t)d->params[i].spec.size) * 16777619u;
	}
	return h;
}

void kd_type_fix_names(int now)
{
	pthread_mutex_lock(&named_lock);
	fixed = now;
	pthread_mutex_unlock(&named_lock);
}

/* Gives the type a name, unless kdds_init has been called: then the other processes may not give it
 * the same name. */
static int enter(struct dynamic *d)
{
	struct dynamic **grown;

	pthread_mutex_lock(&named_lock);
	if (fixed) {
		pthread_mutex_unlock(&named_lock);
		return 0;
	}
	grown = realloc(named, (nnamed + 1) * sizeof(*named));
	if (grown) {
		named = grown;
		d->wire_name = (uint64_t)fingerprint(d) << 32 | NUMBERED | nnamed;
		d->type.magic = KD_TYPE_MAGIC;
		named[nnamed++] = d;
	}
	pthread_mutex_unlock(&named_lock);
	return grown ? 0 : -ENOMEM;
}

uint64_t kd_type_name(const struct kdds_type *type)
{
	if (type->magic != KD_TYPE_MAGIC)
		return 0;
	if (type->lists)
		type = kd_list_base(type);
	return type->run == run_dynamic ? dynamic_of(type)->wire_name : kd_module_name(type);
}

/* Whether a type lies at the address that a name leads to. Anything in a module may lie there, even
 * what AddressSanitizer puts between objects. */
__attribute__((no_sanitize("address"), noinline)) static int is_type(const struct kdds_type *type)
{
	return (uintptr_t)type % _Alignof(struct kdds_type) == 0 && type->magic == KD_TYPE_MAGIC;
}

const struct kdds_type *kd_type_at(uint64_t name)
{
	uint32_t number = (uint32_t)name & ~NUMBERED;
	const struct kdds_type *type;

	if (name & NUMBERED)
		return number < nnamed && named[number] && named[number]->wire_name == name ?
			       &named[number]->type : NULL;
	type = kd_module_at(name, sizeof(*type), 0);
	return type && is_type(type) ? type : NULL;
}

int kdds_type_create(const char *name, kdds_body *body, const struct kdds_param_spec *params,
		     size_t nparams, struct kdds_type **type_p)
{
	struct dynamic *d;
	size_t size = sizeof(struct kdds_closure), naccess = 0;

	if (nparams > KDDS_MAX_PARAMS)
		return -EINVAL;
	for (size_t i = 0; i < nparams; i++)
		if (!valid(&params[i]))
			return -EINVAL;
	d = calloc(1, sizeof(*d) + strlen(name) + 1);
	if (!d)
		return -ENOMEM;
	strcpy(d->name, name);
	for (size_t i = 0; i < nparams; i++) {
		d->params[i].spec = params[i];
		d->params[i].offset = (uint32_t)size;
		d->params[i].access = (uint32_t)naccess;
		if (params[i].mode) {
			const struct kdds_op *op = params[i].op;

			d->table[naccess++] = (struct kdds_param){
				.offset = (uint32_t)size, .mode = params[i].mode, .array = 1,
				.size = (uint32_t)params[i].size, .op = params[i].op};
			size += (sizeof(struct kdds_access_array) + 15) / 16 * 16;
			d->type.reduces |= params[i].mode == KDDS_CW;
			d->state |= params[i].mode == KDDS_CW && !op->exact ? KD_SPECIAL : 0;
		} else {
			size += KD_ROUND16(params[i].size);
		}
	}
	if (size > KD_CLOSURE_MAX) {
		free(d);
		return -EINVAL;
	}
	d->body = body;
	d->nparams = nparams;
	d->type.run = run_dynamic;
	d->type.size = kd_max((uint32_t)size, 32);
	d->type.naccess = (uint16_t)naccess;
	d->type.access = d->table;
	d->type.name = d->name;
	if (enter(d)) {
		free(d);
		return -ENOMEM;
	}
	*type_p = &d->type;
	return 0;
}

void kdds_type_destroy(struct kdds_type *type)
{
	if (!type)
		return;
	pthread_mutex_lock(&named_lock);
	if (kd_type_name(type))
		named[(uint32_t)kd_type_name(type) & ~NUMBERED] = NULL;
	while (nnamed && !named[nnamed - 1])
		nnamed--;
	if (!nnamed) {
		free(named);
		named = NULL;
	}
	pthread_mutex_unlock(&named_lock);
	if (!kd_watch.keeps || !kd_watch.keeps(type))
		free(type);
}

struct kdds_closure *kdds_closure_allocate(const struct kdds_type *type)
{
	struct kdds_frame *f = kdds_frame_current();
	struct kd_worker *w = kd_self_worker;
	const struct dynamic *d = dynamic_of(type);

	kd_type_expect_complete();
	if (type->run != run_dynamic)
		kd_die("kdds_closure_allocate: task %s is not of a type made by kdds_type_create",
		       type->name);
	w->filling = kd_closure_at(kd_push(f, type->size, 0));
	w->filling_type = type;
	w->filled = 0;
	kd_init_closure(w->filling, type, type->size, 0, d->state);
	return w->filling;
}

/* The type of c, which must be the closure being filled, at the end of the running frame. */
static const struct dynamic *type_filled(struct kdds_closure *c)
{
	const struct kd_worker *w = kd_self_worker;

	if (!w || !w->filling || c != w->filling)
		kd_die("task %s: the closure is not the one being filled: was it committed "
		       "already?", c->type->name);
	if (kdds_frame_current()->tail != (char *)c || c->type != w->filling_type)
		kd_die("task %s: something was spawned or waited for before its closure was "
		       "committed", w->filling_type->name);
	return dynamic_of(w->filling_type);
}

static size_t next_param(const struct dynamic *d, int access)
{
	size_t i = kd_self_worker->filled++;

	if (i >= d->nparams || !!d->params[i].spec.mode != access)
		kd_die("task %s: parameter %zu is not %s", d->name, i,
		       access ? "a shared data item" : "an immediate value");
	return i;
}

void kdds_push_value(struct kdds_closure *c, const void *value)
{
	const struct dynamic *d = type_filled(c);
	size_t i = next_param(d, 0);

	memcpy((char *)c + d->params[i].offset, value, d->params[i].spec.size);
}

void kdds_push_access(struct kdds_closure *c, const void *ref)
{
	const struct dynamic *d = type_filled(c);
	size_t i = next_param(d, 1);

	if (!kd_is_reference(ref))
		kdds_no_reference(d->name, "pushed");
	if (!kd_may(kd_anchor_of(ref)->use, d->params[i].spec.mode))
		kdds_reference_error(d->name, "pushed", kd_anchor_of(ref)->use,
				     d->params[i].spec.mode);
	if (kd_tracked(kd_anchor_of(ref)))
		kd_die("task %s was pushed a part of an array, or an array of which tasks use "
		       "parts: only kdds_spawn orders these (kdds_bind_array makes references to "
		       "parts that the program orders)", d->name);
	kd_link_array((struct kdds_access_array *)(void *)((char *)c + d->params[i].offset),
		      kd_anchor_of(ref), kd_link_of(kdds_frame_current(), (char *)c),
		      d->params[i].spec.mode);
}

void kdds_closure_attributes(struct kdds_closure *c, uint32_t attributes)
{
	const struct dynamic *d = type_filled(c);

	kd_init_closure(c, &d->type, d->type.size, attributes, d->state);
}

void kdds_commit(struct kdds_closure *c)
{
	const struct dynamic *d = type_filled(c);
	struct kd_worker *w = kd_self_worker;
	uint32_t attributes = c->attr | kd_load_relaxed(&c->state) << 16;

	if (w->filled != d->nparams)
		kd_die("task %s: committed with %zu of its %zu parameters", d->name, w->filled,
		       d->nparams);
	w->filling = NULL;
	kd_commit(kdds_frame_current(), (char *)c, d->type.size);
	kd_place(attributes);
}

static struct kd_call *call_of(const struct kdds_closure *c)
{
	struct kd_call *call = kd_self_worker ? kd_self_worker->call : NULL;

	return call && call->closure == c ? call : NULL;
}

void kdds_closure_fail(struct kdds_closure *c, int code, const char *text)
{
	struct kd_call *call = call_of(c);

	if (!call)
		kd_die("kdds_closure_fail: task %s is not the one being run", c->type->name);
	call->failed = 1;
	kdds_fail_task(c->type, code, text);
}

void *kdds_arg(struct kdds_closure *c, size_t i)
{
	struct dynamic *d = dynamic_of(c->type);
	struct kd_call *call = call_of(c);

	if (!call || i >= d->nparams)
		kd_die("kdds_arg: task %s has no parameter %zu, or is not the one being run",
		       d->name, i);
	return d->params[i].spec.mode ? (void *)&call->anchors[i] :
					(void *)((char *)c + d->params[i].offset);
}
