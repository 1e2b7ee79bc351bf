/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/incoming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/list.h"
#include "core/module.h"
#include "core/type.h"
#include "kdds.h"
#include "remote/exposed.h"
#include "remote/net.h"
#include "remote/piecewise.h"

#define GAP_SHARE 8 /* of a row, that a gap has at most */

struct opening {
	struct kd_incoming *x;
	uint32_t from; /* a member */
	const struct kd_wire_data *records;
	const struct kd_wire_piece *pieces;
	uint32_t npieces, taken; /* by the records so far */
	const char *inline_bytes;
	size_t inline_size;
	uint64_t arena;
	uint64_t memory; /* bytes that the data still to be opened may take */
};

static int product(uint64_t rows, uint64_t cols, uint64_t size, uint64_t *bytes_p)
{
	uint64_t elements;

	return __builtin_mul_overflow(rows, cols, &elements) ||
	       __builtin_mul_overflow(elements, size, bytes_p) ||
	       *bytes_p > (uint64_t)1 << 46;
}

/* Whether it can be what its name says. A name may lead anywhere in a module, even to the red
 * zones that AddressSanitizer puts between objects. */
__attribute__((no_sanitize("address"), noinline)) static int functions(const struct kdds_pack *pack)
{
	return (uintptr_t)pack % _Alignof(struct kdds_pack) == 0 &&
	       kd_module_is_code((uintptr_t)pack->bytes) &&
	       kd_module_is_code((uintptr_t)pack->pack) &&
	       kd_module_is_code((uintptr_t)pack->unpack) &&
	       (!pack->release || kd_module_is_code((uintptr_t)pack->release));
}

static int check_record(struct opening *o, const struct kd_wire_data *d,
			const struct kdds_pack **pack_p, uint64_t *room_p)
{
	uint64_t rows = d->rows ? d->rows : 1, cols = d->rows ? d->cols : 1;

	uint64_t extent;

	*pack_p = NULL;
	if (product(rows, cols, d->size, room_p))
		return -EBADMSG;
	if (!d->pack && rows > 1 && (d->ld < cols || product(rows, d->ld, d->size, &extent)))
		return -EBADMSG;
	if (d->pack) {
		*pack_p = kd_module_at(d->pack, sizeof(**pack_p), 0);
		if (!*pack_p || !functions(*pack_p))
			return -EBADMSG;
	} else if (d->flags & KD_WIRE_IN && d->bytes != *room_p) {
		return -EBADMSG;
	}
	if (*room_p > o->memory || d->bytes > o->memory - *room_p)
		return -ENOMEM;
	if (d->flags & KD_WIRE_COPIED &&
	    (!(d->flags & KD_WIRE_IN) || d->flags & (KD_WIRE_OUT | KD_WIRE_INLINE) || d->pack))
		return -EBADMSG;
	if (d->flags & KD_WIRE_AWAY &&
	    (!(d->flags & KD_WIRE_IN) || d->flags & (KD_WIRE_INLINE | KD_WIRE_COPIED) || d->pack ||
	     d->bytes <= KD_STEAL_INLINE || kd_member_rank(d->origin_rank) >= o->x->net->size ||
	     kd_member_rank(d->origin_rank) == o->x->net->rank))
		return -EBADMSG;
	if (d->flags & KD_WIRE_INLINE && !(d->flags & KD_WIRE_IN && d->bytes <= KD_STEAL_INLINE))
		return -EBADMSG;
	if (d->flags & KD_WIRE_RETAINED &&
	    (!(d->flags & KD_WIRE_IN) ||
	     d->flags & (KD_WIRE_INLINE | KD_WIRE_COPIED | KD_WIRE_AWAY)))
		return -EBADMSG;
	if (d->flags & KD_WIRE_PIECES &&
	    (!(d->flags & KD_WIRE_IN) ||
	     d->flags & (KD_WIRE_OUT | KD_WIRE_INLINE | KD_WIRE_COPIED | KD_WIRE_AWAY |
			 KD_WIRE_RETAINED) ||
	     d->pack || *room_p <= KD_STEAL_INLINE || !d->size || d->at > o->npieces ||
	     d->key > o->npieces - d->at))
		return -EBADMSG;
	if (d->flags & KD_WIRE_VIEWS &&
	    (!d->rows || !d->size || d->ld != d->cols || d->flags & KD_WIRE_OUT ||
	     !(d->flags & (KD_WIRE_PIECES | KD_WIRE_INLINE))))
		return -EBADMSG;
	if (d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_INLINE) && !d->bytes)
		return -EBADMSG;
	if (d->flags & KD_WIRE_INLINE &&
	    (d->at > o->inline_size || d->bytes > o->inline_size - d->at))
		return -EBADMSG;
	o->memory -= *room_p + d->bytes;
	return 0;
}

