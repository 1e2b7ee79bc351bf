/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/stack.h"
#include "core/value.h"
#include "core/worker.h"

/* A part that closures use. */
struct part {
	struct kd_value v;
	uint64_t links;
	int written;
	int shares; /* overlaps another one */
};

struct kd_parts {
	struct kd_parts *next; /* of the stack, the youngest first */
	struct kdds_frame *frame;
	uint64_t epoch;
	char *head; /* of the frame's parent */
	uint32_t link_base;
	struct kdds_anchor *whole;
	char *data; /* of the whole: another anchor may have taken its place */
	size_t size; /* of an element */
	uint64_t links; /* of the whole when the first part was used; 0: none */
	struct part *part; /* by address */
	size_t count, room;
	int written; /* one of them is */
	uint64_t longest; /* bytes from begin to end of a part */
};

static void join_run(struct kdds_closure *c, struct kdds_frame *f)
{
	(void)c;
	(void)f;
}

struct join {
	struct kdds_closure head;
	struct kdds_access_array a[KDDS_MAX_ACCESSES];
} kd_aligned(16);

#define UPDATE(i) \
	{.offset = offsetof(struct join, a[i]), .mode = KDDS_RW, .array = 1, .size = 1}
static const struct kdds_param join_access[KDDS_MAX_ACCESSES] = {
	UPDATE(0), UPDATE(1), UPDATE(2),  UPDATE(3),  UPDATE(4),  UPDATE(5),  UPDATE(6),  UPDATE(7),
	UPDATE(8), UPDATE(9), UPDATE(10), UPDATE(11), UPDATE(12), UPDATE(13), UPDATE(14), UPDATE(15),
};
static const struct kdds_type join_type = {.run = join_run, .size = sizeof(struct join),
					   .naccess = KDDS_MAX_ACCESSES, .access = join_access,
					   .name = "join"};

int kd_parts_join(const struct kdds_closure *c)
{
	return c->type == &join_type;
}

/* The links of an anchor, without what stands for none. */
static uint64_t links_of(const struct kdds_anchor *a)
{
	uint64_t odd = a->links & 0x100000001u;

	return a->links & odd * UINT32_MAX;
}

/* Whether f is the same body's, and has not been emptied since. */
static int current(const struct kd_parts *t, struct kdds_frame *f)
{
	return t->epoch == kd_frame_epoch(f) && t->head == kd_load_relaxed(&f->parent->head) &&
	       t->link_base == kd_load_relaxed(&f->link_base);
}

/* The whole of the table is in use: nothing is known of its parts. */
static void clear(struct kd_parts *t, struct kdds_frame *f)
{
	t->epoch = kd_frame_epoch(f);
	t->head = kd_load_relaxed(&f->parent->head);
	t->link_base = kd_load_relaxed(&f->link_base);
	t->count = 0;
	t->longest = 0;
	t->links = 0;
	t->written = 0;
	t->whole->shaped &= (uint16_t)~KD_WHOLE;
	if (!links_of(t->whole) || f->tail == kd_frame_first(f))
		t->whole->links = KD_NO_LINK;
}

/* The first table is of no use any more; its memory is. */
static void drop_first(struct kd_stack *s)
{
	struct kd_parts *t = s->parts;

	s->parts = t->next;
	t->next = s->spare_parts;
	s->spare_parts = t;
}

void kd_parts_free(struct kd_stack *s)
{
	while (s->parts)
		drop_first(s);
	while (s->spare_parts) {
		struct kd_parts *t = s->spare_parts;

		s->spare_parts = t->next;
		free(t->part);
		free(t);
	}
}

static struct kd_parts *new_table(struct kd_stack *s)
{
	struct kd_parts *t = s->spare_parts;

	if (t)
		s->spare_parts = t->next;
	else
		t = calloc(1, sizeof(*t));
	if (!t)
		kd_die("out of memory for the parts of an array");
	return t;
}

/* The table of the whole in f, the running frame of s. Those of frames beyond it are of no use. */
static struct kd_parts *table_of(struct kd_stack *s, struct kdds_frame *f,
				 struct kdds_anchor *whole)
{
	struct kd_parts *t;

	while (s->parts && s->parts->frame > f)
		drop_first(s);
	for (t = s->parts; t && t->frame == f; t = t->next)
		if (t->whole == whole) {
			if (t->data != whole->data || !current(t, f)) {
				t->data = whole->data;
				clear(t, f);
			}
			return t;
		}
	t = new_table(s);
	t->next = s->parts;
	t->frame = f;
	t->whole = whole;
	t->data = whole->data;
	clear(t, f);
	s->parts = t;
	return t;
}

static struct kd_value value_of(const struct kd_part *p)
{
	const struct kdds_shape *s = &p->array.shape;

