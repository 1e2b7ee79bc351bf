/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/outgoing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "core/index.h"
#include "core/looppart.h"
#include "core/module.h"
#include "core/place.h"
#include "core/type.h"
#include "core/views.h"
#include "kdds.h"
#include "remote/balance.h"
#include "remote/copies.h"
#include "remote/net.h"
#include "remote/piecewise.h"
#include "remote/weigh.h"

#define INSIDE_BYTES ((size_t)65536) /* of pieces that travel in the message, at most */
#define LOSS_TIMES 3
#define LOSS_NS 3000000u   /* before another look at a loop that is not worth moving, at most */
#define KEPT_NS 1000000000u /* what may not leave the process is looked at again */
#define LONG_NS 8000000u /* four times what a steal message is to take */
#define ENOUGH 3u /* unanswered ranges of a rank: then closures whose data it has are open */

/* Prints once per type why its closures stay in their process. */
static void say_why(struct kd_net *net, const struct kdds_type *type, const char *why)
{
	for (size_t i = 0; i < sizeof(net->kept_here) / sizeof(*net->kept_here); i++) {
		if (net->kept_here[i] && net->kept_here[i]->name == type->name)
			return;
		if (!net->kept_here[i]) {
			net->kept_here[i] = type;
			kd_error("task %s stays in its process: %s (KDDS_LOCAL has the same "
				 "effect, without this message)",
				 type->name, why);
			return;
		}
	}
}

int kd_outgoing_allows(struct kd_net *net, const struct kdds_closure *c)
{
	struct kdds_closure *any = kd_closure_at((const char *)c);
	const struct kdds_type *type = c->type;
	unsigned overlap;

	if (kd_place_stays(net->pool, c))
		return 0;
	if (!kd_type_name(type)) {
		say_why(net, type, "its type was made, or its library loaded, after kdds_init");
		return 0;
	}
	if (type->pointers) {
		say_why(net, type,
			"a VALUE parameter is a pointer, which is meaningless in another process");
		return 0;
	}
	/* In another process each parameter would have a copy of its own, unless one value around
	 * them can. */
	overlap = kd_value_overlap(any);
	if (overlap & KD_OVERLAP_REDUCED ||
	    (overlap & KD_OVERLAP_VIEWS && (overlap & KD_OVERLAP_WRITTEN || !kd_views_fit(any))))
		return 0;
	for (uint32_t i = 0; i < type->naccess; i++) {
		struct kd_value v = kd_value_of(any, i);

		if (type->access[i].pointers && !v.pack && !kd_value_empty(&v)) {
			say_why(net, type, "a data item is a pointer, or a C++ object that is not "
				      "trivially copyable, or an array of these, which are "
				      "meaningless in another process; kdds_bind_packed takes "
				      "functions that serialize what they point to");
			return 0;
		}
		if (v.pack && (!v.pack->bytes || !v.pack->pack || !v.pack->unpack)) {
			say_why(net, type,
				"the struct kdds_pack of one of its data items lacks a function");
			return 0;
		}
		if (v.pack && !kd_module_name(v.pack)) {
			say_why(net, type, "the struct kdds_pack of one of its data items is not a "
				      "static object");
			return 0;
		}
	}
	return 1;
}

int kd_outgoing_open(struct kd_net *net, const struct kdds_closure *c, int place)
{
	return place >= 0 && (uint32_t)place != net->rank && kd_place_rank(net->pool, c) < 0 &&
	       kd_balance_has(net, (uint32_t)place) >= ENOUGH;
}

struct making {
	struct kd_outgoing *p;
	const struct kd_range *range;
	uint32_t thief;
	struct kd_version epoch; /* the epoch; no writer */
	struct kd_value *values; /* by record, as are the next three */
	struct kd_wire_data *records;
	struct kd_target *targets;
	struct kdds_closure **writers; /* the last closure of the range that writes the data item */
	struct kd_segments *seen; /* if views lie in the value: the bytes of these */
	uint32_t *hash, mask; /* number of the record + 1, by address */
	uint32_t closures, data;
	int views; /* accesses of the closure at hand overlap as different views */
	struct kd_piecewise pieces;
	size_t closure_bytes, inline_bytes;
	size_t inside; /* bytes of pieces among the inline ones */
};

static struct kdds_closure *first_of(const struct kd_range *r)
{
	return kd_closure_at(r->begin);
}

static struct kdds_closure *after(struct kdds_closure *c)
{
	return kd_closure_at((char *)c + c->bytes);
}

static int counted(const struct kd_load *l, const struct kd_value *v)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (kd_value_same(&l->values[i], v))
			return 1;
	return 0;
}

