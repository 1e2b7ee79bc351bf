/* SPDX-License-Identifier: BSD-3-Clause */
/* Small programs with a mistake each, that kdds(7) forbids and only KDDS_CHECK detects:
 * check_checker.sh. Prints a value that the program computes. */
#include <kdds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 16

static long globals[N], *pointer;

KDDS_TASK(get, READ(long, a), WRITE(long, r)) { **r = **a; }
KDDS_TASK(put, VALUE(long, n), WRITE(long, r)) { **r = n; }
KDDS_TASK(bump, UPDATE(long, x)) { ++**x; }
KDDS_TASK(total, READ_ARRAY(long, a), WRITE(long, r))
{
	const struct kdds_shape *s = kdds_shape_of(a);

	**r = 0;
	for (size_t i = 0; i < s->rows; i++)
		for (size_t k = 0; k < s->cols; k++)
			**r += (*a)[i * s->ld + k];
}
KDDS_TASK(fill, WRITE_ARRAY(long, a))
{
	const struct kdds_shape *s = kdds_shape_of(a);

	for (size_t i = 0; i < s->rows; i++)
		for (size_t k = 0; k < s->cols; k++)
			(*a)[i * s->ld + k] = 1;
}

/* Compilers do not know what it returns. */
static void *same(void *p)
{
	void *volatile hidden = p;

	return hidden;
}

KDDS_TASK(count, WRITE(long, r)) { ++**r; }
static long read_of_write(void)
{
	KDDS_DATA(long, x);

	**x = 1;
	kdds_spawn(count, x);
	kdds_sync();
	return **x;
}

KDDS_TASK(accumulate, WRITE(double, r)) { **r += 1; }
static long read_of_double(void)
{
	KDDS_DATA(double, x);

	**x = 1;
	kdds_spawn(accumulate, x);
	kdds_sync();
	return **x == 2;
}

KDDS_TASK(forget, VALUE(int, n), WRITE(long, r))
{
	if (n > 1)
		**r = n;
}
static long unwritten(void)
{
	KDDS_DATA(long, x);

	kdds_spawn(forget, 1, x);
	kdds_sync();
	return **x;
}

KDDS_TASK(cast, READ(long, a)) { ++*(long *)same((void *)(uintptr_t)*a); }
static long write_of_read(void)
{
	KDDS_DATA(long, x);

	**x = 1;
	kdds_spawn(cast, x);
	kdds_sync();
	return **x;
}

KDDS_TASK(alias, READ_ARRAY(long, a), WRITE(long, r))
{
	globals[3]++;
	**r = (*a)[3];
}
static long write_by_alias(void)
{
	KDDS_OVER_ARRAY(long, all, globals, N);
	KDDS_DATA(long, x);

	kdds_spawn(alias, all, x);
	kdds_sync();
	return **x;
}

KDDS_TASK(deep, VALUE(int, n), READ_ARRAY(long, a))
{
	if (n)
		kdds_spawn(deep, n - 1, a);
	else
		globals[3]++;
}
static long write_below(void)
{
	KDDS_OVER_ARRAY(long, all, globals, N);

	kdds_spawn(deep, 3, all);
	kdds_sync();
	return globals[3];
}

static long change_local(void)
{
	long x = 1;

	KDDS_OVER(long, a, &x);
	KDDS_DATA(long, r);
	kdds_spawn(get, a, r);
	*(long *)same(&x) = 2;
	kdds_sync();
	return **r;
}

KDDS_TASK(hasty, WRITE(long, r))
{
	KDDS_DATA(long, x);

	**x = 1;
	kdds_spawn(get, x, r);
	**x = 2;
}
static long change_data(void)
{
	KDDS_DATA(long, r);

	kdds_spawn(hasty, r);
	kdds_sync();
	return **r;
}

static long change_block(void)
{
	KDDS_DATA(long, x);
	KDDS_DATA(long, r);

	**x = 1;
	kdds_spawn(get, x, r);
	**x = 2;
	kdds_sync();
	return **r;
}

static long change_array(void)
{
	long sum, *a = calloc(N, sizeof(*a));

	KDDS_OVER_ARRAY(long, all, a, N);
	KDDS_DATA(long, r);
	KDDS_DATA(long, s);
	kdds_spawn(total, all, r);
	kdds_spawn(put, 1, s);
	((long *)same(a))[5] = 2;
	kdds_sync();
	sum = **r;
	free(a);
	return sum;
}