/* The place of a small data item in the arena, aligned as the original: its task may rely on
 * that. */
static char *arena_place(struct opening *o, const struct kd_wire_data *d, uint64_t room)
{
	uint64_t align = kd_max(kd_alignment(d->addr, KD_ALIGN_MAX), 16u);

	o->arena = (o->arena + align - 1) & -align;
	if (d->flags & KD_WIRE_VIEWS) /* each view has the alignment of the original */
		o->arena += (d->addr - o->arena) % KD_ALIGN_MAX;
	room = kd_max(room, 1u); /* an item without elements has an address of its own, too */
	o->arena += room;
	return o->x->arena + o->arena - room;
}

/*
 * The data of this rank of which the input is a copy; NULL: it is none, or not known. The copy is in
 * use by an import, of another rank, in which this one has its origin. So the export of this rank
 * that became that import, perhaps by way of others, is not complete before this import is. Until then
 * the data keep their value: a closure of the export reads them.
 */
static void *own_data(struct opening *o, const struct kd_wire_data *d, uint64_t room)
{
	const struct kd_wire_memory m = {d->origin, d->origin_key, room};
	const struct kd_net *net = o->x->net;

	/* If the rank that the import came from dies, the export is run again and complete, and the
	 * import still runs. */
	if (net->survives)
		return NULL;
	if (!(d->flags & KD_WIRE_COPIED) ||
	    d->origin_rank != kd_member(net->rank, net->incarnation) ||
	    !kd_exposed_find(o->x->net, &m))
		return NULL;
	return (void *)(uintptr_t)d->origin;
}

/* The result of an earlier import, which this rank retains; NULL: there is none. */
static const struct kd_copy_held *retained(struct opening *o, const struct kd_wire_data *d,
					   uint64_t room)
{
	const struct kd_wire_memory m = {d->at, d->key, room};
	const void *at = kd_exposed_at(o->x->net, &m);

	return at ? kd_copy_held(&o->x->net->copies, (uintptr_t)at, room) : NULL;
}

/* A piece that the message has, or that this rank retains itself, is stored at once. */
static int open_piece(struct opening *o, struct kd_incoming_item *k, uint64_t room,
		      const struct kd_wire_piece *w)
{
	struct kd_incoming *x = o->x;
	uint32_t rank = kd_member_rank(w->rank);
	const char *from;

	if (!kd_piece_fits(w, room) || rank >= x->net->size)
		return -EBADMSG;
	if (w->inside) {
		if (w->memory.addr > o->inline_size ||
		    w->memory.bytes > o->inline_size - w->memory.addr)
			return -EBADMSG;
		kd_piece_store(w, k->value.data, o->inline_bytes + w->memory.addr);
		return 0;
	}
	if (rank == x->net->rank) {
		from = kd_exposed_at(x->net, &w->memory);
		if (!from)
			return -EBADMSG;
		kd_piece_store(w, k->value.data, from);
		return 0;
	}
	if (w->memory.bytes > x->net->room)
		return -ENOMEM;
	x->pieces[x->npieces++] =
		(struct kd_incoming_piece){.wire = *w, .item = (uint32_t)(k - x->data)};
	return 0;
}

/* An input that is put together. */
static int open_pieces(struct opening *o, const struct kd_wire_data *d,
		       struct kd_incoming_item *k, uint64_t room)
{
	const struct kd_data_name name = {d->addr, d->rows, d->cols, d->ld, d->size, o->from};
	int error = 0;

	if (d->at != o->taken)
		return -EBADMSG;
	o->taken += (uint32_t)d->key;
	k->copy = kd_copy_park(&o->x->net->copies, &name, room, &k->value.data);
	if (!k->copy)
		return -ENOMEM;
	for (uint64_t i = 0; !error && i < d->key; i++)
		error = open_piece(o, k, room, &o->pieces[d->at + i]);
	return error;
}

/* Uses a result that this rank retains, in place. */
static int open_retained(struct opening *o, const struct kd_wire_data *d,
			 struct kd_incoming_item *k, uint64_t room)
{
	const struct kd_copy_held *h = retained(o, d, room);

