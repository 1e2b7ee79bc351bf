/* SPDX-License-Identifier: BSD-3-Clause */
#include "span.h"

#include "closure.h"
#include "rsteal.h"

void kd_span_deliver(const struct kd_range *range, const char *c, uint64_t length)
{
	if (range->import)
		*kd_import_length(range->import, c) = length;
	else
		((struct kd_span_closure *)kd_span_at(range->from, c))->length = length;
}

/* As in index.c: the closure of this life of the frame that a link names. */
static char *linked(struct kdds_frame *f, uint32_t link, const char *c)
{
	char *first = kd_frame_first(f);
	size_t offset = (size_t)(uint32_t)(link - kd_link_of(f, first)) << 3;

	return !link || offset > (size_t)(c - first) ? NULL : first + offset;
}

static uint32_t first_access(struct kdds_closure *c, const void *data)
{
	uint32_t i = 0;

	while (i < c->type->naccess && kd_closure_access(c, i)->data != data)
		i++;
	return i;
}

/* What access a of c comes after. c itself: an earlier access of it is to the same data. */
static struct kd_span_access before(struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *c,
				    const struct kdds_access *a)
{
	struct kdds_closure *q = kd_closure_at(linked(f, a->p, (char *)c));
	uint32_t i;

	if (q == c)
		q = kd_closure_at(linked(f, kd_closure_access(c, first_access(c, a->data))->p, (char *)c));
	if (!q || q == c)
		return (struct kd_span_access){0, 0};
	if (q->type->reduces) {
		uint64_t end = ((struct kd_span_closure *)kd_span_at(s, q))->end;

		return (struct kd_span_access){end, end};
	}
	i = first_access(q, a->data);
	if (i == q->type->naccess)
		return (struct kd_span_access){0, 0};
	return *(struct kd_span_access *)kd_span_at(s, kd_closure_access(q, i));
}

/* c has been found to end then. */
static void note(struct kd_stack *s, struct kdds_closure *c, uint64_t end)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		const struct kdds_access *a = kd_closure_access(c, i);
		struct kd_span_access *r = kd_span_at(s, kd_closure_access(c, first_access(c, a->data)));

		r->users = kd_max(r->users, end);
		if (c->type->access[i].mode != KDDS_R)
			r->writer = r->users = end;
	}
}

void kd_span_pass(struct kd_stack *s, struct kdds_frame *f, char *at, uint64_t length)
{
	struct kdds_closure *c = kd_closure_at(at);
	struct kd_span_frame *frame = kd_span_frame(s, f);
	uint64_t begin = frame->base, end;

	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kdds_access *a = kd_closure_access(c, i);
		struct kd_span_access b;

		if (c->type->access[i].mode == KDDS_CW)
			continue; /* waits for nobody; its links may be gone */
		b = before(s, f, c, a);
		begin = kd_max(begin, c->type->access[i].mode == KDDS_R ? b.writer : b.users);
		*(struct kd_span_access *)kd_span_at(s, a) = b;
	}
	end = begin + length;
	frame->span = kd_max(frame->span, end);
	if (c->type->reduces)
		((struct kd_span_closure *)kd_span_at(s, c))->end = frame->span;
	else
		note(s, c, end);
}

uint64_t kd_span_main(void)
{
	const struct kd_stack *s = kd_pool.workers->current;
	const struct kd_span_frame *main = kd_span_frame(s, (struct kdds_frame *)s->mem);

	return kd_max(main->base, main->span);
}
