/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "observe/checker_push.h"

#include <link.h>
#include <string.h>

#include "core/closure.h"
#include "core/parts.h"
#include "observe/checker_frozen.h"
#include "observe/checker_line.h"
#include "observe/checker_value.h"

#define REGIONS 64
#define COPY_BYTES 65536
#define STACK_BYTES 16384
#define ITEM_BYTES 4096
#define HASH_MOST 65536

static struct {
	struct {
		const char *at;
		size_t n, offset;
	} region[REGIONS];
	unsigned n;
	size_t used;
	char copy[COPY_BYTES];
	char *closure; /* that is being filled; NULL: none */
} push;

static struct {
	const char *at;
	size_t n;
} globals;

static int find_globals(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
			globals.at = (const char *)(info->dlpi_addr + p->p_vaddr);
			globals.n = p->p_memsz;
		}
	}
	return 1; /* the program is the first */
}

void kd_checker_push_start(void)
{
	push.closure = NULL;
	dl_iterate_phdr(find_globals, NULL);
}

typedef uint64_t word __attribute__((may_alias, aligned(1)));

/* The C stack and global objects have what AddressSanitizer puts between objects: memcpy would
 * report it. */
__attribute__((no_sanitize("address"), noinline)) static void copy(char *to, const char *from,
								  size_t n)
{
	size_t i = 0;

	for (; n - i >= sizeof(word); i += sizeof(word))
		*(volatile word *)(to + i) = *(const word *)(from + i);
	for (; i < n; i++)
		*(volatile char *)(to + i) = from[i];
}

static void remember(const char *at, size_t n)
{
	if (push.n == REGIONS || n > COPY_BYTES - push.used)
		return;
	push.region[push.n].at = at;
	push.region[push.n].n = n;
	push.region[push.n++].offset = push.used;
	copy(push.copy + push.used, at, n);
	push.used += n;
}

/* Whether the data are as remembered, or were not remembered. */
static int unchanged(const struct kd_value *v)
{
	uint64_t row = v->cols * v->size;

	for (unsigned i = 0; i < push.n; i++) {
		const char *at = push.region[i].at;

		if (!kd_value_within(v, at, at + push.region[i].n))
			continue;
		for (uint64_t r = 0; r < v->rows; r++) {
			const char *p = (char *)v->data + r * v->ld * v->size;

			if (memcmp(p, push.copy + push.region[i].offset + (p - at), row))
				return 0;
		}
		return 1;
	}
	return 1;
}

/* Of access i of c. */
static struct kd_checked_place place_of(const struct kd_checked_task *t,
					const struct kdds_closure *c, uint32_t i)
{
	uint32_t child = t->children + 1;

	if ((char *)c < kd_checked_new(t))
		child = kd_checker_note(t->stack, c)->child;
	for (char *at = kd_checked_new(t); at < (char *)c; at += kd_closure_at(at)->bytes)
		child += !kd_parts_join(kd_closure_at(at));
	return (struct kd_checked_place){t->name, child, kd_checker_note(t->stack, c)->line, c->type,
					 i + 1};
}

static void report_change(const struct kd_checked_task *t, const struct kdds_closure *c, uint32_t i)
{
	struct kd_checked_place at = place_of(t, c, i);

	kd_checked_report(&at, "changed by %s after kdds_spawn", t->name);
}

/* Whether at lies on w's C stack, if that is known. */
static int on_stack(const struct kd_worker *w, const char *at)
{
	return w->c_stack && (size_t)(at - w->c_stack) < w->c_size;
}

/* Whether p points to what has ended: to the C stack below `low', or (low NULL) above the KDDS_DATA
 * that exist. */
static const char *ended(const struct kd_worker *w, const struct kd_checked_task *t, const char *p,
			 const char *low)
{
	if (low && on_stack(w, low) && on_stack(w, p) && p < low)
		return "a local variable of a function that has returned";
	if (!low && p >= t->frame->arena && p < t->frame->arena_end)
		return "KDDS_DATA of a body that has ended";
	return NULL;
}

static void check_data(const struct kd_worker *w, const struct kd_checked_task *t,
		       struct kdds_closure *c, const char *low)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		const char *what = ended(w, t, v.data, low);

		if (what && !kd_value_empty(&v)) {
			struct kd_checked_place at = place_of(t, c, i);

			kd_checked_report(&at, "refers to %s", what);
		}
	}
}

/* Bytes of access i of c. */
static size_t access_bytes(const struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];

	if (p->array)
		return sizeof(struct kdds_access_array);
	return p->mode == KDDS_CW ? sizeof(struct kdds_access_reduce) : sizeof(struct kdds_access);
}