	if (!h)
		return -EBADMSG; /* the value is nowhere else */
	k->copy = h->copy;
	k->value.data = (void *)(uintptr_t)h->extent.begin;
	k->shares = k->copy->parked;
	if (h->extent.end - h->extent.begin != room) { /* it has gaps */
		if (h->extent.end - h->extent.begin !=
		    ((d->rows - 1) * d->ld + d->cols) * d->size)
			return -EBADMSG;
		k->value.ld = d->ld;
	}
	if (d->flags & KD_WIRE_OUT && !k->shares)
		kd_copy_claim(k->copy);
	return 0;
}

/* What a closure writes goes where an input that is put together is to find it, if that is known
 * and rows are not too far apart: to read such a result, one reads the gaps. */
static int open_around(struct opening *o, const struct kd_wire_data *d, struct kd_incoming_item *k)
{
	const struct kd_data_name name = {d->addr, d->rows, d->cols, d->ld, d->size, o->from};

	if (!(d->flags & KD_WIRE_OUT) || d->flags & (KD_WIRE_REDUCE | KD_WIRE_AWAY) ||
	    o->x->net->survives || (d->rows > 1 && (d->ld - d->cols) * GAP_SHARE > d->cols))
		return 0;
	k->copy = kd_copy_around(&o->x->net->copies, &name, &k->value.data);
	if (!k->copy)
		return 0;
	k->value.ld = d->rows ? d->ld : 1;
	k->shares = 1;
	k->fetch = d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_INLINE);
	return 1;
}

/* Makes the local copy of a data item: in the arena if it is small, otherwise in the cache. */
static int make_room(struct opening *o, const struct kd_wire_data *d, struct kd_incoming_item *k,
		     uint64_t room)
{
	struct kd_data_name name = {d->addr, d->rows, d->cols, d->ld, d->size, o->from};

	if (room <= KD_STEAL_INLINE || k->value.pack) {
		if (d->flags & KD_WIRE_RETAINED)
			return -EBADMSG;
		if (room <= KD_STEAL_INLINE) {
			k->value.data = arena_place(o, d, room);
		} else {
			size_t align = kd_max(kd_alignment(d->addr, KD_ALIGN_MAX), KD_CACHE_LINE);

			/* calloc leaves the pages untouched: the length is only the sender's
			 * claim */
			k->own = calloc(1, room + align);
			if (!k->own)
				return -ENOMEM;
			k->value.data = (void *)(((uintptr_t)k->own + align - 1) & -align);
		}
		k->fetch = d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_INLINE);
		return 0;
	}
	if (d->flags & KD_WIRE_PIECES)
		return open_pieces(o, d, k, room);
	if (d->flags & KD_WIRE_RETAINED)
		return open_retained(o, d, k, room);
	k->value.data = own_data(o, d, room);
	if (k->value.data) {
		o->x->net->copies.counts.hits++;
		o->x->net->copies.counts.hit_bytes += room;
		return 0;
	}
	if (open_around(o, d, k))
		return 0;
	if (d->flags & KD_WIRE_IN)
		k->copy = kd_copy_find(&o->x->net->copies, &name, &k->version);
	if (k->copy && k->copy->arriving && d->flags & KD_WIRE_OUT) {
		kd_copy_release(k->copy);
		k->copy = NULL;
	}
	if (k->copy && d->flags & KD_WIRE_OUT) {
		k->copy = kd_copy_write(k->copy);
	} else if (!k->copy) {
		k->copy = kd_copy_create(&o->x->net->copies, &name, room);
		k->fetch = d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_INLINE);
	}
	if (!k->copy)
		return -ENOMEM;
	if (d->flags & KD_WIRE_IN)
		kd_copy_comes_from(k->copy, d->flags & KD_WIRE_COPIED ?
			(struct kd_origin){d->origin, d->origin_key, d->origin_rank} :
			(struct kd_origin){d->addr, d->key, o->from});
	k->compare = k->fetch && kd_copy_compare(k->copy);
	if (k->fetch && !(d->flags & KD_WIRE_OUT))
		kd_copy_expect(k->copy, &k->version);
	k->value.data = k->copy->bytes;
	return 0;
}