static int add_to_load(struct kd_load *l, struct kdds_closure *c, uint64_t room)
{
	uint64_t bytes = l->bytes;
	uint32_t n = l->n;

	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		int shared = c->type->access[i].mode != KDDS_CW;
		uint64_t weight;

		/* As in the record: an element and an array that begins with it are two data
		 * items. */
		v.rows = kd_value_rows(c, i);
		if (shared && counted(l, &v))
			continue;
		if (__builtin_mul_overflow(v.rows ? v.rows * v.cols : 1, 2 * v.size, &weight) ||
		    weight > room || bytes > room - weight) {
			l->n = n;
			return 0;
		}
		bytes += weight;
		if (shared && weight > KD_STEAL_INLINE && l->n < KD_LOAD_VALUES)
			l->values[l->n++] = v;
	}
	l->bytes = bytes;
	l->end = (const char *)c + c->bytes;
	return 1;
}

int kd_load_add(struct kd_net *net, struct kd_load *l, const struct kdds_closure *c, uint64_t room)
{
	struct kd_load anew = {.end = NULL};

	/* The value around views is read at the victim: no closure before may have written it. */
	if (l->end == (const char *)c &&
	    kd_value_overlap((struct kdds_closure *)(uintptr_t)c) & KD_OVERLAP_VIEWS)
		return 0;
	if (l->end == (const char *)c)
		return add_to_load(l, (struct kdds_closure *)(uintptr_t)c, room);
	if (!add_to_load(&anew, (struct kdds_closure *)(uintptr_t)c, room)) {
		say_why(net, c->type, "its data have more than half as many bytes as the memory of "
				      "a rank that requested work");
		return 0;
	}
	*l = anew;
	return 1;
}

/* Whether a range of so many bytes is worth moving because it is larger than those before. */
static int grows(const struct kd_load_filter *f, const struct kdds_type *type, uint64_t bytes)
{
	return kd_weigh_grows(f->net, type, bytes, kd_balance_ns(f->net, bytes / 2), f->now_ns);
}

static int too_dear(struct kd_load_filter *f, struct kdds_closure *c)
{
	const struct kdds_type *type = c->type;
	uint64_t until = kd_weigh_until(f->net, type);
	struct kd_load alone = {.end = NULL};

	if (until <= f->now_ns || !f->now_ns)
		return 0;
	if (add_to_load(&alone, c, f->room) && grows(f, type, alone.bytes))
		return 0;
	f->until_ns = kd_min(f->until_ns, until);
	f->net->counts.dear++;
	if (kd_unlikely(f->net->hooks.refused != NULL))
		f->net->hooks.refused(type);
	return 1;
}

/* Whether it takes far longer to move the data of c, a part of a loop, than to run it: the indices
 * that the owner has run show that before any package has come back. A little longer pays if the
 * loop runs again and finds its data there. Half of the load is inputs. */
static int is_loss(struct kd_load_filter *f, struct kdds_closure *c)
{
	uint64_t run_ns = kd_loop_expect(f->net->pool, c), move_ns;
	struct kd_load alone = {.end = NULL};

	if (!run_ns || !add_to_load(&alone, c, f->room))
		return 0;
	move_ns = kd_balance_ns(f->net, alone.bytes / 2);
	if (run_ns >= move_ns / LOSS_TIMES)
		return 0;
	f->until_ns = kd_min(f->until_ns, f->now_ns + kd_min(move_ns, (uint64_t)LOSS_NS));
	return 1;
}

/* The load, to which c has just been added, is large, and no large one may go now. Half of the load
 * is inputs. */
static int too_large(struct kd_load_filter *f, struct kdds_closure *c)
{
	const struct kdds_type *type = c->type;
	uint64_t bytes = f->load.bytes / 2, until;

	if (!f->now_ns)
		return 0;
	if (kd_weigh_known(f->net, type) && !kd_weigh_loses(f->net, type)) {
		if (kd_weigh_pays(f->net, type, f->load.bytes, kd_balance_ns(f->net, bytes)))
			return 0;
		f->affords = kd_balance_affords(f->net, f->thief, f->net->rank, bytes, f->now_ns);
		if (f->affords)
			return 0;
		f->until_ns = kd_min(f->until_ns, f->now_ns + kd_balance_ns(f->net, bytes));
		f->load.end = NULL;
		return 1;
	}
	if (f->load.bytes <= KD_WEIGH_SMALL || grows(f, type, f->load.bytes))
		return 0;
	until = kd_weigh_large_until(f->net, type, f->load.bytes);
	if (until <= f->now_ns && f->large && !is_loss(f, c))
		return 0;
	if (until <= f->now_ns && !f->large)
		f->too_large = 1;
	else if (until > f->now_ns)
		f->until_ns = kd_min(f->until_ns, until);
	f->load.end = NULL;
	return 1;
}

static int wants(struct kd_filter *filter, const struct kdds_closure *c)
{
	struct kd_load_filter *f = (struct kd_load_filter *)filter;
	int place = kd_place_of(f->net->pool, c);

	if (place == KD_PLACE_DIVIDES || (place >= 0 && !kd_outgoing_open(f->net, c, place)))
		return 0;
	if (!kd_outgoing_allows(f->net, c)) {
		f->until_ns = kd_min(f->until_ns, f->now_ns + KEPT_NS);
		return 0;
	}
	/* it is open, and the thief has its data */
	if (place == (int)f->thief)
		return kd_load_add(f->net, &f->load, c, f->room);
	return !too_dear(f, kd_closure_at((const char *)c)) &&
	       kd_load_add(f->net, &f->load, c, f->room) &&
	       !too_large(f, kd_closure_at((const char *)c));
}

