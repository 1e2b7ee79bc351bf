/* SPDX-License-Identifier: BSD-3-Clause */
#include "package.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "import.h"
#include "index.h"
#include "kdds.h"
#include "log.h"
#include "os.h"
#include "type.h"

/* A value up to this size rides in the message; a longer one is read by who needs it, straight from where it lies if it is
 * contiguous. */
#define INLINE_BYTES 2048
#define DATA_MAX (KD_PACKAGE_CLOSURES * KDDS_MAX_ACCESSES)

uint64_t kd_package_memory;

static uint64_t memory(void)
{
	return kd_package_memory ? kd_package_memory : kd_os_memory();
}

static size_t round16(size_t n)
{
	return KD_ROUND16(n);
}

/* Says once per type why its closures stay. */
static void say_why(const struct kdds_type *type, const char *why)
{
	static const struct kdds_type *said[64];

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		if (said[i] == type)
			return;
		if (!said[i]) {
			said[i] = type;
			kd_error("task %s stays in its process: %s (KDDS_LOCAL says so too, in silence)", type->name, why);
			return;
		}
	}
}

int kd_package_allows(const struct kdds_closure *c)
{
	const struct kdds_type *type = c->type;

	if (c->attr & KDDS_LOCAL)
		return 0;
	if (!kd_type_name(type)) {
		say_why(type, "its type was made, or its library loaded, after kdds_init");
		return 0;
	}
	if (type->pointers) {
		say_why(type, "a VALUE parameter is a pointer, which means nothing in another process");
		return 0;
	}
	for (uint32_t i = 0; i < type->naccess; i++) {
		struct kd_value v = kd_value_of((struct kdds_closure *)(uintptr_t)c, i);

		if (v.pack && !kd_image_name(v.pack)) {
			say_why(type, "the struct kdds_pack of one of its data is not a static object");
			return 0;
		}
	}
	return 1;
}

/* The victim's side. */

struct making {
	struct kd_parcel *p;
	const struct kd_range *range;
	struct kd_version life; /* writer: none yet */
	struct kd_value *values;
	struct kd_wire_data *records;
	struct kd_target *targets; /* by record */
	uint32_t *hash, mask;
	uint32_t closures, data;
	size_t closure_bytes, inline_bytes;
};

static struct kdds_closure *first_of(const struct kd_range *r)
{
	return kd_closure_at(r->begin);
}

static struct kdds_closure *after(struct kdds_closure *c)
{
	return kd_closure_at((char *)c + c->bytes);
}

/* A value's rows as they are written down: 0 for what is no array to its task, though its extent may be that of one. */
static uint64_t rows_of(struct kdds_closure *c, uint32_t i)
{
	return c->type->access[i].array ? ((const struct kdds_access_array *)(void *)kd_closure_access(c, i))->shape.rows : 0;
}

/* Of the shape too: two tasks that see the same memory in different shapes are in one range only if neither writes (index.c). */
static int same_data(const struct kd_value *a, const struct kd_value *b)
{
	return a->data == b->data && a->size == b->size && a->rows == b->rows && a->cols == b->cols && a->ld == b->ld;
}

/* The record of access i of c: an earlier one of the same data, or a new one. *new_p tells. */
static uint32_t record_of(struct making *m, struct kdds_closure *c, uint32_t i, int *new_p)
{
	const struct kdds_param *p = &c->type->access[i];
	struct kd_value v = kd_value_of(c, i);
	uint32_t h = (uint32_t)(((uintptr_t)v.data * 0x9e3779b97f4a7c15u) >> 32) & m->mask;

	*new_p = 1;
	for (; p->mode != KDDS_CW && m->hash[h]; h = (h + 1) & m->mask)
		if (same_data(&m->values[m->hash[h] - 1], &v) && m->records[m->hash[h] - 1].rows == rows_of(c, i)) {
			*new_p = 0;
			return m->hash[h] - 1;
		}
	if (p->mode != KDDS_CW)
		m->hash[h] = m->data + 1;
	m->values[m->data] = v;
	m->targets[m->data] = (struct kd_target){.value = v, .closure = p->mode == KDDS_CW ? c : NULL, .access = i};
	return m->data++;
}

