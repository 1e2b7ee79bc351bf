/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/fail.h"

#include <pthread.h>

#include "base/log.h"
#include "core/closure.h"
#include "core/reduce.h"
#include "core/value.h"
#include "core/worker.h"
#include "kdds.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kdds_failure last;
static int untold; /* the program has not asked for it */

/* Dekker, as for sleepers: failing, then what each worker runs; a worker stores that, then loads
 * failing (kd_fail_turn). */
void kd_fail_report(struct kd_pool *p, const struct kdds_failure *failure)
{
	pthread_mutex_lock(&lock);
	if (!kd_load_relaxed(&p->failing)) {
		last = *failure;
		kd_store_relaxed(&untold, 1);
	}
	kd_store(&p->failing, 1);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < p->count; i++) {
		struct kd_stack *s = kd_load(&p->workers[i].current);

		if (s)
			kd_fetch_or(&s->flags, KD_FAILING);
	}
}

void kd_fail_get(struct kdds_failure *failure_p)
{
	pthread_mutex_lock(&lock);
	*failure_p = last;
	pthread_mutex_unlock(&lock);
}

int kd_fail_untold(void)
{
	return kd_load_relaxed(&untold);
}

void kd_fail_told(void)
{
	kd_store_relaxed(&untold, 0);
}

void kd_fail_start(void)
{
	last = (struct kdds_failure){.code = 0};
	untold = 0;
}

void kd_fail_forget(struct kd_pool *p)
{
	kd_store(&p->failing, 0);
}

void kd_fail_turn(struct kd_pool *p, struct kd_stack *s)
{
	if (kd_load_relaxed(&s->flags) & KD_FAILING)
		kd_fetch_and(&s->flags, ~(uint32_t)KD_FAILING);
	if (kd_load(&p->failing))
		kd_fetch_or(&s->flags, KD_FAILING);
}

static uint32_t mask_of(const struct kdds_closure *c)
{
	return kd_load_relaxed(&c->state) >> KD_FAILED_SHIFT;
}

/* The bit of an access. Those beyond 16, of lists, share the last. */
static uint32_t bit_of(uint32_t access)
{
	return kd_min(access, 31u - KD_FAILED_SHIFT);
}

/* All accesses of c that are not only reads. */
static uint32_t outputs_of(const struct kdds_closure *c)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < c->type->naccess; i++)
		mask |= (uint32_t)(c->type->access[i].mode != KDDS_R) << bit_of(i);
	return mask;
}

/* The data as others know them: not the private copy of a reduction. */
static struct kd_value shared_value(struct kdds_closure *c, uint32_t i)
{
	struct kd_value v = kd_value_of(c, i);

	if (c->type->access[i].mode == KDDS_CW && kd_load_relaxed(&c->state) & KD_PRIVATE &&
	    !kd_value_empty(&v))
		v.data = kd_reduce_original(c, i);
	return v;
}

/* Which outputs of d, an ancestor, have elements of the failed ones of c. */
static uint32_t affected(struct kdds_closure *d, struct kdds_closure *c, uint32_t failed)
{
	uint32_t mask = 0;

	for (uint32_t k = 0; k < c->type->naccess; k++)
		for (uint32_t i = 0; failed >> bit_of(k) & 1 && i < d->type->naccess; i++) {
			struct kd_value mine = kd_value_of(d, i), theirs = shared_value(c, k);

			if (c->type->access[k].mode != KDDS_R && kd_value_overlaps(&mine, &theirs))
				mask |= 1u << bit_of(i);
		}
	return mask & outputs_of(d);
}

static void mark(struct kdds_closure *c, uint32_t mask, uint32_t also)
{
	kd_fetch_or(&c->state, mask << KD_FAILED_SHIFT | KD_FAILED | also);
}

/* The accesses `mask' of c, a closure of f of s, have failed: marks its ancestors. */
static void climb(const struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *c,
		  uint32_t mask)
{
	for (;;) {
		struct kdds_closure *d;

		if (f == &s->base) {
			f = s->range.frame;
			s = s->range.from;
			if (!s)
				return; /* the rest is the victim's */
		}
		kd_store_relaxed(&f->failed, 1);
		if (f->parent == &s->base && !s->range.count)
			return; /* main's frame */
		f = f->parent;
		d = kd_closure_at(kd_load_relaxed(&f->head));
		mask = affected(d, c, mask);
		mark(d, mask, 0);
		c = d;
	}
}

void kd_fail_mark(struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *c)
{
	mark(c, outputs_of(c), KD_OVER);
	climb(s, f, c, outputs_of(c));
}

void kd_fail_adopt(struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *p)
{
	struct kdds_closure *c = kd_closure_at(kd_load_relaxed(&s->top->head));
	uint32_t mask = 0;

	for (char *q = kd_frame_first(f); q < f->tail; q += kd_closure_at(q)->bytes)
		mask |= affected(p, kd_closure_at(q), mask_of(kd_closure_at(q)));
	mark(c, mask, 0);
	climb(s, s->top, c, mask);
}

