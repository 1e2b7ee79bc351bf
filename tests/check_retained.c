/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/remote/retained.c, with an engine of the test's own: values are found by the
 * memory that they overlap, tiles that lie between each other included, in whatever order they come
 * and go. A closure goes to the rank that has most of its data; what it needs elsewhere is read
 * once, however many wait for it; what it overwrites is not read, unless it reads a part of it;
 * kdds_sync does not read what a closure under way overwrites. FREE is sent when nothing of an
 * import is left, and not while a steal message names it.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/os.h"
#include "core/closure.h"
#include "core/place.h"
#include "core/remote.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/retained.h"

#define N 1000
#define READS 16

struct kd_env kd_env;
static struct kd_net net;
static struct kd_pool pool;
static struct kd_worker worker;
static long x[N], y[N], z[N];

static struct kd_read *reads[READS];
static unsigned nreads, frees, here;

void kd_read_start(struct kd_net *n, struct kd_read *r)
{
	ck_assert_ptr_eq(n, &net);
	ck_assert_uint_lt(nreads, READS);
	reads[nreads++] = r;
}

static int direct;

int kd_comm_direct(struct kd_comm *c, uint32_t rank)
{
	(void)c;
	return direct && rank;
}

static void reads_end(void)
{
	while (nreads) {
		struct kd_read *r = reads[--nreads];

		r->arrived(r);
	}
}

struct kd_wire_head *kd_peer_message(unsigned kind, size_t bytes)
{
	ck_assert_uint_eq(kind, KD_WIRE_FREE);
	return calloc(1, sizeof(struct kd_wire_head) + bytes);
}

void kd_peer_send_with_next(struct kd_net *n, uint32_t to, struct kd_wire_head *m)
{
	ck_assert(n == &net && to);
	frees++;
	free(m);
}

void *kd_target_room(struct kd_target *t)
{
	return t->value.data;
}

void kd_target_arrived(struct kd_target *t)
{
	(void)t;
}

void kd_net_help(struct kd_remote *r, struct kd_worker *w, int ask, const char *closure)
{
	ck_assert(r == &net.remote && w == &worker && !ask && !closure);
	pthread_mutex_lock(&net.lock);
	reads_end();
	pthread_mutex_unlock(&net.lock);
}

void kd_net_leave(struct kd_remote *r, struct kd_worker *w)
{
	(void)r;
	(void)w;
}

void kd_place_begin(struct kd_pool *p)
{
	(void)p;
}

void kd_os_yield(void) {}

void kd_os_wait(uint32_t *word, uint32_t expected, uint64_t ns)
{
	(void)word;
	(void)expected;
	(void)ns;
}

void kd_os_wake(uint32_t *word, int n)
{
	(void)word;
	(void)n;
}

static void setup(void)
{
	memset(&net, 0, sizeof(net));
	pthread_mutex_init(&net.lock, NULL);
	net.pool = &pool;
	net.size = 4;
	pool.remote = &net.remote;
	pool.retained = 0;
	kd_env.cache = 1 << 20;
	nreads = frees = here = 0;
	kd_retained_start(&net);
	pthread_mutex_lock(&net.lock);
}

static void teardown(void)
{
	kd_retained_stop(&net);
	ck_assert_uint_eq(pool.retained, 0);
	pthread_mutex_unlock(&net.lock);
	pthread_mutex_destroy(&net.lock);
}

static struct kd_value array(long *at, size_t n)
{
	return (struct kd_value){at, 1, n, n, sizeof(*at), NULL};
}

static struct kd_value tile(long *at, size_t rows, size_t cols, size_t ld)
{
	return (struct kd_value){at, rows, cols, ld, sizeof(*at), NULL};
}

static struct kd_retained_import *import_of(uint32_t rank)
{
	struct kd_retained_import *of = malloc(sizeof(*of));

	*of = (struct kd_retained_import){.net = &net, .rank = rank};
	return of;
}

static void add(struct kd_retained_import *of, struct kd_value v)
{
	const struct kd_wire_memory m = {1, 2, v.rows * v.cols * v.size};

	kd_retained_add(of, &v, &m, 0);
}

/* A closure with up to three arrays. */
static struct {
	struct kdds_closure c;
	struct kdds_access_array a[3];
} closure kd_aligned(16);
static struct kdds_param params[3];
static struct kdds_type type;