static void expose(struct kd_parcel *p, void *at, uint64_t bytes, uint64_t *at_p, uint64_t *key_p)
{
	struct kd_comm_region *r = &p->regions[p->nregions++];
	int error = kd_comm_expose(at, bytes, r);

	if (error)
		kd_die("cannot let other ranks read %llu bytes: %s", (unsigned long long)bytes, kd_errno_text(-error));
	*at_p = r->addr;
	*key_p = r->key;
}

/* How the input of the record travels. */
static void place_input(struct making *m, struct kd_wire_data *d, const struct kd_value *v)
{
	struct kd_parcel *p = m->p;

	d->bytes = kd_value_bytes(v);
	if (d->bytes <= INLINE_BYTES) {
		d->flags |= KD_WIRE_INLINE;
		d->at = m->inline_bytes;
		m->inline_bytes += round16(d->bytes);
	} else if (kd_value_plain(v)) {
		expose(p, v->data, d->bytes, &d->at, &d->key);
	} else {
		char *staged = kd_must(malloc(d->bytes));

		p->staged[p->nstaged++] = staged;
		kd_value_gather(v, staged);
		expose(p, staged, d->bytes, &d->at, &d->key);
	}
}

static uint32_t link_name(const struct making *m, const struct kdds_closure *c)
{
	return ((uint32_t)((uintptr_t)c >> 3) + m->life.bias) | 1u;
}

static void describe(struct making *m, struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	const struct kdds_access_array *a = (const void *)kd_closure_access(c, i);
	int fresh;
	uint32_t k = record_of(m, c, i, &fresh);
	struct kd_wire_data *d = &m->records[k];
	const struct kd_value *v = &m->values[k];

	if (fresh) {
		*d = (struct kd_wire_data){.addr = (uintptr_t)v->data, .cols = v->cols, .ld = v->ld, .size = p->size,
					   .version = {m->life.gen, m->life.head,
						       (uint64_t)m->life.bias << 32 | (m->range->import ? 0 : a->a.w)},
					   .pack = v->pack ? kd_image_name(v->pack) : 0,
					   .rows = rows_of(c, i)};
		if (p->mode == KDDS_CW)
			d->flags |= KD_WIRE_REDUCE;
		else if (p->mode != KDDS_W) {
			d->flags |= KD_WIRE_IN;
			place_input(m, d, v);
		}
	}
	if (p->mode != KDDS_R) {
		d->flags |= KD_WIRE_OUT;
		d->written = link_name(m, c);
	}
}

/* The closure as it travels. */
static void write_closure(struct making *m, struct kdds_closure *c, char *to, uint32_t *next)
{
	struct kdds_closure *copy = (struct kdds_closure *)to;
	uint64_t name = kd_type_name(c->type);

	memcpy(to, c, c->bytes);
	memcpy(to, &name, sizeof(name));
	copy->state = 0;
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kdds_access_array *a = (void *)(to + c->type->access[i].offset);
		int fresh;
		uint64_t record;

		if (c->type->access[i].mode == KDDS_CW) {
			while (!(m->records[*next].flags & KD_WIRE_REDUCE))
				++*next;
			record = (*next)++;
		} else {
			record = record_of(m, c, i, &fresh);
		}
		memcpy(&a->a.data, &record, sizeof(record));
		a->a.w = a->a.p = 0;
		if (c->type->access[i].array)
			a->shape.pack = NULL;
	}
}