static int enough(struct kd_filter *filter, const struct kdds_closure *c)
{
	const struct kd_load_filter *f = (const struct kd_load_filter *)filter;
	uint64_t run_ns, move_ns;

	if (!f->load.end || !f->now_ns)
		return 0;
	kd_weigh_expect(f->net, c->type, f->load.bytes, &run_ns, &move_ns);
	return run_ns >= LONG_NS;
}

static void reset(struct kd_filter *filter)
{
	((struct kd_load_filter *)filter)->load.end = NULL;
	((struct kd_load_filter *)filter)->affords = 0;
}

void kd_load_filter_init(struct kd_net *net, struct kd_load_filter *f, uint32_t thief,
			 uint64_t room, uint64_t now_ns)
{
	f->filter = (struct kd_filter){.wants = wants, .reset = reset, .enough = enough,
				      .later_ns = UINT64_MAX};
	f->net = net;
	f->thief = thief;
	f->load.end = NULL;
	f->room = room;
	f->now_ns = now_ns;
	f->until_ns = UINT64_MAX;
	f->large = 0;
	f->too_large = 0;
	f->affords = 0;
}

static void begin_closure(struct making *m, struct kdds_closure *c)
{
	m->views = (kd_value_overlap(c) & KD_OVERLAP_VIEWS) != 0;
}

/* What access i of c refers to in the message, and its rows there. Returns KD_WIRE_VIEWS if it is
 * a view of that value. */
static uint32_t item_of(const struct making *m, struct kdds_closure *c, uint32_t i,
			struct kd_value *v_p, uint64_t *rows_p)
{
	if (m->views && c->type->access[i].mode != KDDS_CW && kd_views_around(c, i, v_p) == 2) {
		*rows_p = v_p->rows;
		return KD_WIRE_VIEWS;
	}
	*v_p = kd_value_of(c, i);
	*rows_p = kd_value_rows(c, i);
	return 0;
}

/* The record of access i of c: an earlier one of the same data item in the same shape, or a
 * new one; *new_p is set accordingly. Closures that see the same memory in different shapes
 * are in one range only if none of them writes it (ready.c). */
static uint32_t record_of(struct making *m, struct kdds_closure *c, uint32_t i, int *new_p)
{
	const struct kdds_param *p = &c->type->access[i];
	struct kd_value v;
	uint64_t rows;
	uint32_t h;
	uint32_t views = item_of(m, c, i, &v, &rows);

	h = (uint32_t)(((uintptr_t)v.data * 0x9e3779b97f4a7c15u) >> 32) & m->mask;
	kd_assert(2 * m->data <= m->mask + 1); /* so the hash is never full */
	*new_p = 1;
	for (; p->mode != KDDS_CW && m->hash[h]; h = (h + 1) & m->mask) {
		uint32_t k = m->hash[h] - 1;

		if (kd_value_same(&m->values[k], &v) && m->records[k].rows == rows &&
		    (m->records[k].flags & KD_WIRE_VIEWS) == views) {
			*new_p = 0;
			return k;
		}
	}
	if (p->mode != KDDS_CW)
		m->hash[h] = m->data + 1;
	m->values[m->data] = v;
	m->records[m->data] = (struct kd_wire_data){.rows = rows, .flags = views};
	m->targets[m->data] = (struct kd_target){
		.value = v, .closure = p->mode == KDDS_CW ? c : NULL, .access = i};
	return m->data++;
}

static void expose(struct kd_outgoing *p, void *at, uint64_t bytes, uint64_t *at_p, uint64_t *key_p)
{
	struct kd_wire_memory m;

	kd_exposed_add(p->net, &p->regions[p->nregions++], at, bytes, &m);
	*at_p = m.addr;
	*key_p = m.key;
}

/* What a task reads of a copy may be of the thief, or of a rank of which the thief has a copy, too. */
static void place_origin(struct kd_net *net, const struct kd_value *v, struct kd_wire_data *d)
{
	struct kd_origin origin;

	if (!kd_copies_origin(&net->copies, v->data, d->bytes, &origin))
		return;
	d->flags |= KD_WIRE_COPIED;
	d->origin_rank = origin.rank;
	d->origin = origin.addr;
	d->origin_key = origin.key;
}

/* Another rank has the input: the thief, or one where the thief reads it. */
static void place_retained(struct making *m, struct kd_wire_data *d, uint32_t rank,
			   const struct kd_wire_memory *memory)
{
	if (rank == m->thief) {
		d->flags |= KD_WIRE_RETAINED;
		d->at = memory->addr;
		d->key = memory->key;
	} else {
		d->flags |= KD_WIRE_AWAY;
		d->origin_rank = kd_net_member(m->p->net, rank);
		d->origin = memory->addr;
		d->origin_key = memory->key;
	}
}