static int open_record(struct opening *o, uint32_t i)
{
	const struct kd_wire_data *d = &o->records[i];
	struct kd_incoming_item *k = &o->x->data[i];
	const struct kdds_pack *pack;
	uint64_t room;
	int error = check_record(o, d, &pack, &room);

	if (error)
		return error;
	*k = (struct kd_incoming_item){.value = {NULL, d->rows ? d->rows : 1, d->rows ? d->cols : 1,
					   d->rows ? d->cols : 1, d->size, pack},
				 .flags = d->flags, .bytes = d->bytes,
				 .rank = kd_member_rank(o->from), .at = d->at, .key = d->key,
				 .version = {d->version[0], d->version[1],
					     (uint32_t)(d->version[2] >> 32),
					     (uint32_t)d->version[2]}};
	if (d->flags & KD_WIRE_AWAY) {
		k->rank = kd_member_rank(d->origin_rank);
		k->at = d->origin;
		k->key = d->origin_key;
	}
	k->written = k->version;
	k->written.writer = d->written;
	return make_room(o, d, k, room);
}

/* Called when all accesses have been checked: only then the data item is known to have the
 * type that they say. */
static int fill_record(struct opening *o, uint32_t i)
{
	const struct kd_wire_data *d = &o->records[i];
	struct kd_incoming_item *k = &o->x->data[i];

	if (!k->used)
		return -EBADMSG;
	if (d->flags & KD_WIRE_INLINE)
		kd_value_scatter(&k->value, o->inline_bytes + d->at, d->bytes);
	return 0;
}

/* Makes the access a view of the item. */
static int open_view(const struct kd_wire_data *d, const struct kd_incoming_item *k,
		     const struct kdds_param *p, struct kdds_access_array *a)
{
	uint64_t offset = a->a.w | (uint64_t)a->a.p << 32, all = d->rows * d->cols * d->size, bytes;
	struct kdds_shape one = {1, 1, 1, NULL}, *s = p->array && a->shape.rows ? &a->shape : &one;

	if (p->mode != KDDS_R || !s->cols || s->cols > s->ld || offset % d->size ||
	    product(s->rows, s->ld, d->size, &bytes))
		return -EBADMSG;
	bytes -= (s->ld - s->cols) * d->size;
	if (bytes > all || offset > all - bytes)
		return -EBADMSG;
	a->a.data = (char *)k->value.data + offset;
	a->a.w = a->a.p = 0;
	if (p->array)
		a->shape.pack = NULL;
	return 0;
}

static int open_access(struct opening *o, struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	struct kdds_access_array *a = (void *)((char *)c + p->offset);
	size_t size = p->array ? sizeof(*a) : sizeof(a->a);
	const struct kd_wire_data *d;
	struct kd_incoming_item *k;
	uint64_t record;

	if (p->offset < sizeof(*c) || p->offset % 8 || p->offset > c->bytes ||
	    size > c->bytes - p->offset)
		return -EBADMSG;
	memcpy(&record, &a->a.data, sizeof(record));
	if (record >= o->x->ndata)
		return -EBADMSG;
	d = &o->records[record];
	k = &o->x->data[record];
	if (d->size != p->size || (d->rows && !p->array && !(d->flags & KD_WIRE_VIEWS)) ||
	    !(d->flags & KD_WIRE_REDUCE) != (p->mode != KDDS_CW) ||
	    (p->mode != KDDS_R && !(d->flags & KD_WIRE_OUT)))
		return -EBADMSG;
	k->used = 1;
	if (d->flags & KD_WIRE_VIEWS)
		return open_view(d, k, p, a);
	a->a.data = k->value.data;
	if (p->array)
		a->shape = (struct kdds_shape){d->rows, d->rows ? d->cols : 0,
					       d->rows ? k->value.ld : 0, k->value.pack};
	if (p->mode == KDDS_CW)
		p->op->neutral(k->value.data, k->value.rows * k->value.cols);
	return 0;
}

