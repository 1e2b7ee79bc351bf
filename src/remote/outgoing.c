/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/outgoing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "core/index.h"
#include "core/module.h"
#include "core/place.h"
#include "core/type.h"
#include "kdds.h"
#include "remote/balance.h"
#include "remote/copies.h"
#include "remote/net.h"
#include "remote/weigh.h"

#define KEPT_NS 1000000000u /* what may not leave the process is looked at again */

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
	if (kd_value_overlap(any) & (KD_OVERLAP_VIEWS | KD_OVERLAP_REDUCED))
		/* In another process each parameter would have a copy of its own. Even if all of
		 * them only read, another closure of the range might write one of the copies. */
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

struct making {
	struct kd_outgoing *p;
	const struct kd_range *range;
	struct kd_version epoch; /* the epoch; no writer */
	struct kd_value *values; /* by record, as are the next three */
	struct kd_wire_data *records;
	struct kd_target *targets;
	struct kdds_closure **writers; /* the last closure of the range that writes the data item */
	uint32_t *hash, mask; /* number of the record + 1, by address */
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

static int too_dear(struct kd_load_filter *f, const struct kdds_type *type)
{
	uint64_t until = kd_weigh_until(f->net, type);

	if (until <= f->now_ns || !f->now_ns)
		return 0;
	f->until_ns = kd_min(f->until_ns, until);
	f->net->counts.dear++;
	if (kd_unlikely(f->net->hooks.refused != NULL))
		f->net->hooks.refused(type);
	return 1;
}

/* The load, to which a closure of that type has just been added, is large, and no large one may go
 * now. Half of the load is inputs. */
static int too_large(struct kd_load_filter *f, const struct kdds_type *type)
{
	uint64_t bytes = f->load.bytes / 2, until;

	if (!f->now_ns)
		return 0;
	if (kd_weigh_known(f->net, type) && !kd_weigh_loses(f->net, type)) {
		if (kd_weigh_pays(f->net, type, kd_balance_ns(bytes)))
			return 0;
		f->affords = kd_balance_affords(f->net, f->thief, f->net->rank, bytes, f->now_ns);
		if (f->affords)
			return 0;
		f->until_ns = kd_min(f->until_ns, f->now_ns + kd_balance_ns(bytes));
		f->load.end = NULL;
		return 1;
	}
	if (f->load.bytes <= KD_WEIGH_SMALL)
		return 0;
	until = kd_weigh_large_until(f->net, type, f->load.bytes);
	if (until <= f->now_ns && f->large)
		return 0;
	if (until <= f->now_ns)
		f->too_large = 1;
	else
		f->until_ns = kd_min(f->until_ns, until);
	f->load.end = NULL;
	return 1;
}

static int wants(struct kd_filter *filter, const struct kdds_closure *c)
{
	struct kd_load_filter *f = (struct kd_load_filter *)filter;
	int rank = kd_place_of(f->net->pool, c);

	if (rank >= 0) /* placement.h gives it to its rank */
		return 0;
	if (!kd_outgoing_allows(f->net, c)) {
		f->until_ns = kd_min(f->until_ns, f->now_ns + KEPT_NS);
		return 0;
	}
	return !too_dear(f, c->type) && kd_load_add(f->net, &f->load, c, f->room) &&
	       !too_large(f, c->type);
}

static void reset(struct kd_filter *filter)
{
	((struct kd_load_filter *)filter)->load.end = NULL;
	((struct kd_load_filter *)filter)->affords = 0;
}

void kd_load_filter_init(struct kd_net *net, struct kd_load_filter *f, uint32_t thief,
			 uint64_t room, uint64_t now_ns)
{
	f->filter = (struct kd_filter){wants, reset};
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

/* The record of access i of c: an earlier one of the same data item in the same shape, or a
 * new one; *new_p is set accordingly. Closures that see the same memory in different shapes
 * are in one range only if none of them writes it (ready.c). */
static uint32_t record_of(struct making *m, struct kdds_closure *c, uint32_t i, int *new_p)
{
	const struct kdds_param *p = &c->type->access[i];
	struct kd_value v = kd_value_of(c, i);
	uint32_t h = (uint32_t)(((uintptr_t)v.data * 0x9e3779b97f4a7c15u) >> 32) & m->mask;

	kd_assert(2 * m->data <= m->mask + 1); /* so the hash is never full */
	*new_p = 1;
	for (; p->mode != KDDS_CW && m->hash[h]; h = (h + 1) & m->mask)
		if (kd_value_same(&m->values[m->hash[h] - 1], &v) &&
		    m->records[m->hash[h] - 1].rows == kd_value_rows(c, i)) {
			*new_p = 0;
			return m->hash[h] - 1;
		}
	if (p->mode != KDDS_CW)
		m->hash[h] = m->data + 1;
	m->values[m->data] = v;
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

/* Decides how the input of the record travels. */
static void place_input(struct making *m, uint32_t k, kd_outgoing_retains *retains)
{
	struct kd_wire_memory memory;
	struct kd_outgoing *p = m->p;
	struct kd_wire_data *d = &m->records[k];
	const struct kd_value *v = &m->values[k];

	d->bytes = kd_value_bytes(v);
	if (d->bytes <= KD_STEAL_INLINE) {
		d->flags |= KD_WIRE_INLINE;
		d->at = m->inline_bytes;
		m->inline_bytes += KD_ROUND16(d->bytes);
	} else if (retains && retains(p->net, v, &memory)) {
		d->flags |= KD_WIRE_RETAINED;
		d->at = memory.addr;
		d->key = memory.key;
	} else if (kd_value_plain(v)) {
		expose(p, v->data, d->bytes, &d->at, &d->key);
		if (!(d->flags & KD_WIRE_OUT))
			place_origin(p->net, v, d);
	} else {
		char *staged = kd_must(malloc(d->bytes));

		p->staged[p->nstaged++] = (struct kd_staged){*v, staged};
		kd_value_gather(v, staged);
		expose(p, staged, d->bytes, &d->at, &d->key);
	}
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
					   .rows = kd_value_rows(c, i)};
		if (p->mode == KDDS_CW)
			d->flags |= KD_WIRE_REDUCE;
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
 * and no link tells. So what a record reads is a version of its own. */
static void distrust_versions(struct making *m)
{
	for (uint32_t k = 0; k < m->data; k++)
		m->records[k].version[2] = (uint64_t)m->epoch.link_base << 32 |
					   (link_name(m, first_of(m->range)) & ~1u);
}

/* The closure as it travels. One that belongs to its rank may not go on from there. */
static void write_closure(struct making *m, struct kdds_closure *c, char *to, uint32_t *next)
{
	struct kdds_closure *copy = (struct kdds_closure *)to;
	uint64_t name = kd_type_name(c->type);

	memcpy(to, c, c->bytes);
	memcpy(to, &name, sizeof(name));
	copy->state = 0;
	if (m->range->stays)
		copy->attr = (c->attr & (KDDS_PRIORITY_HIGH | KDDS_PRIORITY_LOW)) | KDDS_LOCAL;
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
			kd_assert(!fresh);
		}
		kd_assert(record < m->data);
		memcpy(&a->a.data, &record, sizeof(record));
		a->a.w = a->a.p = 0;
		if (c->type->access[i].array)
			a->shape.pack = NULL;
	}
}

static void write_message(struct making *m)
{
	size_t records = KD_ROUND16(m->data * sizeof(*m->records));
	struct kd_wire_steal head = {.data = m->data, .closures = m->closures,
				       .inline_bytes = (uint32_t)m->inline_bytes,
				       .closure_bytes = (uint32_t)m->closure_bytes,
				       .independent = m->range->independent};
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

	kd_assert(p->size == sizeof(*head) + KD_ROUND16(head->data * sizeof(*d)) +
				     head->inline_bytes + head->closure_bytes);
	kd_assert(p->size <= KD_STEAL_BYTES && head->closures <= KD_STEAL_CLOSURES);
	for (uint32_t k = 0; k < head->data; k++, d++) {
		if (d->flags & KD_WIRE_INLINE) {
			kd_assert(d->flags & KD_WIRE_IN && !(d->flags & KD_WIRE_RETAINED));
			kd_assert(d->at % 16 == 0 && d->at <= head->inline_bytes);
			kd_assert(KD_ROUND16(d->bytes) <= head->inline_bytes - d->at);
		} else if (d->flags & KD_WIRE_RETAINED) {
			kd_assert(d->flags & KD_WIRE_IN);
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
	kd_assert(outs == p->ntargets && regions == p->nregions && p->nstaged <= regions);
	d = (const void *)(head + 1);
	for (struct kdds_closure *c = first_of(range); (char *)c < range->end; c = after(c)) {
		kd_assert(kd_closure_at(at)->bytes == c->bytes && !kd_closure_at(at)->state);
		for (uint32_t i = 0; i < c->type->naccess; i++) {
			uint64_t record;

			memcpy(&record, at + c->type->access[i].offset, sizeof(record));
			kd_assert(record < head->data);
			kd_assert(d[record].addr == (uintptr_t)kd_closure_access(c, i)->data);
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
		    kd_outgoing_retains *retains)
{
	struct making m = {.p = p, .range = range};
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
	/* one more: for the message itself */
	p->regions = kd_must(calloc(accesses + 1, sizeof(*p->regions)));
	p->staged = kd_must(calloc(accesses + 1, sizeof(*p->staged)));
	for (struct kdds_closure *c = first_of(range); (char *)c < range->end; c = after(c))
		for (uint32_t i = 0; i < c->type->naccess; i++)
			describe(&m, c, i);
	if (!range->import && kd_load_relaxed(&range->frame->waited))
		distrust_versions(&m);
	for (uint32_t k = 0; k < m.data; k++)
		if (m.records[k].flags & KD_WIRE_IN)
			place_input(&m, k, retains);
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
}

void kd_outgoing_expose(struct kd_outgoing *p, struct kd_wire_memory *memory_p,
		      struct kd_wire_seal *seal_p)
{
	struct kd_exposed *e = &p->regions[p->nregions++];

	kd_assert(p->bytes);
	kd_exposed_add(p->net, e, p->bytes, p->size, memory_p);
	*seal_p = kd_exposed_seal(p->net, e);
}

void kd_outgoing_hide(struct kd_outgoing *p)
{
	for (uint32_t i = 0; i < p->nregions; i++)
		kd_exposed_remove(p->net, &p->regions[i]);
	for (uint32_t i = 0; i < p->nstaged; i++)
		free(p->staged[i].bytes);
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
			if (t->value.pack || r.memory.bytes != kd_value_bytes(&t->value))
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
	t->bytes = kd_must(malloc(kd_value_bytes(&t->value)));
	return t->bytes;
}

void kd_target_arrived(struct kd_target *t)
{
	if (!t->bytes || t->staged)
		return;
	kd_value_scatter(&t->value, t->bytes, kd_value_bytes(&t->value));
	free(t->bytes);
	t->bytes = NULL;
}