/* For kd_outgoing_absent.parts. */
struct absent {
	struct making *m;
	uint32_t k;
};

static void absent_part(void *arg, uint32_t rank, const struct kd_rows *b,
			const struct kd_value *value, const struct kd_wire_memory *memory)
{
	const struct absent *a = arg;
	struct making *m = a->m;

	kd_piecewise_add(&m->pieces, &m->values[a->k], b, kd_net_member(m->p->net, rank), value,
			 memory);
}

/* Finds the pieces of the input of the record: of views, or of what several ranks have. */
static void find_pieces(struct making *m, uint32_t k, const struct kd_outgoing_absent *absent)
{
	struct kd_net *net = m->p->net;
	struct kd_wire_data *d = &m->records[k];
	const struct kd_value *v = &m->values[k];
	struct kd_segments wanted = {.n = 0};
	struct absent a = {m, k};

	if (d->flags & KD_WIRE_VIEWS)
		kd_segments_add(&wanted, &m->seen[k]);
	else
		kd_segments_of(&wanted, v);
	d->at = m->pieces.n;
	if (absent)
		absent->parts(net, v, &wanted, absent_part, &a);
	if (m->pieces.n > d->at || d->flags & KD_WIRE_VIEWS)
		kd_piecewise_add_here(&m->pieces, v, &wanted,
				      kd_member(net->rank, net->incarnation));
	d->key = m->pieces.n - d->at;
	if (d->key)
		d->flags |= KD_WIRE_PIECES;
	kd_segments_free(&wanted);
}

/* Finds the input of the record if other ranks have it, or parts of it. */
static void find_absent(struct making *m, uint32_t k, const struct kd_outgoing_absent *absent)
{
	const struct kd_net *net = m->p->net;
	struct kd_wire_data *d = &m->records[k];
	const struct kd_value *v = &m->values[k];
	struct kd_wire_memory memory;
	uint32_t rank = net->rank;

	if (!(d->flags & KD_WIRE_IN) || v->pack || kd_value_bytes(v) <= KD_STEAL_INLINE)
		return;
	if (absent && !(d->flags & KD_WIRE_VIEWS))
		rank = absent->retains(m->p->net, v, &memory);
	if (rank != net->rank)
		place_retained(m, d, rank, &memory);
	else if (!(d->flags & KD_WIRE_OUT))
		find_pieces(m, k, absent);
}

/* Lets the thief read the value: where it is or, if its rows have gaps, gathered. */
static void place_value(struct kd_outgoing *p, const struct kd_value *v, uint64_t bytes,
			uint64_t *at_p, uint64_t *key_p)
{
	char *staged;

	if (kd_value_plain(v)) {
		expose(p, v->data, bytes, at_p, key_p);
		return;
	}
	staged = p->staged[p->nstaged++] = kd_must(malloc(bytes));
	kd_value_gather(v, staged);
	expose(p, staged, bytes, at_p, key_p);
}

static struct kd_value piece_value(const struct kd_piece *x)
{
	return (struct kd_value){(char *)(uintptr_t)x->from.begin, x->from.rows, x->from.bytes,
				 x->from.stride, 1, NULL};
}

/* Those that are here. A reader of one that is not inside sends two messages for it. */
static void place_pieces(struct making *m)
{
	for (uint32_t i = 0; i < m->pieces.n; i++) {
		struct kd_piece *x = &m->pieces.at[i];
		struct kd_value v = piece_value(x);
		struct kd_wire_memory *memory = &x->wire.memory;

		if (!x->here)
			continue;
		memory->bytes = x->from.rows * x->from.bytes;
		if (memory->bytes <= INSIDE_BYTES - m->inside) {
			x->wire.inside = 1;
			memory->addr = m->inline_bytes;
			m->inline_bytes += KD_ROUND16(memory->bytes);
			m->inside += memory->bytes;
		} else {
			place_value(m->p, &v, memory->bytes, &memory->addr, &memory->key);
		}
	}
}

/* Decides how an input that is here travels. */
static void place_input(struct making *m, uint32_t k)
{
	struct kd_outgoing *p = m->p;
	struct kd_wire_data *d = &m->records[k];
	const struct kd_value *v = &m->values[k];

	d->bytes = kd_value_bytes(v);
	if (d->bytes <= KD_STEAL_INLINE) {
		d->flags |= KD_WIRE_INLINE;
		d->at = m->inline_bytes;
		m->inline_bytes += KD_ROUND16(d->bytes);
		return;
	}
	if (d->flags & (KD_WIRE_PIECES | KD_WIRE_RETAINED | KD_WIRE_AWAY))
		return;
	place_value(p, v, d->bytes, &d->at, &d->key);
	if (kd_value_plain(v) && !(d->flags & KD_WIRE_OUT))
		place_origin(p->net, v, d);
}