static void write_package(struct making *m)
{
	size_t records = round16(m->data * sizeof(*m->records));
	struct kd_wire_package head = {.data = m->data, .closures = m->closures, .inline_bytes = (uint32_t)m->inline_bytes,
				       .closure_bytes = (uint32_t)m->closure_bytes, .independent = m->range->independent};
	uint32_t next = 0;
	char *at;

	m->p->size = sizeof(head) + records + m->inline_bytes + m->closure_bytes;
	at = m->p->bytes = kd_must(calloc(1, m->p->size));
	memcpy(at, &head, sizeof(head));
	memcpy(at += sizeof(head), m->records, m->data * sizeof(*m->records));
	at += records;
	for (uint32_t k = 0; k < m->data; k++)
		if (m->records[k].flags & KD_WIRE_INLINE)
			kd_value_gather(&m->values[k], at + m->records[k].at);
	at += m->inline_bytes;
	for (struct kdds_closure *c = first_of(m->range); (char *)c < m->range->end; c = after(c)) {
		write_closure(m, c, at, &next);
		at += c->bytes;
	}
}

void kd_parcel_make(struct kd_parcel *p, const struct kd_range *range, int (*rests)(const void *data))
{
	struct making m = {.p = p, .range = range};
	uint32_t accesses = 0;

	memset(p, 0, sizeof(*p));
	if (range->import)
		m.life = (struct kd_version){.gen = kd_import_serial(range->import), .head = 1};
	else
		m.life = (struct kd_version){.gen = kd_load_relaxed(&range->frame->gen),
					     .head = (uintptr_t)kd_load_relaxed(&range->frame->parent->head),
					     .bias = kd_load_relaxed(&range->frame->bias)};
	for (struct kdds_closure *c = first_of(range); (char *)c < range->end; c = after(c)) {
		accesses += c->type->naccess;
		m.closure_bytes += c->bytes;
		m.closures++;
	}
	for (m.mask = 16; m.mask < 2 * accesses; m.mask *= 2)
		;
	m.hash = kd_must(calloc(m.mask--, sizeof(*m.hash)));
	m.values = kd_must(calloc(accesses + 1, sizeof(*m.values)));
	m.records = kd_must(calloc(accesses + 1, sizeof(*m.records)));
	m.targets = kd_must(calloc(accesses + 1, sizeof(*m.targets)));
	p->regions = kd_must(calloc(accesses + 1, sizeof(*p->regions))); /* one more: the package's */
	p->staged = kd_must(calloc(accesses + 1, sizeof(*p->staged)));
	for (struct kdds_closure *c = first_of(range); (char *)c < range->end; c = after(c))
		for (uint32_t i = 0; i < c->type->naccess; i++)
			describe(&m, c, i);
	for (uint32_t k = 0; rests && k < m.data; k++)
		if (m.records[k].flags & KD_WIRE_IN && m.records[k].flags & KD_WIRE_OUT && rests(m.values[k].data))
			m.records[k].flags |= KD_WIRE_RESTS;
	write_package(&m);
	for (uint32_t k = 0; k < m.data; k++)
		if (m.records[k].flags & KD_WIRE_OUT)
			m.targets[p->ntargets++] = m.targets[k];
	p->targets = m.targets;
	free(m.hash);
	free(m.values);
	free(m.records);
}

void kd_parcel_expose(struct kd_parcel *p, struct kd_wire_memory *memory_p)
{
	expose(p, p->bytes, p->size, &memory_p->addr, &memory_p->key);
	memory_p->bytes = p->size;
}

void kd_parcel_hide(struct kd_parcel *p)
{
	for (uint32_t i = 0; i < p->nregions; i++)
		kd_comm_hide(&p->regions[i]);
	for (uint32_t i = 0; i < p->nstaged; i++)
		free(p->staged[i]);
	p->nregions = p->nstaged = 0;
	free(p->bytes);
	p->bytes = NULL;
}

void kd_parcel_free(struct kd_parcel *p)
{
	kd_parcel_hide(p);
	for (uint32_t i = 0; i < p->ntargets; i++)
		free(p->targets[i].bytes);
	free(p->regions);
	free(p->staged);
	free(p->targets);
	memset(p, 0, sizeof(*p));
}

/* The thief's side. */