static struct kdds_closure *uses(uint32_t n, const struct kd_value *v, const uint32_t *modes)
{
	type = (struct kdds_type){.size = sizeof(closure), .naccess = n, .access = params};
	closure.c = (struct kdds_closure){.type = &type, .bytes = sizeof(closure)};
	for (uint32_t i = 0; i < n; i++) {
		params[i] = (struct kdds_param){
			.offset = (uint32_t)((char *)&closure.a[i] - (char *)&closure),
			.mode = (uint8_t)modes[i], .array = 1, .size = sizeof(long)};
		closure.a[i].a.data = v[i].data;
		closure.a[i].shape = (struct kdds_shape){v[i].rows, v[i].cols, v[i].ld, v[i].pack};
	}
	return &closure.c;
}

static int residence(const struct kdds_closure *c)
{
	return kd_retained_residence(&net.remote, c, 0);
}

static int elsewhere(struct kd_value v)
{
	return kd_retained_elsewhere(&net.remote, &v);
}

static void all_here(struct kd_need *need)
{
	(void)need;
	here++;
}

/* Returns how many values it waits for. */
static uint32_t need(struct kdds_closure *c, uint32_t to, struct kd_need *n)
{
	const struct kd_range range = {.begin = (char *)c, .end = (char *)c + c->bytes};

	*n = (struct kd_need){0, all_here};
	kd_retained_need(&net, &range, to, n);
	return n->left;
}

static void bring(const struct kd_value *v)
{
	pthread_mutex_unlock(&net.lock);
	kd_retained_bring(&net.remote, &worker, v, 0);
	pthread_mutex_lock(&net.lock);
}

START_TEST(overlaps)
{
	struct kd_retained_import *of = import_of(1);

	add(of, array(x + 100, 100));
	add(of, tile(y, 10, 5, 20));
	ck_assert(elsewhere(array(x + 199, 1)) && elsewhere(array(x, N)));
	ck_assert(!elsewhere(array(x, 100)) && !elsewhere(array(x + 200, 100)));
	ck_assert(elsewhere(tile(y, 10, 20, 20)) && elsewhere(tile(y + 4, 3, 2, 20)));
	ck_assert(!elsewhere(tile(y + 5, 10, 15, 20)) && !elsewhere(array(y + 5, 15)));
	ck_assert(!elsewhere(array(x + 150, 0)));
}
END_TEST

/* Two results with different strides, between each other's rows, which two ranks have made at the
 * same time, stay both. Who waits for one does not read the other, which its rank may be
 * changing. */
START_TEST(strides_apart)
{
	struct kd_value a = tile(x, 8, 10, 64), b = tile(x + 10, 16, 10, 32);

	add(import_of(1), a);
	kd_retained_overwrite(&net, &b);
	ck_assert(elsewhere(a) && !elsewhere(b) && !frees);
	add(import_of(2), b);
	kd_retained_lend(&net, &a);
	bring(&b);
	ck_assert(elsewhere(a) && !elsewhere(b) && frees == 1);
	kd_retained_overwrite(&net, &a);
	ck_assert(!elsewhere(a) && frees == 2);
}
END_TEST

/* Tiles of a matrix come and go; what a tile or a row overlaps is what a list says. */
START_TEST(random_tiles)
{
	int in[5][5] = {{0}};

	srand((unsigned)_i);
	for (int step = 0; step < 300; step++) {
		int r = rand() % 5, c = rand() % 5, row = rand() % 30, expected = 0;
		struct kd_value t = tile(x + r * 6 * 30 + c * 6, 6, 6, 30);

		ck_assert_int_eq(elsewhere(t), in[r][c]);
		if (in[r][c])
			kd_retained_overwrite(&net, &t);
		else
			add(import_of(1 + (uint32_t)rand() % 3), t);
		in[r][c] ^= 1;
		for (int k = 0; k < 5; k++)
			expected |= in[row / 6][k];
		ck_assert_int_eq(elsewhere(array(x + row * 30, 30)), expected);
	}
}
END_TEST