static uint32_t link_name(const struct making *m, const struct kdds_closure *c)
{
	return ((uint32_t)((uintptr_t)c >> 3) + m->epoch.link_base) | 1u;
}

/* The later of two links, considering those that name a closure of the frame before the range;
 * 0: neither does. In an import links are meaningless. */
static uint32_t later(const struct making *m, uint32_t a, uint32_t b)
{
	const char *first = m->range->import ? m->range->begin : kd_frame_first(m->range->frame);
	uint32_t names_first = link_name(m, (const struct kdds_closure *)first);
	size_t front = (size_t)(m->range->begin - first) >> 3;
	int a_counts = a & 1 && a - names_first < front, b_counts = b & 1 && b - names_first < front;

	if (a_counts && b_counts)
		return a - names_first < b - names_first ? b : a;
	return a_counts ? a : b_counts ? b : 0;
}

/*
 * The last closure before the range that has written what access i of c refers to, as a link. One
 * link alone is not enough: c may have the data item by two references, of which only one was
 * written through; and if c contributes to it by an earlier parameter, the link of a later one
 * names c itself.
 */
static uint32_t writer_of(const struct making *m, struct kdds_closure *c, uint32_t i)
{
	struct kd_value mine = kd_value_of(c, i), theirs;
	uint32_t writer = 0;

	for (uint32_t k = 0; k < c->type->naccess; k++) {
		theirs = kd_value_of(c, k);
		if (kd_value_same(&mine, &theirs))
			writer = later(m, writer, kd_closure_access(c, k)->w);
	}
	return writer;
}

/* Whether c also contributes to the data item or a part of it. The contribution is merged here, so
 * the value that c leaves at the thief is no version. */
static int contributes(struct kdds_closure *c, const struct kd_value *v)
{
	for (uint32_t k = 0; c->type->reduces && k < c->type->naccess; k++) {
		struct kd_value theirs = kd_value_of(c, k);

		if (c->type->access[k].mode == KDDS_CW && kd_value_overlaps(&theirs, v))
			return 1;
	}
	return 0;
}

static void describe(struct making *m, struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	int fresh;
	uint32_t k = record_of(m, c, i, &fresh);
	struct kd_wire_data *d = &m->records[k];
	const struct kd_value *v = &m->values[k];

	if (fresh) {
		*d = (struct kd_wire_data){.addr = (uintptr_t)v->data, .cols = v->cols, .ld = v->ld,
					   .size = p->size,
					   .version = {m->epoch.gen, m->epoch.head,
						       (uint64_t)m->epoch.link_base << 32},
					   .pack = v->pack ? kd_module_name(v->pack) : 0,
					   .rows = d->rows, .flags = d->flags};
		if (p->mode == KDDS_CW)
			d->flags |= KD_WIRE_REDUCE;
	}
	if (d->flags & KD_WIRE_VIEWS) {
		struct kd_value own = kd_value_of(c, i);
		struct kd_segments bytes = {.n = 0};

		kd_segments_of(&bytes, &own);
		kd_segments_add(&m->seen[k], &bytes);
		kd_segments_free(&bytes);
	}
	d->version[2] = (uint64_t)m->epoch.link_base << 32 |
			later(m, (uint32_t)d->version[2], writer_of(m, c, i));
	/* If only c itself has written it so far, c may also read it, by another parameter. */
	if (p->mode & KDDS_R && (fresh || m->writers[k] == c))
		d->flags |= KD_WIRE_IN;
	if (p->mode != KDDS_R) {
		d->flags |= KD_WIRE_OUT;
		m->writers[k] = c;
		d->written = contributes(c, v) ? 0 : link_name(m, c);
	}
}

/* After kdds_wait a body may write to data that closures of its frame have used and will use again,
 * and closures may write data through another reference: no link tells. So what a record reads is a
 * version of its own. */
static void distrust_versions(struct making *m)
{
	for (uint32_t k = 0; k < m->data; k++)
		m->records[k].version[2] = (uint64_t)m->epoch.link_base << 32 |
					   (link_name(m, first_of(m->range)) & ~1u);
}

/* What is frozen has one version for as long, whoever has it, and in whichever frame. */
static void name_frozen(struct making *m)
{
	struct kd_frozen_set *frozen = &m->p->net->pool->frozen;

	for (uint32_t k = 0; k < m->data; k++) {
		struct kd_wire_data *d = &m->records[k];
		uint64_t number = d->flags & (KD_WIRE_OUT | KD_WIRE_VIEWS) ? 0 :
				  kd_frozen_number(frozen, &m->values[k]);

		if (!number)
			continue;
		d->version[0] = KD_COPY_FROZEN;
		d->version[1] = number;
		d->version[2] = 0;
	}
}