struct opening {
	struct kd_contents *x;
	uint32_t from;
	const struct kd_wire_data *records;
	const char *inline_bytes;
	size_t inline_size;
	uint64_t arena;
	uint64_t memory; /* left; all data together cannot have more */
};

static int product(uint64_t rows, uint64_t cols, uint64_t size, uint64_t *bytes_p)
{
	uint64_t elements;

	return __builtin_mul_overflow(rows, cols, &elements) || __builtin_mul_overflow(elements, size, bytes_p) ||
	       *bytes_p > (uint64_t)1 << 46;
}

/* Whether it can be what its name says: a name may lead anywhere in an image, even to what AddressSanitizer puts between objects. */
__attribute__((no_sanitize("address"), noinline)) static int functions(const struct kdds_pack *pack)
{
	return (uintptr_t)pack % _Alignof(struct kdds_pack) == 0 && kd_image_is_code((uintptr_t)pack->bytes) &&
	       kd_image_is_code((uintptr_t)pack->pack) && kd_image_is_code((uintptr_t)pack->unpack) &&
	       (!pack->release || kd_image_is_code((uintptr_t)pack->release));
}

static int check_record(struct opening *o, const struct kd_wire_data *d, const struct kdds_pack **pack_p, uint64_t *room_p)
{
	uint64_t rows = d->rows ? d->rows : 1, cols = d->rows ? d->cols : 1;

	*pack_p = NULL;
	if (!d->size || product(rows, cols, d->size, room_p))
		return -EBADMSG;
	if (d->pack) {
		*pack_p = kd_image_at(d->pack, sizeof(**pack_p), 0);
		if (!*pack_p || !functions(*pack_p))
			return -EBADMSG;
	} else if (d->flags & KD_WIRE_IN && d->bytes != *room_p) {
		return -EBADMSG;
	}
	if (*room_p > o->memory || d->bytes > o->memory - *room_p)
		return -ENOMEM;
	if (d->flags & KD_WIRE_INLINE && !(d->flags & KD_WIRE_IN && d->bytes <= INLINE_BYTES))
		return -EBADMSG;
	if (d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_INLINE) && !d->bytes)
		return -EBADMSG;
	if (d->flags & KD_WIRE_INLINE && (d->at > o->inline_size || d->bytes > o->inline_size - d->at))
		return -EBADMSG;
	o->memory -= *room_p + d->bytes;
	return 0;
}

/* A small one's place in the arena, aligned as the original: its task may count on that. */
static char *arena_place(struct opening *o, const struct kd_wire_data *d, uint64_t room)
{
	uint64_t align = kd_min(d->addr & -d->addr, 64u);

	align = kd_max(align, 16u);
	o->arena = (o->arena + align - 1) & -align;
	o->arena += room;
	return o->x->arena + o->arena - room;
}

/* The local copy of one data. Small ones lie in the arena, the others in the cache. */
static int make_room(struct opening *o, const struct kd_wire_data *d, struct kd_content *k, uint64_t room)
{
	struct kd_data_name name = {d->addr, d->rows, d->cols, d->ld, d->size, o->from};

	if (room <= INLINE_BYTES || k->value.pack) {
		if (room <= INLINE_BYTES) {
			k->value.data = arena_place(o, d, room);
		} else {
			k->own = calloc(1, room + 63); /* zeroes that are not touched: the length is somebody else's word */
			if (!k->own)
				return -ENOMEM;
			k->value.data = (void *)(((uintptr_t)k->own + 63) & ~(uintptr_t)63);
		}
		k->fetch = d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_INLINE);
		return 0;
	}
	if (d->flags & KD_WIRE_IN)
		k->copy = kd_copy_find(&name, &k->version);
	if (d->flags & KD_WIRE_RESTS && !k->copy)
		return -EBADMSG; /* it is nowhere else */
	if (k->copy && d->flags & KD_WIRE_OUT) {
		k->copy = d->flags & KD_WIRE_RESTS ? kd_copy_claim(k->copy) : kd_copy_write(k->copy);
	} else if (!k->copy) {
		k->copy = kd_copy_create(&name, room);
		k->fetch = d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_INLINE);
	}
	if (!k->copy)
		return -ENOMEM;
	k->value.data = k->copy->bytes;
	return 0;
}