START_TEST(where)
{
	const uint32_t read2[] = {KDDS_R, KDDS_R, KDDS_R}, sum[] = {KDDS_CW, KDDS_CW, KDDS_CW};
	const uint32_t write[] = {KDDS_R, KDDS_W, KDDS_W};
	struct kd_value v[] = {array(x, N), array(y, N), array(z, 10)};

	ck_assert_int_eq(residence(uses(3, v, read2)), -1);
	add(import_of(1), v[0]);
	ck_assert_int_eq(residence(uses(2, v, read2)), 1);
	ck_assert_int_eq(kd_retained_residence(&net.remote, uses(2, v, read2), 1), 0);
	ck_assert_int_eq(residence(uses(1, v, sum)), -1);
	ck_assert_int_eq(residence(uses(3, v, write)), 1);
	add(import_of(2), v[2]);
	ck_assert_int_eq(residence(uses(3, v, read2)), 1); /* has more */
	v[0] = array(x, N / 2);
	ck_assert_int_eq(residence(uses(1, v, read2)), 1); /* of a part, too */
	v[0] = array(z, 10);
	ck_assert_int_eq(residence(uses(2, v, read2)), 0); /* has too little */
}
END_TEST

/* A tile that is updated again and again stays where it is, whatever the update reads. */
START_TEST(where_it_writes)
{
	const uint32_t update[] = {KDDS_R, KDDS_R, KDDS_RW};
	struct kd_value v[] = {array(x, 100), array(y, 100), array(z, 100)};

	add(import_of(1), v[0]);
	add(import_of(1), v[1]);
	ck_assert_int_eq(residence(uses(3, v, update)), 1); /* z is here */
	add(import_of(2), v[2]);
	ck_assert_int_eq(residence(uses(3, v, update)), 2);
	v[2] = array(z, 10);
	kd_retained_overwrite(&net, &v[2]);
	add(import_of(2), v[2]);
	ck_assert_int_eq(residence(uses(3, v, update)), 1); /* has too little of what it reads */
}
END_TEST

START_TEST(reads_once)
{
	const uint32_t modes[] = {KDDS_R, KDDS_RW, KDDS_R};
	struct kd_value v[] = {array(x, 100), array(y, 100), array(z, 100)};
	struct kd_need first, second;

	add(import_of(1), array(x, 200));
	add(import_of(2), v[1]);
	add(import_of(1), v[2]);
	/* z is there, and y is read from rank 2 */
	ck_assert_uint_eq(need(uses(3, v, modes), 1, &first), 1);
	ck_assert_uint_eq(need(uses(2, v, modes), 0, &second), 2);
	ck_assert_uint_eq(nreads, 2);
	ck_assert(!here && !frees);
	reads_end();
	ck_assert(here == 2 && frees == 1); /* x has been read only, so it stays there, too */
	ck_assert(elsewhere(v[0]) && !elsewhere(v[1]) && elsewhere(v[2]));
	ck_assert_int_eq(residence(uses(1, v, modes)), -1);
	ck_assert_uint_eq(need(uses(1, v, modes), 0, &second), 0);
}

/* What is read of a value is read once, and the rest when it is needed. */
START_TEST(reads_parts)
{
	const uint32_t read[] = {KDDS_R}, write[] = {KDDS_W};
	struct kd_value t = tile(x, 10, 8, 20), rows = tile(x, 3, 8, 20), one = array(x, 8);
	struct kd_value column = tile(x + 2, 10, 2, 20);
	struct kd_need n, m;

	add(import_of(1), t);
	ck_assert_uint_eq(need(uses(1, &one, read), 0, &n), 1);
	ck_assert(nreads == 1 && reads[0]->to == x && reads[0]->from.bytes == sizeof(long) * 8);
	ck_assert_uint_eq(need(uses(1, &one, read), 0, &m), 1); /* the same read */
	ck_assert_uint_eq(nreads, 1);
	reads_end();
	ck_assert_uint_eq(here, 2);
	ck_assert_int_eq(residence(uses(1, &one, read)), -1);
	ck_assert_int_eq(residence(uses(1, &rows, read)), 1);
	ck_assert_uint_eq(need(uses(1, &rows, read), 0, &n), 1); /* rows 1 and 2 */
	ck_assert(nreads == 1 && reads[0]->from.addr == 1 + sizeof(long) * 8 &&
		  reads[0]->from.bytes == sizeof(long) * 16 && reads[0]->to != x + 20);
	memset(reads[0]->to, 7, sizeof(long) * 16);
	reads_end();
	ck_assert(!x[19] && x[20] && x[27] && !x[28] && x[40] && x[47] && !x[48]);
	ck_assert_uint_eq(need(uses(1, &column, read), 0, &n), 1); /* of the other rows */
	ck_assert(nreads == 1 && reads[0]->from.addr == 1 + sizeof(long) * 26 &&
		  reads[0]->from.bytes == sizeof(long) * (6 * 8 + 2));
	reads_end();
	ck_assert(elsewhere(t) && !frees);
	ck_assert_uint_eq(need(uses(1, &one, write), 0, &n), 1); /* all that is not here */
	ck_assert_uint_gt(nreads, 0);
	reads_end();
	ck_assert(!elsewhere(t) && frees == 1);
	memset(x, 0, sizeof(x));
}
END_TEST