/* Of the view of access i in its record's value. */
static uint64_t offset_of(const struct making *m, struct kdds_closure *c, uint32_t i,
			  uint64_t record)
{
	struct kd_value own = kd_value_of(c, i);
	struct kd_rows b = {(uintptr_t)own.data, 1, own.cols * own.size, 0};
	uint64_t offset, stride;

	kd_rows_in(&b, &m->values[record], &offset, &stride);
	return offset;
}

/* The closure as it travels. One that belongs to its rank may not go on from there. */
static void write_closure(struct making *m, struct kdds_closure *c, char *to, uint32_t *next)
{
	struct kdds_closure *copy = (struct kdds_closure *)to;
	uint64_t name = kd_type_name(c->type);

	memcpy(to, c, c->bytes);
	memcpy(to, &name, sizeof(name));
	copy->state = 0;
	begin_closure(m, c);
	if (m->range->stays)
		copy->attr = (c->attr & (KDDS_PRIORITY_HIGH | KDDS_PRIORITY_LOW)) | KDDS_LOCAL;
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kdds_access_array *a = (void *)(to + c->type->access[i].offset);
		int fresh;
		uint64_t record, offset;

		if (c->type->access[i].mode == KDDS_CW) {
			while (!(m->records[*next].flags & KD_WIRE_REDUCE))
				++*next;
			record = (*next)++;
		} else {
			record = record_of(m, c, i, &fresh);
			kd_assert(!fresh);
		}
		kd_assert(record < m->data);
		memcpy(&a->a.data, &record, sizeof(record));
		offset = m->records[record].flags & KD_WIRE_VIEWS ? offset_of(m, c, i, record) : 0;
		a->a.w = (uint32_t)offset;
		a->a.p = (uint32_t)(offset >> 32);
		if (c->type->access[i].array)
			a->shape.pack = NULL;
	}
}

/* Of a value around views only what these see: others may be writing the rest. */
static void write_inline(const struct making *m, uint32_t k, char *to)
{
	const struct kd_value *v = &m->values[k];
	struct kd_rows b;

	if (!(m->records[k].flags & KD_WIRE_VIEWS)) {
		kd_value_gather(v, to);
		return;
	}
	for (uint32_t i = 0; kd_segments_next(&m->seen[k], &i, &b);)
		for (; b.rows; b.rows--, b.begin += b.stride) {
			uint64_t offset, stride;

			kd_rows_in(&b, v, &offset, &stride);
			memcpy(to + offset, (char *)(uintptr_t)b.begin, b.bytes);
		}
}

static void write_message(struct making *m)
{
	size_t records = m->data * sizeof(*m->records);
	size_t pieces = m->pieces.n * sizeof(struct kd_wire_piece);
	struct kd_wire_steal head = {.data = m->data, .closures = m->closures,
				       .inline_bytes = (uint32_t)m->inline_bytes,
				       .closure_bytes = (uint32_t)m->closure_bytes,
				       .independent = m->range->independent,
				       .pieces = m->pieces.n};
	uint32_t next = 0;
	char *at;

	m->p->size = sizeof(head) + records + pieces + m->inline_bytes + m->closure_bytes;
	at = m->p->bytes = kd_must(calloc(1, m->p->size));
	memcpy(at, &head, sizeof(head));
	memcpy(at += sizeof(head), m->records, records);
	at += records;
	for (uint32_t i = 0; i < m->pieces.n; i++, at += sizeof(struct kd_wire_piece))
		memcpy(at, &m->pieces.at[i].wire, sizeof(struct kd_wire_piece));
	for (uint32_t k = 0; k < m->data; k++)
		if (m->records[k].flags & KD_WIRE_INLINE)
			write_inline(m, k, at + m->records[k].at);
	for (uint32_t i = 0; i < m->pieces.n; i++)
		if (m->pieces.at[i].wire.inside) {
			struct kd_value v = piece_value(&m->pieces.at[i]);

			kd_value_gather(&v, at + m->pieces.at[i].wire.memory.addr);
		}
	at += m->inline_bytes;
	for (struct kdds_closure *c = first_of(m->range); (char *)c < m->range->end; c = after(c)) {
		write_closure(m, c, at, &next);
		at += c->bytes;
	}
	kd_assert(at == m->p->bytes + m->p->size);
}