static int open_record(struct opening *o, uint32_t i)
{
	const struct kd_wire_data *d = &o->records[i];
	struct kd_content *k = &o->x->data[i];
	const struct kdds_pack *pack;
	uint64_t room;
	int error = check_record(o, d, &pack, &room);

	if (error)
		return error;
	*k = (struct kd_content){.value = {NULL, d->rows ? d->rows : 1, d->rows ? d->cols : 1, d->rows ? d->cols : 1, d->size, pack},
				 .flags = d->flags, .bytes = d->bytes, .at = d->at, .key = d->key,
				 .version = {d->version[0], d->version[1], (uint32_t)(d->version[2] >> 32), (uint32_t)d->version[2]}};
	k->written = k->version;
	k->written.writer = d->written;
	return make_room(o, d, k, room);
}

/* Once all accesses have been looked at: a data is what they say it is. */
static int fill_record(struct opening *o, uint32_t i)
{
	const struct kd_wire_data *d = &o->records[i];
	struct kd_content *k = &o->x->data[i];

	if (!k->used)
		return -EBADMSG;
	if (d->flags & KD_WIRE_INLINE)
		kd_value_scatter(&k->value, o->inline_bytes + d->at, d->bytes);
	return 0;
}

static int open_access(struct opening *o, struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	struct kdds_access_array *a = (void *)((char *)c + p->offset);
	size_t size = p->array ? sizeof(*a) : sizeof(a->a);
	const struct kd_wire_data *d;
	struct kd_content *k;
	uint64_t record;

	if (p->offset < sizeof(*c) || p->offset % 8 || p->offset > c->bytes || size > c->bytes - p->offset)
		return -EBADMSG;
	memcpy(&record, &a->a.data, sizeof(record));
	if (record >= o->x->ndata)
		return -EBADMSG;
	d = &o->records[record];
	k = &o->x->data[record];
	if (d->size != p->size || (d->rows && !p->array) || !(d->flags & KD_WIRE_REDUCE) != (p->mode != KDDS_CW) ||
	    (p->mode != KDDS_R && !(d->flags & KD_WIRE_OUT)))
		return -EBADMSG;
	k->used = 1;
	a->a.data = k->value.data;
	if (p->array)
		a->shape = (struct kdds_shape){d->rows, d->rows ? d->cols : 0, d->rows ? d->cols : 0, k->value.pack};
	if (p->mode == KDDS_CW)
		p->op->neutral(k->value.data, k->value.rows * k->value.cols);
	return 0;
}

/* Makes the closure at `at` one of this process. Returns its size, or 0: it is none. */
static size_t open_closure(struct opening *o, char *at, size_t left)
{
	struct kdds_closure *c = (struct kdds_closure *)at;
	uint64_t name;

	if (left < 32 || c->bytes < 32 || c->bytes % 16 || c->bytes > left)
		return 0;
	memcpy(&name, at, sizeof(name));
	c->type = kd_type_at(name);
	if (!c->type || c->type->size != c->bytes || c->type->pointers)
		return 0;
	c->state = 0;
	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (open_access(o, c, i))
			return 0;
	return c->bytes;
}

static int open_closures(struct opening *o, const char *from)
{
	struct kd_contents *x = o->x;
	uint32_t n = 0;

	x->closures = aligned_alloc(64, (x->closure_bytes + 63) / 64 * 64);
	if (!x->closures)
		return -ENOMEM;
	memcpy(x->closures, from, x->closure_bytes);
	for (size_t at = 0, size; at < x->closure_bytes; at += size, n++) {
		size = open_closure(o, x->closures + at, x->closure_bytes - at);
		if (!size)
			return -EBADMSG;
	}
	return n == x->count ? 0 : -EBADMSG;
}