/* Rows of 16 KB arrive in place, one by one, if the kernel copies them and they are not many. */
START_TEST(wide_rows)
{
	static long wide[2049 * 2100];
	const uint32_t read[] = {KDDS_R};
	struct kd_value t = tile(wide, _i < 2 ? 3 : 2049, 2048, 2100);
	struct kd_need n;
	unsigned rows = 0;

	direct = _i > 0;
	add(import_of(1), t);
	ck_assert_uint_eq(need(uses(1, &t, read), 0, &n), 1);
	ck_assert_uint_eq(nreads, _i == 1 ? 3 : 1);
	for (unsigned i = 0; _i == 1 && i < nreads; i++) {
		size_t row = (size_t)((long *)reads[i]->to - wide) / 2100;

		rows |= 1u << row;
		ck_assert(reads[i]->to == wide + row * 2100);
		ck_assert_uint_eq(reads[i]->from.addr, 1 + row * 16384);
		ck_assert_uint_eq(reads[i]->from.bytes, 16384);
	}
	ck_assert_uint_eq(rows, _i == 1 ? 7 : 0);
	reads_end();
	ck_assert_uint_eq(here, 1);
}
END_TEST

/* When there are too many, those that are here, too, are given up. */
START_TEST(given_up)
{
	static struct kd_stack main_stack;
	struct kd_range in_main = {.from = &main_stack};
	const uint32_t read[] = {KDDS_R};
	struct kd_value v = array(x, 100), w = array(y, 100);
	struct kd_need n;

	add(import_of(1), v);
	add(import_of(1), w);
	ck_assert(!kd_retained_may(&net, &in_main, &v, 1, (1 << 20) - 800));
	ck_assert_uint_eq(need(uses(1, &v, read), 0, &n), 1);
	ck_assert(!kd_retained_may(&net, &in_main, &v, 1, (1 << 20) - 800));
	reads_end();
	ck_assert(elsewhere(v) && !frees);
	ck_assert(kd_retained_may(&net, &in_main, &v, 1, (1 << 20) - 800));
	ck_assert(!elsewhere(v) && elsewhere(w) && frees == 1);
}
END_TEST

/* Each rank has room of its own. To make it, only its values are given up. */
START_TEST(room_by_rank)
{
	static struct kd_stack main_stack;
	struct kd_range in_main = {.from = &main_stack};
	const uint32_t read[] = {KDDS_R};
	struct kd_value v = array(x, 100), w = array(y, 100);
	struct kd_need n;

	add(import_of(2), w);
	add(import_of(1), v);
	need(uses(1, &w, read), 0, &n);
	need(uses(1, &v, read), 0, &n);
	reads_end();
	ck_assert(kd_retained_may(&net, &in_main, &v, 3, 1 << 20));
	ck_assert(elsewhere(v) && elsewhere(w));
	ck_assert(kd_retained_may(&net, &in_main, &v, 1, 1 << 20));
	ck_assert(!elsewhere(v) && elsewhere(w) && frees == 1);
}
END_TEST

/* With memory to spare the ranks say how much they retain. One that has no more gives up what is
 * here, too, and no other does. */
