/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/remote/copies.c: a copy is found under its name and version and under no other. A
 * copy that is about to be written is no longer found, and its other users keep their bytes. A
 * newer version replaces unused older ones. When there are more than KDDS_CACHE bytes of unused
 * copies, the oldest are evicted first; copies in use are never evicted. A copy that is claimed is
 * written in place, whoever else has it. A copy that is held is found by its address. Of other
 * versions and of parts that overlap the cache recalls the bytes. The last test performs random
 * operations and compares with a list of what the cache must contain.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "kdds/inline.h"
#include "remote/copies.h"

static const struct kd_data_name name = {
	.addr = 0x1000, .rows = 1, .cols = 100, .ld = 100, .size = 8, .rank = 3};

static struct kd_version version(uint64_t gen, uint32_t writer)
{
	return (struct kd_version){gen, 5, 6, writer};
}

static struct kd_copies copies;
static unsigned refused; /* so many of the next requests for a copy's memory fail */

void *aligned_alloc(size_t alignment, size_t size)
{
	void *p;

	if (refused) {
		refused--;
		return NULL;
	}
	return posix_memalign(&p, alignment, size) ? NULL : p;
}

static void setup(void)
{
	kd_env.cache = 1 << 20;
}

static void teardown(void)
{
	kd_copies_stop(&copies);
}

static struct kd_copy *make(const struct kd_data_name *n, uint64_t size, const struct kd_version *v,
			    char fill)
{
	struct kd_copy *c = kd_copy_create(&copies, n, size);

	ck_assert_ptr_nonnull(c);
	ck_assert_uint_eq((uintptr_t)c->bytes % 64, 0);
	memset(c->bytes, fill, size);
	kd_copy_keep(c, v);
	return c;
}

START_TEST(found)
{
	struct kd_version v = version(1, 2), w;
	struct kd_copy *c = make(&name, 800, &v, 1), *d;
	struct kd_data_name n;

	d = kd_copy_find(&copies, &name, &v);
	ck_assert_ptr_eq(c, d);
	kd_copy_release(d);
	kd_copy_release(c);
	d = kd_copy_find(&copies, &name, &v);
	ck_assert_ptr_eq(c, d);
	kd_copy_release(d);
#define OTHER(what, field)                                  \
	what.field++;                                       \
	ck_assert_ptr_null(kd_copy_find(&copies, &n, &w)); \
	what.field--
	n = name;
	w = v;
	OTHER(w, gen);
	OTHER(w, head);
	OTHER(w, link_base);
	OTHER(w, writer);
	OTHER(n, addr);
	OTHER(n, rows);
	OTHER(n, cols);
	OTHER(n, ld);
	OTHER(n, size);
	OTHER(n, rank);
	d = kd_copy_find(&copies, &n, &w);
	ck_assert_ptr_eq(c, d);
	kd_copy_release(d);
	ck_assert_uint_eq(copies.counts.hits, 3);
	ck_assert_uint_eq(copies.counts.misses, 10);
}
END_TEST

/* The task that gets the copy may rely on the alignment of the original. */
START_TEST(aligned)
{
	struct kd_version v = version(1, 2);
	struct kd_data_name n = name;

	for (n.addr = 8; n.addr <= 2 * KD_ALIGN_MAX; n.addr *= 2) {
		struct kd_copy *c = make(&n, 800, &v, 1), *fresh;

		kd_copy_find(&copies, &n, &v);
		fresh = kd_copy_write(c);
		ck_assert_ptr_ne(fresh, c);
		ck_assert_uint_eq((uintptr_t)c->bytes % kd_min(n.addr, KD_ALIGN_MAX), 0);
		ck_assert_uint_eq((uintptr_t)fresh->bytes % kd_min(n.addr, KD_ALIGN_MAX), 0);
		kd_copy_release(fresh);
		kd_copy_release(c);
	}
}
END_TEST