KDDS_TASK(follow, VALUE(long *, p), WRITE(long, r)) { **r = *p; }
KDDS_TASK(dangle, WRITE(long, r))
{
	long x = 1;

	kdds_spawn(follow, same(&x), r);
}
static long dead_pointer(void)
{
	KDDS_DATA(long, r);

	kdds_spawn(dangle, r);
	kdds_sync();
	return **r;
}

KDDS_TASK(lend, WRITE(long, r))
{
	long x = 1;

	KDDS_OVER(long, a, (long *)same(&x));
	kdds_spawn(get, a, r);
}
static long dead_local(void)
{
	KDDS_DATA(long, r);

	kdds_spawn(lend, r);
	kdds_sync();
	return **r;
}

KDDS_TASK(leak, WRITE(long, r))
{
	KDDS_DATA(long, x);

	**r = **x = 1;
	pointer = *x;
	kdds_spawn(bump, x);
}
static long dead_data(void)
{
	KDDS_DATA(long, r);
	KDDS_DATA(long, s);

	kdds_spawn(leak, r);
	kdds_sync();
	KDDS_OVER(long, x, pointer);
	kdds_spawn(get, x, s);
	kdds_sync();
	return **s;
}

static long no_value(void)
{
	KDDS_DATA(long, x);
	KDDS_DATA(long, r);

	kdds_spawn(get, x, r);
	kdds_sync();
	return **r;
}

KDDS_TASK(use, WRITE(long, r))
{
	KDDS_DATA(long, x);

	kdds_spawn(bump, x);
	kdds_spawn(get, x, r);
}
static long no_value_to_update(void)
{
	KDDS_DATA(long, r);

	kdds_spawn(use, r);
	kdds_sync();
	return **r;
}

static long tiles(void)
{
	kdds_array(long) a, b;
	KDDS_DATA(long, r);

	kdds_bind_tile(a, globals, 2, 3, 8);
	kdds_bind_tile(b, globals + 2, 2, 3, 8);
	kdds_spawn(fill, &a.at);
	kdds_spawn(total, &b.at, r);
	kdds_sync();
	return **r;
}

static long two_references(void)
{
	KDDS_OVER(long, a, &globals[1]);
	KDDS_OVER(long, b, &globals[1]);
	KDDS_DATA(long, r);

	kdds_spawn(put, 1, a);
	kdds_spawn(get, b, r);
	kdds_sync();
	return **r;
}

static long whole_and_part(void)
{
	KDDS_OVER_ARRAY(long, all, globals, N);
	KDDS_OVER(long, part, &globals[7]);

	kdds_spawn(fill, all);
	kdds_spawn(bump, part);
	kdds_sync();
	return globals[7];
}

KDDS_TASK(set, VALUE(long, n), REDUCE(long, s, KDDS_SUM(long))) { **s = n; }
static long assigned_sum(void)
{
	KDDS_DATA(long, s);

	**s = 5;
	kdds_spawn(set, 3, s);
	kdds_sync();
	return **s;
}

KDDS_TASK(last, VALUE(double, n), REDUCE(double, s, KDDS_MAX(double))) { **s = n; }
static long assigned_maximum(void)
{
	KDDS_DATA(double, s);

	**s = 5;
	kdds_spawn(last, 3, s);
	kdds_sync();
	return (long)**s;
}

KDDS_TASK(add, VALUE(long, n), REDUCE(long, s, KDDS_SUM(long))) { **s += n; }
KDDS_TASK(add_two, WRITE(long, r))
{
	KDDS_DATA(long, s);

	kdds_spawn(add, 1, s);
	kdds_spawn(add, 2, s);
	kdds_spawn(get, s, r);
}
static long no_value_to_add_to(void)
{
	KDDS_DATA(long, r);

	kdds_spawn(add_two, r);
	kdds_sync();
	return **r;
}

KDDS_TASK(add_real, VALUE(double, n), REDUCE(double, s, KDDS_SUM(double))) { **s += n; }
static long no_value_to_add_to_in_order(void)
{
	KDDS_DATA(double, s);

	kdds_spawn(add_real, 1, s);
	kdds_sync();
	return **s > 0;
}

KDDS_TASK(overrun, UPDATE(long, x)) { ((long *)same(*x))[1] = 2; }
static long neighbour(void)
{
	KDDS_OVER(long, a, &globals[0]);
	KDDS_OVER(long, b, &globals[1]);
	KDDS_DATA(long, r);

	kdds_spawn(overrun, a);
	kdds_spawn(get, b, r);
	kdds_sync();
	return **r;
}