START_TEST(spared)
{
	static struct kd_stack main_stack;
	struct kd_range in_main = {.from = &main_stack};
	const uint32_t read[] = {KDDS_R};
	struct kd_value v = array(x, 100), w = array(y, 100), u = array(x + 200, 100);
	struct kd_need n;

	net.spare.ranks = 2;
	add(import_of(2), w);
	add(import_of(1), v);
	add(import_of(1), u);
	need(uses(1, &w, read), 0, &n);
	need(uses(1, &v, read), 0, &n);
	reads_end();
	ck_assert(kd_retained_may(&net, &in_main, &v, 1, 1ull << 40));
	kd_retained_shrink(&net, 1);
	ck_assert(elsewhere(v) && elsewhere(w) && elsewhere(u) && !frees);
	kd_env.cache = 0;
	kd_retained_shrink(&net, 1);
	ck_assert(!elsewhere(v) && elsewhere(w) && elsewhere(u) && frees == 1);
	net.spare.ranks = 0;
}
END_TEST

START_TEST(overwritten)
{
	const uint32_t write[] = {KDDS_W}, both[] = {KDDS_W, KDDS_R};
	struct kd_value v[] = {array(x, 100), array(x + 50, 10)};
	struct kd_need n;

	add(import_of(1), v[0]);
	ck_assert_uint_eq(need(uses(1, v, write), 1, &n), 0); /* replaced there */
	ck_assert(elsewhere(v[0]));
	ck_assert_uint_eq(need(uses(2, v, both), 0, &n), 2); /* both accesses wait for one read */
	ck_assert_uint_eq(nreads, 1);
	reads_end();
	add(import_of(1), v[0]);
	ck_assert_uint_eq(need(uses(2, v, both), 2, &n), 1); /* of a part */
	reads_end();
	add(import_of(1), v[0]);
	ck_assert_uint_eq(need(uses(1, v, write), 0, &n), 0);
	ck_assert(!elsewhere(v[0]) && !nreads && frees == 3);
	add(import_of(1), v[0]);
	ck_assert_uint_eq(need(uses(1, v + 1, write), 1, &n), 1); /* the rest is needed */
	reads_end();
}
END_TEST

/* A third rank reads the value where it is, and then overwrites it: it stays there until then, and
 * nobody else reads it. */
START_TEST(read_where_it_is)
{
	static struct kdds_type types[2];
	static struct kdds_param each[2];
	static struct {
		struct kdds_closure c;
		struct kdds_access_array a;
	} c[2] kd_aligned(16);
	const struct kd_range range = {.begin = (char *)c, .end = (char *)(c + 2)};
	const uint32_t read[] = {KDDS_R};
	struct kd_value v = array(x, 100);
	struct kd_wire_memory m;
	struct kd_need n = {0, all_here};
	struct kd_retained_import *of;

	for (int i = 0; i < 2; i++) {
		types[i] = (struct kdds_type){.size = sizeof(*c), .naccess = 1, .access = &each[i]};
		each[i] = (struct kdds_param){.offset = sizeof(c->c), .array = 1,
					      .mode = i ? KDDS_W : KDDS_R, .size = sizeof(long)};
		c[i].c = (struct kdds_closure){.type = &types[i], .bytes = sizeof(*c)};
		c[i].a.a.data = v.data;
		c[i].a.shape = (struct kdds_shape){v.rows, v.cols, v.ld, NULL};
	}
	add(import_of(1), v);
	ck_assert_uint_eq(need(uses(1, &v, read), 2, &n), 0);
	kd_retained_need(&net, &range, 2, &n);
	ck_assert(!n.left && elsewhere(v));
	of = kd_retained_at(&net, &v, 1, &m);
	ck_assert_uint_eq(of->rank, 1);
	kd_retained_lend(&net, &v);
	bring(NULL);
	ck_assert(elsewhere(v) && !frees);
	kd_retained_overwrite(&net, &v);
	ck_assert(!elsewhere(v) && !frees); /* it is borrowed */
	kd_retained_return(of);
	ck_assert_uint_eq(frees, 1);
}
END_TEST