START_TEST(written)
{
	struct kd_version v = version(1, 2), next = version(1, 3);
	struct kd_copy *reader = make(&name, 800, &v, 1);
	struct kd_copy *writer = kd_copy_find(&copies, &name, &v), *fresh,
		       *d;

	/* Two users: the writer gets a copy of its own. */
	fresh = kd_copy_write(writer);
	ck_assert_ptr_ne(fresh, reader);
	ck_assert_int_eq(((char *)fresh->bytes)[799], 1);
	memset(fresh->bytes, 2, 800);
	d = kd_copy_find(&copies, &name, &v);
	ck_assert_ptr_eq(d, reader);
	ck_assert_int_eq(((char *)d->bytes)[0], 1);
	kd_copy_release(d);
	kd_copy_keep(fresh, &next);
	kd_copy_release(fresh);
	kd_copy_release(reader);
	/* One user: it writes in place, and the old version is no longer found. */
	d = kd_copy_find(&copies, &name, &next);
	ck_assert_ptr_eq(d, fresh);
	ck_assert_ptr_eq(kd_copy_write(d), d);
	ck_assert_ptr_null(kd_copy_find(&copies, &name, &next));
	kd_copy_release(d);
	ck_assert_ptr_null(kd_copy_find(&copies, &name, &next));
}
END_TEST

START_TEST(claimed)
{
	struct kd_version v = version(1, 2), next = version(1, 3);
	struct kd_copy *keeper = make(&name, 800, &v, 1), *c = kd_copy_find(&copies, &name, &v);

	ck_assert_ptr_eq(kd_copy_claim(c), keeper);
	ck_assert_ptr_null(kd_copy_find(&copies, &name, &v));
	/* Its memory belongs to nobody else: it is neither found, nor reused when the writer
	 * releases it. */
	ck_assert_ptr_ne(make(&name, 800, &v, 7), c);
	memset(c->bytes, 2, 800);
	kd_copy_keep(c, &next);
	kd_copy_release(keeper);
	ck_assert_ptr_eq(kd_copy_find(&copies, &name, &next), c);
	ck_assert_int_eq(((char *)c->bytes)[799], 2);
	kd_copy_release(c);
	kd_copy_release(c);
	/* A claimed copy that never became a version is freed by its last user. */
	c = kd_copy_claim(kd_copy_find(&copies, &name, &next));
	kd_copy_release(c);
	ck_assert_ptr_null(kd_copy_find(&copies, &name, &next));
}
END_TEST

/* What a rank retains is found by its address, in whole, as long as one import holds it; whatever
 * its name and version are, and whoever writes it in place. */
START_TEST(held)
{
	struct kd_version v = version(1, 2);
	struct kd_copy *c = make(&name, 800, &v, 1), *other = make(&name, 800, &v, 2);
	struct kd_copy_held first, second;
	const struct kd_copy_held *found;
	uint64_t at = (uintptr_t)c->bytes;

	ck_assert_ptr_null(kd_copy_held(&copies, at, 800));
	kd_copy_hold(c, &first, c->bytes, 800, 800);
	ck_assert_ptr_null(kd_copy_held(&copies, at, 799));
	ck_assert_ptr_null(kd_copy_held(&copies, at, 801));
	ck_assert_ptr_null(kd_copy_held(&copies, at + 8, 792));
	ck_assert_ptr_null(kd_copy_held(&copies, (uintptr_t)other->bytes, 800));
	found = kd_copy_held(&copies, at, 800);
	ck_assert(found == &first && found->copy == c);
	ck_assert_uint_eq(copies.counts.hits, 1);
	ck_assert_uint_eq(copies.counts.hit_bytes, 800);
	/* a second import updates it and holds it, too; then the first ends */
	ck_assert_ptr_eq(kd_copy_claim(c), c);
	kd_copy_hold(c, &second, c->bytes, 800, 800);
	kd_copy_let_go(&first);
	kd_copy_release(c);
	ck_assert_ptr_eq(kd_copy_held(&copies, at, 800), &second);
	kd_copy_release(c);
	kd_copy_let_go(&second);
	ck_assert_ptr_null(kd_copy_held(&copies, at, 800));
	kd_copy_release(c);
	kd_copy_release(other);
}
END_TEST

/* No new data take the place of what is held, however little the cache may keep. */
START_TEST(held_stays)
{
	struct kd_version v = version(1, 2);
	struct kd_copy *c = make(&name, 800, &v, 1);
	struct kd_copy_held h;
	uint64_t at = (uintptr_t)c->bytes;

	kd_env.cache = 0;
	kd_copy_hold(c, &h, c->bytes, 800, 800);
	for (uint32_t i = 3; i < 50; i++) {
		v.writer = i;
		kd_copy_release(make(&name, 800, &v, (char)i));
	}
	ck_assert_ptr_eq(kd_copy_held(&copies, at, 800), &h);
	ck_assert_int_eq(((char *)c->bytes)[799], 1);
	kd_copy_release(c);
	kd_copy_let_go(&h);
	kd_copy_release(c);
}
END_TEST