/* The same for the pointers among its values. */
static void check_values(const struct kd_worker *w, const struct kd_checked_task *t,
			 const struct kdds_closure *c, const char *low)
{
	for (size_t at = sizeof(*c); at < c->bytes; at += sizeof(char *)) {
		const char *p, *what;
		uint32_t i = 0;

		while (i < c->type->naccess &&
		       at - c->type->access[i].offset >= access_bytes(c, i))
			i++;
		memcpy(&p, (char *)(uintptr_t)c + at, sizeof(p));
		what = i == c->type->naccess ? ended(w, t, p, low) : NULL;
		if (what) {
			struct kd_checked_place place = place_of(t, c, 0);

			place.number = 0;
			kd_checked_report(&place, "a VALUE points to %s", what);
		}
	}
}

static void check_alive(const struct kd_worker *w, const struct kd_checked_task *t,
			struct kdds_closure *c, const char *low)
{
	check_data(w, t, c, low);
	if (c->type->pointers)
		check_values(w, t, c, low);
}

/* What is not READ, except that parts of a loop are as the loop, and parts of data (parts.h) change
 * nothing. */
static void check_frozen(const struct kd_checked_task *t, const struct kdds_closure *c, uint32_t i,
			 const struct kd_value *v)
{
	struct kd_checked_place at;

	if (c->type->access[i].mode == KDDS_R || kd_parts_join(c) || !kd_checker_frozen_meets(v) ||
	    (t->closure && t->closure->type == c->type && c->type->loop))
		return;
	at = place_of(t, c, i);
	kd_checked_report(&at, "the task may write to data that kdds_freeze has frozen");
}

/* The closure that was being filled has been committed. */
static void finish(struct kd_worker *w, struct kd_checked_task *t)
{
	struct kdds_closure *c = kd_closure_at(push.closure);

	if (!push.closure || push.closure >= t->frame->tail)
		return;
	push.closure = NULL;
	check_alive(w, t, c, NULL); /* before the body makes more KDDS_DATA */
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);

		if (kd_value_empty(&v))
			continue;
		/* Closures of a type made at run time are filled by calls, between which the
		 * program may do anything. */
		if (c->type != w->filling_type && !unchanged(&v))
			report_change(t, c, i);
		check_frozen(t, c, i, &v);
		kd_checker_hash(t->stack, kd_closure_access(c, i))->hash =
			kd_value_hash(&v, HASH_MOST);
	}
}

void kd_checker_push(struct kd_worker *w, struct kd_checked_task *t, size_t bytes)
{
	const char *here = __builtin_frame_address(0);

	finish(w, t);
	push.n = 0;
	push.used = 0;
	push.closure = t->frame->tail;
	memset(push.closure, 0, bytes);
	*kd_checker_note(t->stack, push.closure) = (struct kd_checker_note){
		.line = kd_checker_line_here()};
	if (on_stack(w, here))
		remember(here, kd_min((size_t)(w->c_stack + w->c_size - here),
				      (size_t)STACK_BYTES));
	if (globals.n <= STACK_BYTES)
		remember(globals.at, globals.n);
	if (t->data < t->frame->arena)
		remember(t->data, kd_min((size_t)(t->frame->arena - t->data), (size_t)STACK_BYTES));
	for (const struct kd_block *b = t->stack->blocks; b && kd_checked_owns(t, b); b = b->next)
		if (b->bytes <= ITEM_BYTES)
			remember((const char *)(b + 1), b->bytes);
	for (uint32_t i = 0; i < t->nitems; i++)
		if (kd_value_extent(&t->items[i].v) <= ITEM_BYTES)
			remember(t->items[i].v.data, kd_value_extent(&t->items[i].v));
}

/* The first closure of t's frame that may not have run. */
static char *first_left(const struct kd_checked_task *t)
{
	char *head = kd_load_relaxed(&t->frame->head);

	return t->seen && head ? head : kd_checked_new(t);
}

void kd_checker_push_end(struct kd_worker *w, struct kd_checked_task *t, const char *low)
{
	finish(w, t);
	push.closure = NULL;
	for (char *at = first_left(t); at < t->frame->tail; at += kd_closure_at(at)->bytes) {
		struct kdds_closure *c = kd_closure_at(at);

		if (kd_checker_note(t->stack, c)->done)
			continue;
		if (at >= kd_checked_new(t))
			check_alive(w, t, c, low);
		for (uint32_t i = 0; i < c->type->naccess; i++) {
			struct kd_value v = kd_value_of(c, i);

			if (!kd_value_empty(&v) &&
			    kd_value_hash(&v, HASH_MOST) !=
				    kd_checker_hash(t->stack, kd_closure_access(c, i))->hash)
				report_change(t, c, i);
		}
	}
}

void kd_checker_push_again(struct kd_checked_task *t)
{
	for (char *at = first_left(t); at < t->frame->tail; at += kd_closure_at(at)->bytes) {
		struct kdds_closure *c = kd_closure_at(at);

		if (kd_checker_note(t->stack, c)->done)
			continue;
		for (uint32_t i = 0; i < c->type->naccess; i++) {
			struct kd_value v = kd_value_of(c, i);

			if (!kd_value_empty(&v))
				kd_checker_hash(t->stack, kd_closure_access(c, i))->hash =
					kd_value_hash(&v, HASH_MOST);
		}
	}
}