START_TEST(borrowed)
{
	struct kd_retained_import *of = import_of(1), *lent;
	struct kd_value v = array(x, 100), part = array(x, 50);
	struct kd_wire_memory m;
	struct kd_need n;
	const uint32_t read[] = {KDDS_R}, write[] = {KDDS_W}, update[] = {KDDS_RW};

	add(of, v);
	ck_assert(!kd_retained_at(&net, &part, 1, &m));
	lent = kd_retained_at(&net, &v, 1, &m);
	ck_assert(lent == of && m.addr == 1 && m.key == 2);
	ck_assert_uint_eq(need(uses(1, &v, write), 0, &n), 0); /* nobody reads it any more */
	ck_assert(!kd_retained_at(&net, &v, 1, &m) && !frees);
	add(of = import_of(1), v);
	ck_assert_uint_eq(need(uses(1, &v, update), 0, &n), 1);
	ck_assert(!kd_retained_at(&net, &v, 1, &m)); /* it is being read, and leaves */
	ck_assert_uint_eq(need(uses(1, &v, read), 1, &n), 1);
	reads_end();
	ck_assert(!elsewhere(v) && frees == 1);
	kd_retained_return(lent);
	ck_assert_uint_eq(frees, 2);
}
END_TEST

/* Pack functions read the memory here. */
START_TEST(packed)
{
	static const struct kdds_pack pack;
	const uint32_t read[] = {KDDS_R};
	struct kd_value v = array(x, 100), p = v;
	struct kd_need n;

	p.pack = &pack;
	add(import_of(1), v);
	ck_assert_uint_eq(need(uses(1, &p, read), 1, &n), 1);
	reads_end();
	ck_assert(!elsewhere(v) && frees == 1);
}
END_TEST

START_TEST(brought)
{
	struct kd_value v = array(x, 100), w = array(y, 100), part = array(x + 99, 10);

	add(import_of(1), v);
	add(import_of(1), w);
	kd_retained_lend(&net, &w);
	bring(&part);
	ck_assert(!elsewhere(v) && elsewhere(w));
	add(import_of(2), v);
	bring(NULL);
	ck_assert(!elsewhere(v) && elsewhere(w)); /* a closure on its way overwrites w */
	pthread_mutex_unlock(&net.lock);
	kd_retained_gone(&net.remote, &worker, y, sizeof(y));
	pthread_mutex_lock(&net.lock);
	ck_assert(!elsewhere(w) && frees == 3);
}
END_TEST

START_TEST(may_stay)
{
	static struct kd_stack main_stack, other;
	struct kd_range in_main = {.from = &main_stack}, deep = {.from = &other};
	struct kd_value v = array(x, 100);

	ck_assert(kd_retained_may(&net, &in_main, &v, 1, 800));
	ck_assert(kd_retained_may(&net, &deep, &v, 1, 800));
	ck_assert(!kd_retained_may(&net, &in_main, &v, 1, (1 << 20) + 1));
	add(import_of(1), array(y, 100));
	ck_assert(!kd_retained_may(&net, &in_main, &v, 1, (1 << 20) - 800 + 1));
	other.arena = (char *)x;
	other.base.arena_end = (char *)(x + N);
	ck_assert(!kd_retained_may(&net, &deep, &v, 1, 800));
	other.base.arena_end = other.arena;
	other.range.import = (void *)x;
	ck_assert(!kd_retained_may(&net, &deep, &v, 1, 800));
	net.survives = 1;
	ck_assert(!kd_retained_may(&net, &in_main, &v, 1, 800));
	net.survives = 0;
	net.rank = 1;
	ck_assert(!kd_retained_may(&net, &in_main, &v, 1, 800));
	net.rank = 0;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("retained");
	TCase *tcase = tcase_create("retained");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, overlaps);
	tcase_add_test(tcase, strides_apart);
	tcase_add_loop_test(tcase, random_tiles, 0, 20);
	tcase_add_test(tcase, where);
	tcase_add_test(tcase, where_it_writes);
	tcase_add_test(tcase, reads_once);
	tcase_add_test(tcase, reads_parts);
	tcase_add_loop_test(tcase, wide_rows, 0, 3);
	tcase_add_test(tcase, given_up);
	tcase_add_test(tcase, room_by_rank);
	tcase_add_test(tcase, spared);
	tcase_add_test(tcase, overwritten);
	tcase_add_test(tcase, read_where_it_is);
	tcase_add_test(tcase, borrowed);
	tcase_add_test(tcase, packed);
	tcase_add_test(tcase, brought);
	tcase_add_test(tcase, may_stay);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
