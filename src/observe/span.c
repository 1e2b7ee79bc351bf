/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/span.h"

#include "core/closure.h"
#include "core/value.h"
#include "observe/watched.h"
#include "remote/import.h"

void kd_span_deliver(const struct kd_range *range, const char *c, uint64_t length)
{
	if (range->import)
		*kd_import_length(range->import, c) = length;
	else
		((struct kd_span_closure *)kd_span_at(range->from, c))->length = length;
}

/* Whether two accesses are to the same data item: one without elements may begin at the
 * address of another. */
static inline int same_data(struct kdds_closure *q, uint32_t k, struct kdds_closure *c, uint32_t i)
{
	return kd_closure_access(q, k)->data == kd_closure_access(c, i)->data &&
	       kd_value_none(q, k) == kd_value_none(c, i);
}

/* The access of q to the data item of access i of c, usually the one with the same number.
 * NULL: none. */
static struct kdds_access *access_to(struct kdds_closure *q, struct kdds_closure *c, uint32_t i,
				     uint32_t guess)
{
	if (guess < q->type->naccess && same_data(q, guess, c, i))
		return kd_closure_access(q, guess);
	for (uint32_t k = 0; k < q->type->naccess; k++)
		if (same_data(q, k, c, i))
			return kd_closure_access(q, k);
	return NULL;
}

/* What access a, number i of c, follows. As in ready.c a link names a closure of this epoch of
 * the frame, or nothing. If it names c itself, an earlier access of c is to the same data
 * item, and *twice_p is set. */
static inline struct kd_span_access before(struct kd_stack *s, struct kdds_closure *c,
					   const struct kdds_access *a, uint32_t i, char *first,
					   uint32_t names_first, int *twice_p)
{
	struct kd_span_access none = {0, 0};
	size_t offset = (size_t)(uint32_t)(a->p - names_first) << 3;
	struct kdds_closure *q = kd_closure_at(first + offset);

	if (!(a->p & 1) || offset > (size_t)((char *)c - first))
		return none;
	if (kd_unlikely(q == c)) {
		*twice_p = 1;
		for (uint32_t k = 0; k < i; k++) /* these have been computed */
			if (same_data(c, k, c, i))
				return *(struct kd_span_access *)kd_span_at(
					s, kd_closure_access(c, k));
		return none;
	}
	a = access_to(q, c, i, i);
	return a ? *(struct kd_span_access *)kd_span_at(s, a) : none;
}

/* Two accesses of c are to the same data item: merges their records, since later closures find
 * the first. */
static void join(struct kd_stack *s, struct kdds_closure *c)
{
	for (uint32_t i = 1; i < c->type->naccess; i++) {
		struct kdds_access *a = kd_closure_access(c, i), *b = access_to(c, c, i, 0);
		struct kd_span_access *from = kd_span_at(s, a), *to = kd_span_at(s, b);

		to->writer = kd_max(to->writer, from->writer);
		to->users = kd_max(to->users, from->users);
		*from = *to; /* access_to() may guess either */
	}
}

void kd_span_pass(struct kd_stack *s, struct kdds_frame *f, char *at, uint64_t length)
{
	struct kdds_closure *c = kd_closure_at(at);
	const struct kdds_type *type = c->type;
	struct kd_span_frame *frame = kd_span_frame(s, f);
	char *first = kd_frame_first(f);
	uint32_t names_first = kd_link_of(f, first), n = type->naccess;
	const struct kd_span_closure *r = kd_span_at(s, c);
	uint64_t begin = at < frame->held ? r->begin : frame->base, end;
	int twice = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct kdds_access *a = kd_closure_access(c, i);
		struct kd_span_access b;

		b = before(s, c, a, i, first, names_first, &twice);
		if (type->access[i].mode != KDDS_CW) /* else it waits for nothing */
			begin = kd_max(begin,
				       type->access[i].mode == KDDS_R ? b.writer : b.users);
		*(struct kd_span_access *)kd_span_at(s, a) = b;
	}
	end = begin + length;
	frame->span = kd_max(frame->span, end);
	for (uint32_t i = 0; i < n; i++) {
		struct kd_span_access *b = kd_span_at(s, kd_closure_access(c, i));

		b->users = kd_max(b->users, end);
		if (type->access[i].mode != KDDS_R)
			b->writer = b->users;
	}
	if (kd_unlikely(twice))
		join(s, c);
}

void kd_span_wait(struct kd_stack *s, struct kdds_frame *f)
{
	struct kd_span_frame *frame = kd_span_frame(s, f);
	const char *c = kd_max((const char *)kd_load_relaxed(&f->head), frame->held);

	if (!kd_load_relaxed(&f->head))
		c = f->tail; /* none */
	for (; c < f->tail; c += kd_closure_at((char *)(uintptr_t)c)->bytes)
		((struct kd_span_closure *)kd_span_at(s, c))->begin = frame->base;
	frame->held = f->tail;
	frame->base = kd_max(frame->base, frame->span);
}

uint64_t kd_span_main(void)
{
	const struct kd_stack *s = kd_observe.net->pool->workers->current;
	const struct kd_span_frame *main = kd_span_frame(s, (struct kdds_frame *)s->mem);

	return kd_max(main->base, main->span);
}