/* The steal message as the thief will read it, and what the victim keeps for it. */
#ifdef KDDS_DEBUG
static void check(const struct kd_outgoing *p, const struct kd_range *range)
{
	const struct kd_wire_steal *head = (const void *)p->bytes;
	const struct kd_wire_data *d = (const void *)(head + 1);
	const char *at = p->bytes + p->size - head->closure_bytes;
	uint32_t outs = 0, regions = 0, closures = 0;

	kd_assert(p->size == sizeof(*head) + head->data * sizeof(*d) +
				     head->pieces * sizeof(struct kd_wire_piece) +
				     head->inline_bytes + head->closure_bytes);
	kd_assert(p->size <= KD_STEAL_BYTES && head->closures <= KD_STEAL_CLOSURES);
	for (uint32_t k = 0; k < head->data; k++, d++) {
		if (d->flags & KD_WIRE_INLINE) {
			kd_assert(d->flags & KD_WIRE_IN);
			kd_assert(!(d->flags & (KD_WIRE_RETAINED | KD_WIRE_AWAY)));
			kd_assert(d->at % 16 == 0 && d->at <= head->inline_bytes);
			kd_assert(KD_ROUND16(d->bytes) <= head->inline_bytes - d->at);
		} else if (d->flags & (KD_WIRE_RETAINED | KD_WIRE_AWAY | KD_WIRE_PIECES)) {
			kd_assert(d->flags & KD_WIRE_IN);
			kd_assert(!(d->flags & KD_WIRE_PIECES) ||
				  d->at + d->key <= head->pieces);
		} else {
			regions += d->flags & KD_WIRE_IN;
		}
		if (d->flags & KD_WIRE_OUT) {
			kd_assert(outs < p->ntargets);
			kd_assert((uintptr_t)p->targets[outs].value.data == d->addr);
			kd_assert(!p->targets[outs].closure == !(d->flags & KD_WIRE_REDUCE));
			outs++;
		}
	}
	kd_assert(outs == p->ntargets && regions <= p->nregions && p->nstaged <= p->nregions);
	kd_assert(p->nregions <= regions + head->pieces);
	d = (const void *)(head + 1);
	for (struct kdds_closure *c = first_of(range); (char *)c < range->end; c = after(c)) {
		kd_assert(kd_closure_at(at)->bytes == c->bytes && !kd_closure_at(at)->state);
		for (uint32_t i = 0; i < c->type->naccess; i++) {
			uint64_t record;

			memcpy(&record, at + c->type->access[i].offset, sizeof(record));
			kd_assert(record < head->data);
			kd_assert(d[record].flags & KD_WIRE_VIEWS ||
				  d[record].addr == (uintptr_t)kd_closure_access(c, i)->data);
		}
		at += c->bytes;
		closures++;
	}
	kd_assert(at == p->bytes + p->size);
	kd_assert(closures == head->closures && closures == p->closures);
}
#else
static inline void check(const struct kd_outgoing *p, const struct kd_range *range)
{
	(void)p;
	(void)range;
}
#endif

void kd_outgoing_make(struct kd_net *net, struct kd_outgoing *p, const struct kd_range *range,
		      uint32_t thief, const struct kd_outgoing_absent *absent)
{
	struct making m = {.p = p, .range = range, .thief = thief};
	uint32_t accesses = 0;

	memset(p, 0, sizeof(*p));
	p->net = net;
	if (range->import)
		m.epoch = (struct kd_version){.gen = range->serial, .head = 1};
	else
		m.epoch = (struct kd_version){
			.gen = kd_frame_epoch(range->frame),
			.head = (uintptr_t)kd_load_relaxed(&range->frame->parent->head),
			.link_base = kd_load_relaxed(&range->frame->link_base)};
	for (struct kdds_closure *c = first_of(range); (char *)c < range->end; c = after(c)) {
		accesses += c->type->naccess;
		m.closure_bytes += c->bytes;
		m.closures++;
	}
	p->closures = m.closures;
	for (m.mask = 16; m.mask < 2 * accesses; m.mask *= 2)
		;
	m.hash = kd_must(calloc(m.mask--, sizeof(*m.hash)));
	m.values = kd_must(calloc(accesses + 1, sizeof(*m.values)));
	m.records = kd_must(calloc(accesses + 1, sizeof(*m.records)));
	m.targets = kd_must(calloc(accesses + 1, sizeof(*m.targets)));
	m.writers = kd_must(calloc(accesses + 1, sizeof(*m.writers)));
	m.seen = kd_must(calloc(accesses + 1, sizeof(*m.seen)));
	for (struct kdds_closure *c = first_of(range); (char *)c < range->end; c = after(c)) {
		begin_closure(&m, c);
		for (uint32_t i = 0; i < c->type->naccess; i++)
			describe(&m, c, i);
	}
	if (!range->import && (kd_load_relaxed(&range->frame->waited) ||
			       kd_value_unlinked(range->frame)))
		distrust_versions(&m);
	if (kd_load_relaxed(&net->pool->frozen.n))
		name_frozen(&m);
	for (uint32_t k = 0; k < m.data; k++)
		find_absent(&m, k, absent);
	/* one more: for the message itself */
	p->regions = kd_must(calloc(accesses + m.pieces.n + 1, sizeof(*p->regions)));
	p->staged = kd_must(calloc(accesses + m.pieces.n + 1, sizeof(*p->staged)));
	place_pieces(&m);
	for (uint32_t k = 0; k < m.data; k++)
		if (m.records[k].flags & KD_WIRE_IN)
			place_input(&m, k);
	write_message(&m);
	for (uint32_t k = 0; k < m.data; k++)
		if (m.records[k].flags & KD_WIRE_OUT)
			m.targets[p->ntargets++] = m.targets[k];
	p->targets = m.targets;
	for (uint32_t i = 0; i < p->ntargets; i++)
		p->targets[i].staged = net->survives;
	check(p, range);
	free(m.hash);
	free(m.values);
	free(m.records);
	free(m.writers);
	for (uint32_t k = 0; k < m.data; k++)
		kd_segments_free(&m.seen[k]);
	free(m.seen);
	free(m.pieces.at);
}