/* Makes the bytes at `at` a closure of this process. Returns its size, or 0 if they are none. */
static size_t open_closure(struct opening *o, char *at, size_t left)
{
	struct kdds_closure *c = (struct kdds_closure *)at;
	uint64_t name;

	if (left < 32 || c->bytes < 32 || c->bytes % 16 || c->bytes > left)
		return 0;
	memcpy(&name, at, sizeof(name));
	c->type = kd_type_at(name);
	if (c->type && c->type->lists)
		c->type = kd_list_type_of(c->type, c);
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
	struct kd_incoming *x = o->x;
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
	struct kd_incoming *x = o->x;
	uint64_t arena = 0, align = KD_CACHE_LINE;
	int error;

	for (uint32_t i = 0; i < x->ndata; i++) {
		const struct kd_wire_data *d = &o->records[i];
		uint64_t room;

		if (product(d->rows ? d->rows : 1, d->rows ? d->cols : 1, d->size, &room) ||
		    room > KD_STEAL_INLINE)
			continue;
		if (d->flags & KD_WIRE_VIEWS) {
			align = KD_ALIGN_MAX;
			arena += KD_ALIGN_MAX;
		}
		align = kd_max(align, kd_alignment(d->addr, KD_ALIGN_MAX));
		arena += kd_max(kd_alignment(d->addr, KD_ALIGN_MAX), 16u) + kd_max(room, 1u);
	}
	arena = (arena + align) & -align;
	x->data = calloc(x->ndata + 1, sizeof(*x->data));
	x->pieces = calloc(o->npieces + 1, sizeof(*x->pieces));
	x->arena = aligned_alloc(align, arena);
	if (!x->data || !x->pieces || !x->arena)
		return -ENOMEM;
	memset(x->arena, 0, arena);
	for (uint32_t i = 0; i < x->ndata; i++) {
		error = open_record(o, i);
		if (error)
			return error;
	}
	kd_assert(o->arena <= arena);
	error = open_closures(o, closures);
	for (uint32_t i = 0; !error && i < x->ndata; i++)
		error = fill_record(o, i);
	return !error && o->taken != o->npieces ? -EBADMSG : error;
}

int kd_incoming_open(struct kd_net *net, struct kd_incoming *x, uint32_t from, const void *bytes,
		     size_t size)
{
	struct kd_wire_steal head;
	struct opening o = {.x = x, .from = kd_net_member(net, from), .memory = net->room};
	const char *p = bytes;
	size_t records, pieces;
	int error;

	memset(x, 0, sizeof(*x));
	x->net = net;
	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, p, sizeof(head));
	records = (size_t)head.data * sizeof(*o.records);
	pieces = (size_t)head.pieces * sizeof(*o.pieces);
	/* each is used by an access */
	if (head.data > head.closure_bytes / sizeof(struct kdds_access) || !head.closures || head.closures > KD_STEAL_CLOSURES ||
	    head.inline_bytes % 16 || head.closure_bytes % 16 ||
	    size != sizeof(head) + records + pieces + head.inline_bytes + head.closure_bytes)
		return -EBADMSG;
	o.records = (const void *)(p + sizeof(head));
	o.pieces = (const void *)(p + sizeof(head) + records);
	o.npieces = head.pieces;
	o.inline_bytes = p + sizeof(head) + records + pieces;
	o.inline_size = head.inline_bytes;
	x->count = head.closures;
	x->ndata = head.data;
	x->closure_bytes = head.closure_bytes;
	x->independent = head.independent && head.closures > 1;
	error = open_all(&o, o.inline_bytes + head.inline_bytes);
	if (error)
		kd_incoming_free(x);
	return error;
}

char *kd_incoming_room(struct kd_incoming *x, uint32_t i)
{
	struct kd_incoming_item *k = &x->data[i];

	kd_assert(i < x->ndata && k->fetch && !k->arriving);
	if (kd_value_plain(&k->value))
		return k->value.data;
	k->arriving = kd_must(malloc(k->bytes));
	return k->arriving;
}

char *kd_incoming_piece_room(struct kd_incoming *x, uint32_t i)
{
	struct kd_incoming_piece *q = &x->pieces[i];

	kd_assert(i < x->npieces && !q->arriving);
	if (kd_piece_plain(&q->wire))
		return (char *)x->data[q->item].value.data + q->wire.to;
	q->arriving = kd_must(malloc(q->wire.memory.bytes));
	return q->arriving;
}

void kd_incoming_piece_arrived(struct kd_incoming *x, uint32_t i)
{
	struct kd_incoming_piece *q = &x->pieces[i];

	x->net->copies.counts.miss_bytes += q->wire.memory.bytes;
	if (!q->arriving)
		return;
	kd_piece_store(&q->wire, x->data[q->item].value.data, q->arriving);
	free(q->arriving);
	q->arriving = NULL;
}

uint64_t kd_incoming_recall(struct kd_incoming *x, uint32_t i, uint64_t at, uint64_t most,
			    int *had_p)
{
	*had_p = 0;
	return x->data[i].compare ? kd_copy_recall(x->data[i].copy, at, most, had_p) : most;
}