/* A copy that is parked is found again by its name, and by any part of its memory, unless somebody
 * uses it for more than to hold a result. */
START_TEST(parked)
{
	struct kd_data_name part = {.addr = name.addr + 80, .rows = 3, .cols = 8, .ld = 10,
				    .size = 8, .rank = name.rank};
	struct kd_data_name other = part, gaps = part;
	struct kd_copy_held h;
	void *at, *where = NULL;
	struct kd_copy *c = kd_copy_park(&copies, &name, 800, &at), *d;

	ck_assert_uint_eq((uintptr_t)at % KD_ALIGN_MAX, name.addr % KD_ALIGN_MAX);
	ck_assert_ptr_null(kd_copy_around(&copies, &part, &where)); /* it is in use */
	kd_copy_release(c);
	d = kd_copy_around(&copies, &part, &where);
	ck_assert(d == c && where == (char *)at + 80);
	kd_copy_hold(d, &h, where, 8 * 28, 8 * 24);
	d = kd_copy_around(&copies, &part, &where); /* the same once more */
	ck_assert(d == c && where == (char *)at + 80);
	kd_copy_release(d);
	other.addr += 8 * 8; /* in the gaps of that */
	other.cols = 2;
	ck_assert_ptr_null(kd_copy_around(&copies, &other, &where));
	other.addr = name.addr + 400;
	d = kd_copy_around(&copies, &other, &where);
	ck_assert(d == c && where == (char *)at + 400);
	kd_copy_release(d);
	ck_assert_ptr_eq(kd_copy_held(&copies, (uintptr_t)at + 80, 8 * 24), &h);
	d = kd_copy_park(&copies, &name, 800, &where);
	ck_assert(d != c); /* it is read */
	kd_copy_release(d);
	kd_copy_release(c);
	ck_assert(kd_copy_park(&copies, &name, 800, &where) == c && where == at); /* has a result */
	kd_copy_release(c);
	part.addr = name.addr + 800 - 8 * 27;
	ck_assert_ptr_null(kd_copy_around(&copies, &part, &where));
	part.addr = name.addr + 8;
	part.rank++;
	ck_assert_ptr_null(kd_copy_around(&copies, &part, &where));
	kd_copy_let_go(&h);
	kd_copy_release(c);
	gaps.addr += 1 << 20;
	kd_copy_release(kd_copy_park(&copies, &gaps, 8 * 24, &at));
	ck_assert_ptr_null(kd_copy_around(&copies, &gaps, &where)); /* it has none here */
}
END_TEST

START_TEST(replaced)
{
	struct kd_version v = version(1, 2), next = version(1, 3);
	struct kd_copy *old = make(&name, 800, &v, 1), *c;

	kd_copy_release(old);
	c = make(&name, 800, &next, 2);
	ck_assert_ptr_null(kd_copy_find(&copies, &name, &v));
	kd_copy_release(c);
	/* An old version in use stays until it is released. */
	c = kd_copy_find(&copies, &name, &next);
	kd_copy_release(make(&name, 800, &v, 3));
	ck_assert_int_eq(((char *)c->bytes)[0], 2);
	kd_copy_release(c);
}
END_TEST

/* The memory of an older version is used again, and what is in it compared; less and less often, if it
 * is another version each time. */
START_TEST(compared)
{
	struct kd_version v = version(1, 2);
	struct kd_copy *c = make(&name, 800, &v, 5);
	unsigned times = 0;
	int had;

	kd_copy_release(c);
	for (unsigned i = 0; i < 1000; i++) {
		c = kd_copy_create(&copies, &name, 800);
		ck_assert_int_eq(((char *)c->bytes)[799], 5);
		if (kd_copy_compare(c)) {
			ck_assert_uint_eq(kd_copy_recall(c, 100, 50, &had), 50);
			ck_assert(had);
			kd_copy_compared(c, i >= 500);
			times += i < 500;
			ck_assert(i < 600 || times);
		} else {
			ck_assert_uint_lt(i, 600);
		}
		v.gen++;
		kd_copy_keep(c, &v);
		kd_copy_release(c);
	}
	ck_assert_uint_ge(times, 7);
	ck_assert_uint_le(times, 15);
}
END_TEST

/* What is known of n bytes from addr on, in a copy of them: a letter for each, that of the copy it is
 * from, or '.'. */