void kd_outgoing_expose(struct kd_outgoing *p, uint32_t thief, struct kd_wire_memory *memory_p,
			struct kd_wire_seal *seal_p)
{
	struct kd_exposed *e = &p->regions[p->nregions++];

	kd_assert(p->bytes);
	kd_exposed_add(p->net, e, p->bytes, p->size, memory_p);
	*seal_p = kd_exposed_seal(p->net, e, thief);
}

void kd_outgoing_hide(struct kd_outgoing *p)
{
	for (uint32_t i = 0; i < p->nregions; i++)
		kd_exposed_remove(p->net, &p->regions[i]);
	for (uint32_t i = 0; i < p->nstaged; i++)
		free(p->staged[i]);
	p->nregions = p->nstaged = 0;
	free(p->bytes);
	p->bytes = NULL;
}

void kd_outgoing_free(struct kd_outgoing *p)
{
	kd_outgoing_hide(p);
	for (uint32_t i = 0; i < p->ntargets; i++)
		free(p->targets[i].bytes);
	free(p->regions);
	free(p->staged);
	free(p->targets);
	memset(p, 0, sizeof(*p));
}

/* Results. */

uint64_t kd_results_most(const struct kd_outgoing *p)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < p->ntargets; i++) {
		if (p->targets[i].value.pack)
			return p->net->room;
		most += sizeof(struct kd_wire_result) + kd_min(kd_value_bytes(&p->targets[i].value),
							       (uint64_t)KD_STEAL_INLINE);
	}
	/* each is padded to 16 */
	return most + 16 * (uint64_t)p->ntargets +
	       (sizeof(uint64_t) + sizeof(uint32_t)) * p->closures + sizeof(struct kdds_failure);
}

static uint64_t target_bytes(const struct kd_target *t)
{
	const struct kd_value *v = &t->value;

	return t->gaps ? ((v->rows - 1) * v->ld + v->cols) * v->size : kd_value_bytes(v);
}

int kd_results_apply(struct kd_outgoing *p, const void *bytes, size_t size, uint32_t count,
		     void (*get)(void *arg, struct kd_target *t, const struct kd_wire_memory *from),
		     void *arg)
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
		if (t->closure && !t->staged) /* its private copy has been made */
			t->value.data = kd_closure_access(t->closure, t->access)->data;
		if (r.memory.bytes) {
			t->gaps = r.gaps == 1;
			if (t->value.pack || (r.gaps && (!t->gaps || t->staged)) ||
			    r.memory.bytes != target_bytes(t))
				return -EBADMSG;
			get(arg, t, &r.memory);
		} else {
			if (r.inline_bytes > size || KD_ROUND16(r.inline_bytes) > size ||
			    (!t->value.pack && r.inline_bytes != kd_value_bytes(&t->value)))
				return -EBADMSG;
			if (!t->staged)
				kd_value_scatter(&t->value, at, r.inline_bytes);
			at += KD_ROUND16(r.inline_bytes);
			size -= KD_ROUND16(r.inline_bytes);
		}
	}
	return size ? -EBADMSG : 0;
}

void kd_results_store(struct kd_outgoing *p, const void *bytes)
{
	const char *at = bytes;

	for (uint32_t i = 0; i < p->ntargets; i++) {
		struct kd_target *t = &p->targets[i];
		struct kd_wire_result r;

		memcpy(&r, at, sizeof(r));
		at += sizeof(r);
		if (t->closure) /* its private copy has been made */
			t->value.data = kd_closure_access(t->closure, t->access)->data;
		if (r.memory.bytes) {
			kd_value_scatter(&t->value, t->bytes, r.memory.bytes);
			free(t->bytes);
			t->bytes = NULL;
		} else {
			kd_value_scatter(&t->value, at, r.inline_bytes);
			at += KD_ROUND16(r.inline_bytes);
		}
	}
}

void *kd_target_room(struct kd_target *t)
{
	kd_assert(!t->bytes && !t->value.pack);
	if (kd_value_plain(&t->value) && !t->staged)
		return t->value.data;
	t->bytes = kd_must(malloc(target_bytes(t)));
	return t->bytes;
}

void kd_target_arrived(struct kd_target *t)
{
	const struct kd_value *v = &t->value;

	if (!t->bytes || t->staged)
		return;
	for (uint64_t r = 0; t->gaps && r < v->rows; r++)
		memcpy((char *)v->data + r * v->ld * v->size, t->bytes + r * v->ld * v->size,
		       v->cols * v->size);
	if (!t->gaps)
		kd_value_scatter(v, t->bytes, kd_value_bytes(v));
	free(t->bytes);
	t->bytes = NULL;
}