KDDS_TASK(meddle, WRITE(long, r)) { **r = ++globals[4]; }
static long undeclared(void)
{
	KDDS_OVER(long, g, &globals[4]);
	KDDS_DATA(long, r);

	kdds_spawn(meddle, r);
	kdds_spawn(bump, g);
	kdds_sync();
	return **r;
}

KDDS_TASK(reach, WRITE(long, r))
{
	KDDS_OVER(long, g, &globals[4]);

	kdds_spawn(get, g, r);
}
static long not_given(void)
{
	KDDS_OVER(long, g, &globals[4]);
	KDDS_DATA(long, r);

	kdds_spawn(reach, r);
	kdds_spawn(bump, g);
	kdds_sync();
	return **r;
}

KDDS_TASK(clear_second, READ_LIST(long, xs))
{
	*(long *)same((void *)(uintptr_t)*xs.ref[1]) = 0;
}
static long write_of_item(void)
{
	KDDS_DATA(long, a);
	KDDS_DATA(long, b);
	long *const *both[] = {a, b};

	**a = **b = 1;
	kdds_spawn(clear_second, kdds_list(both, 2));
	kdds_sync();
	return **b;
}

KDDS_TASK(sum_items, READ_LIST(long, xs), WRITE(long, r))
{
	**r = 0;
	for (size_t i = 0; i < xs.count; i++)
		**r += **xs.ref[i];
}
static long items(void)
{
	kdds_data(long) a[3], again;
	long *const *refs[3], r;

	for (int i = 0; i < 3; i++) {
		kdds_bind(a[i], &globals[i]);
		refs[i] = kdds_ref(a[i]);
	}
	kdds_bind(again, &globals[2]);
	KDDS_OVER(long, sum, &r);
	kdds_spawn(put, 1, kdds_ref(again));
	kdds_spawn(sum_items, kdds_list(refs, 3), sum);
	kdds_sync();
	return r;
}

/* The checker does not report what follows: the value depends on its number. */

static long hidden;

KDDS_TASK(shift, VALUE(long, n)) { hidden = 10 * hidden + n; }
static long undeclared_order(void)
{
	hidden = 0;
	for (long i = 1; i < 5; i++)
		kdds_spawn(shift, i);
	kdds_sync();
	return hidden;
}

KDDS_TASK(peek, WRITE(long, r))
{
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);

	**x = 0;
	kdds_spawn(put, 1, x);
	kdds_spawn(put, 2, y);
	**r = **x;
}
static long early_read(void)
{
	KDDS_DATA(long, r);

	kdds_spawn(peek, r);
	kdds_sync();
	return **r;
}

/* A ring of two: the second buffer is still in use. */
static long change_after_wait(void)
{
	static long buffer[2];
	KDDS_OVER(long, a, &buffer[0]);
	KDDS_OVER(long, b, &buffer[1]);
	KDDS_DATA(long, r);
	KDDS_DATA(long, q);

	buffer[0] = buffer[1] = 1;
	kdds_spawn(get, a, r);
	kdds_spawn(get, b, q);
	kdds_wait(a);
	buffer[1] = 2;
	kdds_sync();
	return **r + **q;
}

/* Frozen data that main, or a task, changes. */
static long change_frozen(void)
{
	static long buffer[N];
	KDDS_OVER_ARRAY(long, a, buffer, N);
	KDDS_DATA(long, r);

	kdds_freeze(a);
	buffer[1] = 2;
	kdds_spawn(total, a, r);
	kdds_sync();
	kdds_thaw(a);
	return **r;
}

static long write_frozen(void)
{
	static long buffer[N];
	KDDS_OVER_ARRAY(long, a, buffer, N);
	KDDS_OVER(long, x, &buffer[3]);

	kdds_freeze(a);
	kdds_spawn(bump, x);
	kdds_sync();
	return buffer[3];
}

static long change_frozen_last(void)
{
	static long buffer[N];
	KDDS_OVER_ARRAY(long, a, buffer, N);

	kdds_freeze(a);
	buffer[1] = 2;
	return buffer[1];
}

static long free_frozen(void)
{
	long *buffer = calloc(1 << 20, sizeof(*buffer)); /* the allocator maps it */
	KDDS_OVER_ARRAY(long, a, buffer, 1 << 20);

	kdds_freeze(a);
	free(buffer);
	return 0;
}