static const char *known(uint64_t addr, uint64_t n)
{
	static char text[1000];
	struct kd_data_name part = name;
	struct kd_copy *c;
	int had;

	part.addr = addr;
	part.cols = part.ld = n;
	part.size = 1;
	c = kd_copy_create(&copies, &part, n);
	memset(c->bytes, '.', n);
	for (uint64_t at = 0; at < n;) {
		uint64_t some = kd_copy_recall(c, at, n - at, &had);

		ck_assert(some && some <= n - at);
		ck_assert_int_eq(had, ((char *)c->bytes)[at] != '.');
		at += some;
	}
	memcpy(text, c->bytes, n);
	text[n] = 0;
	kd_copy_release(c);
	return text;
}

/* Copies of parts of some memory, also of other versions, and one of other memory. */
START_TEST(recalled)
{
	struct kd_version v = version(1, 2), next = version(2, 2);
	struct kd_data_name n = {.rows = 1, .cols = 10, .ld = 10, .size = 1, .rank = 3};
	struct kd_copy *a, *b, *c, *d;

	ck_assert_str_eq(known(95, 20), "....................");
	n.addr = 100;
	a = make(&n, 10, &v, 'a');
	n.addr = 105;
	b = make(&n, 10, &next, 'b');
	n.addr = 120;
	c = make(&n, 10, &v, 'c');
	n.rank = 4;
	n.addr = 90;
	d = make(&n, 10, &v, 'd');
	kd_copy_release(c);
	ck_assert_str_eq(known(98, 35), "..aaaaaaaaaabbbbb.....cccccccccc...");
	kd_copy_claim(b);
	ck_assert_str_eq(known(98, 35), "..aaaaaaaaaa..........cccccccccc...");
	/* A copy of all drops unused copies of parts, except those of its own epoch. */
	n = (struct kd_data_name){.addr = 100, .rows = 2, .cols = 20, .ld = 20, .size = 1, .rank = 3};
	kd_copy_release(make(&n, 40, &v, 'e'));
	n = (struct kd_data_name){.addr = 120, .rows = 1, .cols = 10, .ld = 10, .size = 1, .rank = 3};
	kd_copy_release(kd_copy_find(&copies, &n, &v));
	n = (struct kd_data_name){.addr = 99, .rows = 2, .cols = 20, .ld = 20, .size = 1, .rank = 3};
	kd_copy_release(make(&n, 40, &next, 'f'));
	n = (struct kd_data_name){.addr = 120, .rows = 1, .cols = 10, .ld = 10, .size = 1, .rank = 3};
	ck_assert_ptr_null(kd_copy_find(&copies, &n, &v));
	n.addr = 100;
	kd_copy_release(kd_copy_find(&copies, &n, &v));
	/* Gaps between rows: its bytes lie otherwise. */
	n = (struct kd_data_name){.addr = 500, .rows = 2, .cols = 5, .ld = 8, .size = 1, .rank = 3};
	kd_copy_release(make(&n, 10, &v, 'g'));
	ck_assert_str_eq(known(500, 4), "....");
	kd_copy_release(a);
	kd_copy_release(b);
	kd_copy_release(d);
}
END_TEST

START_TEST(evicted)
{
	struct kd_version v = version(1, 2);
	struct kd_data_name n = name;
	struct kd_copy *held;

	kd_env.cache = 10 * 800;
	n.addr = 7;
	held = make(&n, 5000, &v, 9);
	for (n.addr = 100; n.addr < 112; n.addr++)
		kd_copy_release(make(&n, 800, &v, (char)n.addr));
	ck_assert_uint_eq(copies.counts.evicted, 2);
	for (n.addr = 100; n.addr < 112; n.addr++) {
		struct kd_copy *c = kd_copy_find(&copies, &n, &v);

		ck_assert_int_eq(!c, n.addr < 102);
		if (c)
			kd_copy_release(c);
	}
	n.addr = 7;
	ck_assert_int_eq(((char *)held->bytes)[4999], 9);
	kd_copy_release(held); /* now the newest unused copy, it evicts older ones */
	n.addr = 102;
	ck_assert_ptr_null(kd_copy_find(&copies, &n, &v));
	kd_env.cache = 0;
	n.addr = 1;
	kd_copy_release(make(&n, 1, &v, 1));
	ck_assert_ptr_null(kd_copy_find(&copies, &n, &v));
}
END_TEST