static int open_all(struct opening *o, const char *closures)
{
	struct kd_contents *x = o->x;
	uint64_t arena = 0;
	int error;

	for (uint32_t i = 0; i < x->ndata; i++) {
		uint64_t room;

		if (!product(o->records[i].rows ? o->records[i].rows : 1, o->records[i].rows ? o->records[i].cols : 1,
			     o->records[i].size, &room) && room <= INLINE_BYTES)
			arena += 64 + room;
	}
	x->data = calloc(x->ndata + 1, sizeof(*x->data));
	x->arena = aligned_alloc(64, (arena + 64) / 64 * 64);
	if (!x->data || !x->arena)
		return -ENOMEM;
	memset(x->arena, 0, (arena + 64) / 64 * 64);
	for (uint32_t i = 0; i < x->ndata; i++) {
		error = open_record(o, i);
		if (error)
			return error;
	}
	error = open_closures(o, closures);
	for (uint32_t i = 0; !error && i < x->ndata; i++)
		error = fill_record(o, i);
	return error;
}

int kd_contents_open(struct kd_contents *x, uint32_t from, const void *bytes, size_t size)
{
	struct kd_wire_package head;
	struct opening o = {.x = x, .from = from, .memory = memory()};
	const char *p = bytes;
	size_t records;
	int error;

	memset(x, 0, sizeof(*x));
	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, p, sizeof(head));
	records = round16((size_t)head.data * sizeof(*o.records));
	if (head.data > DATA_MAX || !head.closures || head.closures > KD_PACKAGE_CLOSURES || head.inline_bytes % 16 ||
	    head.closure_bytes % 16 || size != sizeof(head) + records + head.inline_bytes + head.closure_bytes)
		return -EBADMSG;
	o.records = (const void *)(p + sizeof(head));
	o.inline_bytes = p + sizeof(head) + records;
	o.inline_size = head.inline_bytes;
	x->count = head.closures;
	x->ndata = head.data;
	x->closure_bytes = head.closure_bytes;
	x->independent = head.independent && head.closures > 1;
	error = open_all(&o, o.inline_bytes + head.inline_bytes);
	if (error)
		kd_contents_free(x);
	return error;
}

char *kd_contents_room(struct kd_contents *x, uint32_t i)
{
	struct kd_content *k = &x->data[i];

	if (!k->value.pack)
		return k->value.data;
	k->arriving = kd_must(malloc(k->bytes));
	return k->arriving;
}

void kd_contents_arrived(struct kd_contents *x, uint32_t i)
{
	struct kd_content *k = &x->data[i];

	if (k->arriving) {
		kd_value_scatter(&k->value, k->arriving, k->bytes);
		free(k->arriving);
		k->arriving = NULL;
	}
	if (k->copy && !(k->flags & KD_WIRE_OUT))
		kd_copy_keep(k->copy, &k->version);
	k->fetch = 0;
	kd_gdata_counts.miss_bytes += k->bytes;
}

void kd_contents_release(struct kd_contents *x)
{
	for (uint32_t i = 0; i < x->ndata; i++) {
		struct kd_content *k = &x->data[i];

		if (k->copy && !(k->flags & KD_WIRE_OUT)) {
			kd_copy_release(k->copy);
			k->copy = NULL;
		}
	}
}

void kd_contents_free(struct kd_contents *x)
{
	for (uint32_t i = 0; x->data && i < x->ndata; i++) {
		struct kd_content *k = &x->data[i];

		if (k->used && k->value.pack && k->value.pack->release)
			k->value.pack->release(k->value.data);
		if (k->copy)
			kd_copy_release(k->copy);
		free(k->own);
		free(k->arriving);
	}
	free(x->data);
	free(x->arena);
	free(x->closures);
	memset(x, 0, sizeof(*x));
}

/* Results. */