	return (struct kd_value){p->array.a.data, s->rows, s->cols, s->ld, p->size, NULL};
}

static uint64_t extent(const struct kd_value *v)
{
	return kd_value_empty(v) ? 0 : ((v->rows - 1) * v->ld + v->cols) * v->size;
}

/* The first part that does not begin before the address. */
static size_t place(const struct kd_parts *t, const char *at)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if ((char *)t->part[middle].v.data < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct part *find(const struct kd_parts *t, const struct kd_value *v)
{
	for (size_t i = place(t, v->data); i < t->count && t->part[i].v.data == v->data; i++)
		if (kd_value_same(&t->part[i].v, v))
			return &t->part[i];
	return NULL;
}

/* The first part that may overlap v, if it begins before the end of v. */
static size_t near(const struct kd_parts *t, const struct kd_value *v)
{
	const char *begin = v->data;

	return place(t, begin - kd_min(t->longest, (uint64_t)(begin - t->data)));
}

static int ends_before(const struct kd_value *v, const struct part *p)
{
	return (const char *)v->data + extent(v) <= (const char *)p->v.data;
}

/* Whether v overlaps the part, and is another one. */
static int meets(const struct kd_value *v, const struct part *p)
{
	return !kd_value_same(&p->v, v) && kd_value_overlaps(&p->v, v);
}

static struct part *insert(struct kd_parts *t, const struct kd_value *v)
{
	size_t i = place(t, v->data);

	if (t->count == t->room) {
		size_t room = kd_max(2 * t->room, (size_t)16);
		struct part *grown = realloc(t->part, room * sizeof(*grown));

		if (!grown)
			kd_die("out of memory for %zu parts of an array", room);
		t->part = grown;
		t->room = room;
	}
	memmove(&t->part[i + 1], &t->part[i], (t->count - i) * sizeof(*t->part));
	t->count++;
	t->longest = kd_max(t->longest, extent(v));
	t->part[i] = (struct part){.v = *v, .links = t->links};
	for (size_t k = near(t, v); k < t->count && !ends_before(v, &t->part[k]); k++)
		if (meets(v, &t->part[k]))
			t->part[k].shares = t->part[i].shares = 1;
	t->whole->shaped |= KD_WHOLE;
	if (!links_of(t->whole))
		t->whole->links = KD_TRACKED_LINK;
	return &t->part[i];
}

/* Whether links do not order a use of the part after all uses of data that it shares. */
static int part_conflicts(const struct kd_parts *t, const struct kd_value *v, uint32_t mode)
{
	uint64_t links = links_of(t->whole);
	const struct part *p = find(t, v);

	if (mode == KDDS_R ? (uint32_t)links != (uint32_t)t->links : links != t->links)
		return 1;
	if (p && !p->shares)
		return 0;
	for (size_t i = near(t, v); i < t->count && !ends_before(v, &t->part[i]); i++)
		if ((mode != KDDS_R || t->part[i].written) && meets(v, &t->part[i]))
			return 1;
	return 0;
}

static int whole_conflicts(const struct kd_parts *t, uint32_t mode)
{
	return mode == KDDS_R ? t->written : t->count != 0;
}

/* Begins a closure that joins; NULL: meanwhile the frame has been emptied, and there is nothing left
 * to join. */
static struct join *begin_join(const struct kd_parts *t, struct kdds_frame *f, uint32_t *link)
{
	struct join *j = (struct join *)(void *)kd_push(f, sizeof(*j), 0);

	if (!current(t, f))
		return NULL;
	*link = kd_link_of(f, (char *)j);
	memset(j, 0, sizeof(*j));
	kd_init_closure(&j->head, &join_type, sizeof(*j), KDDS_LOCAL, 0);
	for (int i = 0; i < KDDS_MAX_ACCESSES; i++)
		j->a[i].shape.rows = 1; /* without elements */
	return j;
}

static void commit(struct kdds_frame *f, struct join *j)
{
	kd_commit(f, (char *)j, sizeof(*j));
}

static void use(struct kdds_access_array *a, const struct kd_value *v, uint64_t links)
{
	a->a.data = v->data;
	a->a.w = (uint32_t)links;
	a->a.p = (uint32_t)(links >> 32);
	a->shape = (struct kdds_shape){v->rows, v->cols * v->size, v->ld * v->size, NULL};
}

static uint64_t both(uint32_t link)
{
	return (uint64_t)link << 32 | link;
}

/*
 * Joins the first n of what is to be joined, in groups of 16, and leaves the links of the closures
 * that do so in `link'. from NULL: closures, by their links in `link'. 0: the frame has been emptied.
 */
static size_t join_groups(const struct kd_parts *t, struct kdds_frame *f, const struct part *from,
			  size_t n, uint32_t *link)
{
	size_t groups = 0;

	for (size_t i = 0; i < n; i += KDDS_MAX_ACCESSES, groups++) {
		uint32_t self;
		struct join *j = begin_join(t, f, &self);

		if (!j)
			return 0;
		for (size_t k = i; k < n && k < i + KDDS_MAX_ACCESSES; k++)
			if (from)
				use(&j->a[k - i], &from[k].v, from[k].links);
			else
				j->a[k - i].a.w = j->a[k - i].a.p = link[k];
		commit(f, j);
		link[groups] = self;
	}
	return groups;
}

/* Everything that closures use of the whole and of its parts, and the closures that use it from now
 * on: the former come first. */
static void join(struct kd_parts *t, struct kdds_frame *f)
{
	const struct kdds_shape *s = kd_shape_of(t->whole);
	struct kd_value v = {t->data, s->rows, s->cols, s->ld, t->size, NULL};
	size_t n = t->count;
	uint32_t *link = malloc((n / KDDS_MAX_ACCESSES + 1) * sizeof(*link)), self;
	struct join *j;

	if (!link)
		kd_die("out of memory to join %zu parts of an array", n);
	if (n)
		for (n = join_groups(t, f, t->part, n, link); n >= KDDS_MAX_ACCESSES;)
			n = join_groups(t, f, NULL, n, link);
	j = current(t, f) ? begin_join(t, f, &self) : NULL;
	if (j) {
		use(&j->a[0], &v, links_of(t->whole));
		for (size_t i = 0; i < n; i++)
			j->a[i + 1].a.w = j->a[i + 1].a.p = link[i];
		commit(f, j);
		clear(t, f);
		t->whole->links = t->links = both(self);
	} else {
		clear(t, f);
	}
	free(link);
}

/* The table of the anchor's array; NULL: links order the uses of its data as they are. */
static struct kd_parts *table_for(struct kd_stack *s, struct kdds_frame *f, struct kdds_anchor *a)
{
	struct kd_part *p = (struct kd_part *)(void *)a;
	struct kd_parts *t;

	if (!(a->shaped & KD_TRACKED))
		return a->shaped & KD_WHOLE ? table_of(s, f, a) : NULL;
	t = table_of(s, f, p->whole);
	t->size = p->size;
	return t;
}

/* A use of the anchor's data comes: what it conflicts with comes first. */
static void settle(struct kd_parts *t, struct kdds_frame *f, const struct kdds_anchor *a,
		   uint32_t mode)
{
	struct kd_value v;

	if (!(a->shaped & KD_TRACKED)) {
		if (whole_conflicts(t, mode))
			join(t, f);
		return;
	}
	v = value_of((const struct kd_part *)(const void *)a);
	if (part_conflicts(t, &v, mode))
		join(t, f);
}

static struct part *part_of(struct kd_parts *t, const struct kdds_anchor *a)
{
	struct kd_value v = value_of((const struct kd_part *)(const void *)a);
	struct part *p = find(t, &v);

	return p ? p : insert(t, &v);
}

void kd_parts_settle(struct kd_stack *s, const struct kd_uses *u)
{
	for (uint32_t i = 0; i < u->type->naccess; i++) {
		struct kdds_anchor *a = kd_uses_anchor(u, i);
		struct kd_parts *t = a ? table_for(s, u->frame, a) : NULL;

		if (t)
			settle(t, u->frame, a, u->type->access[i].mode);
	}
}

/* By the closure that the link names. */
static void use_part(struct kd_parts *t, struct part *p, uint32_t mode, uint32_t link)
{
	if (mode == KDDS_R) {
		p->links = (uint64_t)link << 32 | (uint32_t)p->links;
	} else {
		p->links = both(link);
		p->written = t->written = 1;
	}
}

/* All anchors get their links before one part is used: two may have the same. */
void kd_parts_link(struct kd_stack *s, const struct kd_uses *u)
{
	uint32_t link = kd_link_of(u->frame, u->frame->tail);

	for (int used = 0; used < 2; used++)
		for (uint32_t i = 0; i < u->type->naccess; i++) {
			struct kdds_anchor *a = kd_uses_anchor(u, i);
			struct kd_parts *t;
			struct part *p;

			if (!a || !(a->shaped & KD_TRACKED))
				continue;
			t = table_for(s, u->frame, a);
			p = part_of(t, a);
			if (used)
				use_part(t, p, u->type->access[i].mode, link);
			else
				a->links = p->links ? p->links : KD_TRACKED_LINK;
		}
}

uint32_t kd_parts_last(struct kd_stack *s, struct kdds_frame *f, struct kdds_anchor *a)
{
	struct kd_parts *t = table_for(s, f, a);
	uint64_t links;

	settle(t, f, a, KDDS_RW);
	links = a->shaped & KD_TRACKED ? part_of(t, a)->links : links_of(a);
	return (uint32_t)(links >> 32);
}