/* More may be kept while there is memory to spare, and goes little by little when there is none. */
START_TEST(spared)
{
	struct kd_version v = version(1, 2);
	struct kd_data_name n = name;

	kd_env.cache = 10 * 800;
	copies.spare = (struct kd_spare){
		.ranks = 1, .is_short = 1, .most = UINT64_MAX, .look_ns = UINT64_MAX};
	for (n.addr = 100; n.addr < 200; n.addr++)
		kd_copy_release(make(&n, 800, &v, (char)n.addr));
	ck_assert_uint_eq(copies.counts.evicted, 0);
	kd_copies_trim(&copies, 0);
	ck_assert_uint_eq(copies.unused_bytes, 100 * 800);
	copies.spare.most = 0;
	kd_copy_release(make(&n, 800, &v, 1));
	ck_assert_uint_eq(copies.counts.evicted, 3);
	kd_copies_trim(&copies, UINT64_MAX); /* not before the next look */
	ck_assert_uint_eq(copies.counts.evicted, 3);
	copies.spare.most = 0;
	kd_copies_trim(&copies, 5 * 800);
	ck_assert_uint_eq(copies.counts.evicted, 9);
	copies.spare.most = 0;
	kd_copies_trim(&copies, UINT64_MAX);
	ck_assert_uint_eq(copies.unused_bytes, 10 * 800);
	ck_assert_uint_eq(copies.counts.evicted, 91);
	memset(&copies.spare, 0, sizeof(copies.spare));
}
END_TEST

/* While there are unused copies, memory for another one is theirs. */
START_TEST(no_memory)
{
	struct kd_version v = version(1, 2);
	struct kd_data_name n = name;
	struct kd_copy *c;

	for (n.addr = 100; n.addr < 105; n.addr++)
		kd_copy_release(make(&n, 800, &v, (char)n.addr));
	refused = 2;
	c = kd_copy_create(&copies, &n, 900);
	ck_assert_ptr_nonnull(c);
	ck_assert_uint_eq(copies.counts.evicted, 2);
	n.addr = 101;
	ck_assert_ptr_null(kd_copy_find(&copies, &n, &v));
	refused = 100;
	ck_assert_ptr_null(kd_copy_create(&copies, &n, 900));
	ck_assert_uint_eq(copies.counts.evicted, 5);
	ck_assert_uint_eq(copies.unused_bytes, 0);
	refused = 0;
	kd_copy_release(c);
}
END_TEST

/* Copies are taken and released at random. What is found has the bytes that were kept under its
 * name and version. */
START_TEST(chance)
{
	enum { NAMES = 8, VERSIONS = 5, USERS = 20 };
	struct kd_copy *used[USERS] = {NULL};
	char fill[USERS];
	uint32_t dice = (uint32_t)_i + 1;
#define ROLL(n) ((dice = dice * 1664525u + 1013904223u) >> 8) % (n)

	kd_env.cache = 5000;
	for (unsigned step = 0; step < 20000; step++) {
		unsigned u = ROLL(USERS), k = ROLL(NAMES), g = ROLL(VERSIONS);
		struct kd_data_name n = name;
		struct kd_version v = version(g, k);
		char byte = (char)(g * NAMES + k);

		n.addr = k * 16;
		if (used[u]) {
			ck_assert_int_eq(((char *)used[u]->bytes)[ROLL(800)], fill[u]);
			kd_copy_release(used[u]);
			used[u] = NULL;
		} else if ((used[u] = kd_copy_find(&copies, &n, &v))) {
			fill[u] = byte;
			if (!(ROLL(3))) {
				struct kd_version w = version(VERSIONS + step, 0);

				used[u] = kd_copy_write(used[u]);
				fill[u] = 100;
				memset(used[u]->bytes, 100, 800);
				if (ROLL(2))
					kd_copy_keep(used[u], &w);
			}
		} else {
			used[u] = make(&n, 800, &v, byte);
			fill[u] = byte;
		}
	}
	for (unsigned u = 0; u < USERS; u++)
		if (used[u])
			kd_copy_release(used[u]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gdata");
	TCase *t = tcase_create("gdata");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, found);
	tcase_add_test(t, aligned);
	tcase_add_test(t, written);
	tcase_add_test(t, claimed);
	tcase_add_test(t, held);
	tcase_add_test(t, held_stays);
	tcase_add_test(t, parked);
	tcase_add_test(t, replaced);
	tcase_add_test(t, compared);
	tcase_add_test(t, recalled);
	tcase_add_test(t, evicted);
	tcase_add_test(t, spared);
	tcase_add_test(t, no_memory);
	tcase_add_loop_test(t, chance, 0, 10);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