void kd_incoming_compared(struct kd_incoming *x, uint32_t i, uint32_t same, uint32_t differed)
{
	if (same || differed)
		kd_copy_compared(x->data[i].copy, same >= differed);
}

void kd_incoming_arrived(struct kd_incoming *x, uint32_t i)
{
	struct kd_incoming_item *k = &x->data[i];

	kd_assert(i < x->ndata && k->fetch && k->flags & KD_WIRE_IN);
	if (k->arriving) {
		kd_value_scatter(&k->value, k->arriving, k->bytes);
		free(k->arriving);
		k->arriving = NULL;
	}
	k->fetch = 0;
	x->net->copies.counts.miss_bytes += k->bytes;
	if (k->copy && !(k->flags & KD_WIRE_OUT))
		kd_copy_arrived(k->copy);
}

void kd_incoming_release(struct kd_incoming *x)
{
	for (uint32_t i = 0; i < x->ndata; i++) {
		struct kd_incoming_item *k = &x->data[i];

		if (k->copy && !(k->flags & KD_WIRE_OUT)) {
			kd_copy_release(k->copy);
			k->copy = NULL;
		}
	}
}

void kd_incoming_free(struct kd_incoming *x)
{
	for (uint32_t i = 0; x->data && i < x->ndata; i++) {
		struct kd_incoming_item *k = &x->data[i];

		if (k->used && k->value.pack && k->value.pack->release)
			k->value.pack->release(k->value.data);
		if (k->held)
			kd_copy_let_go(&k->holding);
		if (k->copy && k->copy->arriving && k->fetch)
			kd_copy_claim(k->copy); /* its bytes never arrive */
		if (k->copy)
			kd_copy_release(k->copy);
		free(k->own);
		free(k->arriving);
	}
	for (uint32_t i = 0; i < x->npieces; i++)
		free(x->pieces[i].arriving);
	free(x->pieces);
	free(x->data);
	free(x->arena);
	free(x->closures);
	memset(x, 0, sizeof(*x));
}

/* Results. */

void kd_results_make(struct kd_results *r, struct kd_incoming *x)
{
	size_t size = 0;
	uint32_t n = 0;
	char *at;

	memset(r, 0, sizeof(*r));
	r->net = x->net;
	for (uint32_t i = 0; i < x->ndata; i++)
		if (x->data[i].flags & KD_WIRE_OUT) {
			uint64_t bytes = kd_value_bytes(&x->data[i].value);

			size += sizeof(struct kd_wire_result) +
				(bytes <= KD_STEAL_INLINE || x->data[i].value.pack ?
					 KD_ROUND16(bytes) : 0);
			n++;
		}
	r->count = n;
	r->size = size;
	r->regions = kd_must(calloc(n + 1, sizeof(*r->regions)));
	at = r->bytes = kd_must(calloc(1, size + 1));
	for (uint32_t i = 0; i < x->ndata; i++) {
		struct kd_incoming_item *k = &x->data[i];
		struct kd_wire_result *result = (struct kd_wire_result *)at;
		uint64_t bytes;

		if (!(k->flags & KD_WIRE_OUT))
			continue;
		bytes = kd_value_bytes(&k->value);
		at += sizeof(*result);
		if (bytes <= KD_STEAL_INLINE || k->value.pack) {
			result->inline_bytes = bytes;
			kd_value_gather(&k->value, at);
			at += KD_ROUND16(bytes);
		} else {
			struct kd_exposed *e = &r->regions[r->nregions++];
			uint64_t extent = bytes;

			if (!kd_value_plain(&k->value)) {
				result->gaps = 1;
				extent = ((k->value.rows - 1) * k->value.ld + k->value.cols) *
					 k->value.size;
			}
			kd_exposed_add(r->net, e, k->value.data, extent, &result->memory);
			if (k->copy) {
				k->held = 1;
				kd_copy_hold(k->copy, &k->holding, k->value.data, extent, bytes);
			}
			r->large += bytes;
			r->fresh += k->flags & KD_WIRE_RETAINED ? 0 : bytes;
		}
		if (k->copy && k->written.writer && !k->shares)
			kd_copy_keep(k->copy, &k->written);
	}
	kd_assert(at == r->bytes + r->size && r->nregions <= n && r->fresh <= r->large);
}

void kd_results_free(struct kd_results *r)
{
	for (uint32_t i = 0; i < r->nregions; i++)
		kd_exposed_remove(r->net, &r->regions[i]);
	free(r->regions);
	free(r->bytes);
	memset(r, 0, sizeof(*r));
}