/* A body that does not know that it runs on parts of the loop. */
static long position, numbers[1000];

KDDS_TASK(enumerate, UPDATE_EACH(long, x))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		(*x)[k] = position++;
}
static long loop_position(void)
{
	long moved = 0;
	KDDS_OVER_ARRAY(long, x, numbers, 1000);

	position = 0;
	kdds_for(enumerate, x);
	kdds_sync();
	for (long k = 0; k < 1000; k++)
		moved += numbers[k] != k;
	return moved;
}

KDDS_TASK(own_position, UPDATE_EACH(long, x), REDUCE(long, s, KDDS_SUM(long)))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		**s += (*x)[k] == (long)k;
}
static long loop_whole(void)
{
	long n = 0;
	KDDS_OVER(long, s, &n);
	KDDS_OVER_ARRAY(long, x, numbers, 1000);

	for (long k = 0; k < 1000; k++)
		numbers[k] = k;
	kdds_for(own_position, x, s);
	kdds_sync();
	return n;
}

/* No mistakes: sums that are small only now and then, and a contribution to what was to be written
 * by a task that has failed. */
KDDS_TASK(balance, VALUE(int, n), REDUCE(int, s, KDDS_SUM(int))) { **s += n; }
KDDS_TASK(flip, VALUE(uint64_t, n), REDUCE(uint64_t, s, KDDS_XOR(uint64_t))) { **s ^= n; }
static long right_sums(void)
{
	static const int amounts[] = {10000, -9000, 8000, -8500};
	KDDS_DATA(int, s);
	KDDS_DATA(uint64_t, x);

	**s = 0;
	**x = 0;
	for (int i = 0; i < 8; i++) {
		kdds_spawn(balance, amounts[i % 4], s);
		kdds_spawn(flip, 0x123456789abcdef0u * (uint64_t)(i % 4 + 1), x);
	}
	kdds_sync();
	return **s + (long)(**x % 1000);
}

KDDS_TASK(give_up, WRITE(long, r)) { if (r) kdds_fail(1, "not today"); else **r = 0; }
static long right_freezing(void)
{
	static long buffer[N];
	KDDS_OVER_ARRAY(long, a, buffer, N);
	KDDS_DATA(long, r);
	long sum = 0;

	for (int i = 0; i < 3; i++) {
		kdds_spawn(fill, a);
		kdds_freeze(a);
		for (int k = 0; k < 3; k++) {
			KDDS_SLICE(half, a, N / 2 * (k % 2), N / 2);

			kdds_spawn(total, half, r);
			kdds_wait(r);
			sum += **r + buffer[k];
		}
		kdds_spawn(total, a, r);
		kdds_thaw(a);
		buffer[i] = i;
	}
	kdds_sync();
	return sum + **r;
}

static long right_failure(void)
{
	struct kdds_failure f;
	KDDS_DATA(long, s);

	kdds_spawn(give_up, s);
	kdds_spawn(add, 1, s);
	kdds_sync();
	return kdds_failure(&f);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		long (*run)(void);
	} cases[] = {
#define CASE(f) {#f, f},
		CASE(read_of_write) CASE(read_of_double) CASE(unwritten) CASE(write_of_read)
		CASE(write_by_alias) CASE(write_below) CASE(change_local) CASE(change_data)
		CASE(change_array) CASE(change_block) CASE(dead_pointer) CASE(dead_local)
		CASE(dead_data) CASE(no_value) CASE(no_value_to_update) CASE(no_value_to_add_to)
		CASE(no_value_to_add_to_in_order)
		CASE(tiles) CASE(two_references) CASE(whole_and_part) CASE(assigned_sum)
		CASE(assigned_maximum) CASE(neighbour) CASE(undeclared) CASE(not_given)
		CASE(write_of_item) CASE(items)
		CASE(undeclared_order) CASE(early_read) CASE(change_after_wait) CASE(loop_position)
		CASE(loop_whole) CASE(change_frozen) CASE(write_frozen)
		CASE(change_frozen_last) CASE(free_frozen)
		CASE(right_sums) CASE(right_freezing) CASE(right_failure)
	};

	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(argv[1], cases[i].name)) {
			if (kdds_init())
				return 3;
			printf("%ld\n", cases[i].run());
			kdds_finalize();
			return 0;
		}
	return 2;
}