static int failed_in(struct kdds_closure *q, const struct kd_value *v)
{
	uint32_t mask = mask_of(q);

	for (uint32_t k = 0; mask && k < q->type->naccess; k++) {
		struct kd_value theirs = kd_value_of(q, k);

		if (mask >> bit_of(k) & 1 && q->type->access[k].mode != KDDS_R && kd_value_overlaps(&theirs, v))
			return 1;
	}
	return 0;
}

static char *linked(struct kdds_frame *f, uint32_t link)
{
	char *first = kd_frame_first(f);
	size_t offset = (size_t)(uint32_t)(link - kd_link_of(f, first)) << 3;

	return link & 1 && first + offset < kd_load_acquire(&f->tail) ? first + offset : NULL;
}

/* The link by which q, which contributes to the data, has the last writer before it. 0: q does not
 * contribute. */
static uint32_t link_before(struct kdds_closure *q, const struct kd_value *v)
{
	for (uint32_t k = 0; k < q->type->naccess; k++) {
		struct kd_value theirs = kd_value_of(q, k);

		if (q->type->access[k].mode == KDDS_CW && kd_value_overlaps(&theirs, v))
			return kd_closure_access(q, k)->w;
	}
	return 0;
}

/* Whether the last writer of v by the link, or one of the contributions before, has failed. */
static int failed_before(struct kdds_frame *f, uint32_t link, const struct kd_value *v)
{
	const char *before = kd_load_acquire(&f->tail);
	char *q;

	while ((q = linked(f, link)) && q < before) {
		if (failed_in(kd_closure_at(q), v))
			return 1;
		before = q;
		link = link_before(kd_closure_at(q), v);
	}
	return 0;
}

/* Where links mean nothing: whether a closure between begin and c has failed to write v. */
static int failed_since(const char *begin, struct kdds_closure *c, const struct kd_value *v)
{
	for (; begin < (const char *)c; begin += kd_closure_at(begin)->bytes)
		if (failed_in(kd_closure_at(begin), v))
			return 1;
	return 0;
}

int kd_fail_uses(const struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *c)
{
	struct kdds_frame *home = f == &s->base ? s->range.frame : f;
	int imported = f == &s->base && s->range.import;
	int unlinked = !imported && kd_value_unlinked(home);

	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);

		if (c->type->access[i].mode == KDDS_CW || kd_value_empty(&v))
			continue;
		if (imported ? failed_since(s->range.begin, c, &v) :
		    unlinked ? failed_since(kd_frame_first(home), c, &v) :
			       failed_before(home, kd_closure_access(c, i)->w, &v))
			return 1;
	}
	return 0;
}

int kd_fail_wrote(struct kdds_frame *f, uint32_t link, const void *data)
{
	struct kd_value v = {(void *)(uintptr_t)data, 1, 1, 1, 1, NULL};

	return failed_before(f, link, &v);
}

int kd_fail_since(struct kdds_frame *f, uint32_t link)
{
	const char *c = kd_frame_first(f);

	if (link & 1 && link == kd_link_of(f, f->tail))
		return 0;
	if (linked(f, link))
		c = linked(f, link);
	for (; c < f->tail; c += kd_closure_at(c)->bytes)
		if (kd_load_acquire(&kd_closure_at(c)->state) &
		    (KD_FAILED | ~0u << KD_FAILED_SHIFT))
			return 1;
	return 0;
}

void kd_fail_keep(struct kdds_frame *f)
{
	char *c = kd_frame_first(f), *next;

	while ((next = c + kd_closure_at(c)->bytes) < f->tail)
		c = next;
	kd_store_release(&kd_closure_at(c)->state,
			 (kd_load_relaxed(&kd_closure_at(c)->state) &
			  (KD_FAILED | ~0u << KD_FAILED_SHIFT)) | KD_OVER);
	kd_store_release(&f->head, c);
}

int kd_fail_states(const char *begin, const char *end, uint32_t *states)
{
	int any = 0;

	for (const char *c = begin; c < end; c += kd_closure_at(c)->bytes) {
		uint32_t state = kd_load_acquire(&kd_closure_at(c)->state);

		*states++ = state & KD_FAILED ? state & (KD_FAILED | ~0u << KD_FAILED_SHIFT) : 0;
		any |= state & KD_FAILED;
	}
	return any != 0;
}

void kd_fail_returned(const struct kd_range *r, const uint32_t *states)
{
	struct kd_stack at = {.range = *r};

	for (char *p = r->begin; p < r->end; p += kd_closure_at(p)->bytes, states++) {
		struct kdds_closure *c = kd_closure_at(p);
		uint32_t mask = *states >> KD_FAILED_SHIFT & outputs_of(c);

		if (!*states)
			continue;
		mark(c, mask, 0);
		climb(&at, &at.base, c, mask);
	}
}
