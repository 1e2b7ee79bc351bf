/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of check_nomem.sh: it uses everything in the library that allocates. Status 0:
 * success; 3: kdds_init failed once, and succeeded when called again.
 */
#include <kdds.h>
#include <stdlib.h>

KDDS_TASK(put, VALUE(long, v), WRITE(long, x))
{
	**x = v;
}

KDDS_TASK(add, VALUE(long, v), REDUCE(long, x, KDDS_SUM(long)))
{
	for (volatile int i = 0; i < 20000; i++)
		;
	**x += v;
}

KDDS_TASK(add_array, VALUE(long, v), REDUCE_ARRAY(double, x, KDDS_SUM(double)))
{
	for (volatile int i = 0; i < 20000; i++)
		;
	for (size_t k = 0; k < kdds_count(x); k++)
		(*x)[k] += (double)v;
}

KDDS_TASK(add_first, READ_ARRAY(long, a), REDUCE(long, x, KDDS_SUM(long)))
{
	**x += **a;
}

KDDS_TASK(fill, VALUE(long, v), WRITE_ARRAY(long, a))
{
	(*a)[0] = v;
}

KDDS_TASK(with_data, VALUE(long, v), REDUCE(long, x, KDDS_SUM(long)))
{
	KDDS_DATA_ARRAY(long, a, 1000);

	kdds_spawn(fill, v, a);
	kdds_spawn(add_first, a, x);
}

static void nothing(struct kdds_closure *c)
{
	(void)c;
}

int main(void)
{
	struct kdds_type *type;
	long x = 0;
	double m[100] = {0};
	int status = 0;
	KDDS_OVER(long, d, &x);
	KDDS_OVER_ARRAY(double, dm, m, 100);

	if (kdds_init()) {
		status = 3;
		if (kdds_init())
			return 4;
	}
	kdds_spawn(put, 1, d);
	for (long i = 0; i < 20; i++) {
		kdds_spawn(add, i, d);
		kdds_spawn(with_data, i, d);
		kdds_spawn(add_array, i, dm);
	}
	kdds_sync();
	if (x != 1 + 2 * 190 || m[0] != 190 || m[99] != 190)
		return 5;
	if (!kdds_type_create("type", nothing, NULL, 0, &type)) {
		kdds_commit(kdds_closure_allocate(type));
		kdds_sync();
		kdds_type_destroy(type);
	}
	return kdds_finalize() ? 6 : status;
}