void kd_results_make(struct kd_results *r, struct kd_contents *x)
{
	size_t size = 0;
	uint32_t n = 0;
	char *at;

	memset(r, 0, sizeof(*r));
	for (uint32_t i = 0; i < x->ndata; i++)
		if (x->data[i].flags & KD_WIRE_OUT) {
			uint64_t bytes = kd_value_bytes(&x->data[i].value);

			size += sizeof(struct kd_wire_result) + (bytes <= INLINE_BYTES || x->data[i].value.pack ? round16(bytes) : 0);
			n++;
		}
	r->count = n;
	r->size = size;
	r->regions = kd_must(calloc(n + 1, sizeof(*r->regions)));
	at = r->bytes = kd_must(calloc(1, size + 1));
	for (uint32_t i = 0; i < x->ndata; i++) {
		struct kd_content *k = &x->data[i];
		struct kd_wire_result *result = (struct kd_wire_result *)at;
		uint64_t bytes;

		if (!(k->flags & KD_WIRE_OUT))
			continue;
		bytes = kd_value_bytes(&k->value);
		at += sizeof(*result);
		if (bytes <= INLINE_BYTES || k->value.pack) {
			result->inline_bytes = bytes;
			kd_value_gather(&k->value, at);
			at += round16(bytes);
		} else {
			struct kd_comm_region *region = &r->regions[r->nregions++];
			int error = kd_comm_expose(k->value.data, bytes, region);

			if (error)
				kd_die("cannot let other ranks read %llu bytes: %s", (unsigned long long)bytes,
				       kd_errno_text(-error));
			result->memory = (struct kd_wire_memory){region->addr, region->key, bytes};
		}
		if (k->copy && !(k->flags & KD_WIRE_REDUCE))
			kd_copy_keep(k->copy, &k->written);
	}
}

void kd_results_free(struct kd_results *r)
{
	for (uint32_t i = 0; i < r->nregions; i++)
		kd_comm_hide(&r->regions[i]);
	free(r->regions);
	free(r->bytes);
	memset(r, 0, sizeof(*r));
}

uint64_t kd_results_most(const struct kd_parcel *p)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < p->ntargets; i++) {
		if (p->targets[i].value.pack)
			return memory();
		most += sizeof(struct kd_wire_result) + kd_min(kd_value_bytes(&p->targets[i].value), (uint64_t)INLINE_BYTES);
	}
	return most + 16 * (uint64_t)p->ntargets; /* each is padded */
}

int kd_results_apply(struct kd_parcel *p, const void *bytes, size_t size, uint32_t count,
		     void (*get)(void *arg, void *to, const struct kd_wire_memory *from), void *arg)
{
	const char *at = bytes;

	if (count != p->ntargets)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		struct kd_target *t = &p->targets[i];
		struct kd_wire_result r;

		if (size < sizeof(r))
			return -EBADMSG;
		memcpy(&r, at, sizeof(r));
		at += sizeof(r);
		size -= sizeof(r);
		if (t->closure) /* its private copy has been made */
			t->value.data = kd_closure_access(t->closure, t->access)->data;
		if (r.memory.bytes) {
			if (t->value.pack || r.memory.bytes != kd_value_bytes(&t->value))
				return -EBADMSG;
			t->size = r.memory.bytes;
			if (!kd_value_plain(&t->value))
				t->bytes = kd_must(malloc(t->size));
			get(arg, t->bytes ? t->bytes : t->value.data, &r.memory);
		} else {
			if (r.inline_bytes > size || round16(r.inline_bytes) > size ||
			    (!t->value.pack && r.inline_bytes != kd_value_bytes(&t->value)))
				return -EBADMSG;
			kd_value_scatter(&t->value, at, r.inline_bytes);
			at += round16(r.inline_bytes);
			size -= round16(r.inline_bytes);
		}
	}
	return size ? -EBADMSG : 0;
}

void kd_results_finish(struct kd_parcel *p)
{
	for (uint32_t i = 0; i < p->ntargets; i++) {
		struct kd_target *t = &p->targets[i];

		if (t->bytes)
			kd_value_scatter(&t->value, t->bytes, t->size);
		free(t->bytes);
		t->bytes = NULL;
	}
}
