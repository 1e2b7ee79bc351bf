/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds up a vector, with a task for each block, and prints the sum. */
#include <stdio.h>

#include <kdds.h>

#define COUNT 100000
#define BLOCK 1000

static double vector[COUNT];

KDDS_TASK(add_up, READ_ARRAY(double, block), REDUCE(double, sum, KDDS_SUM(double)))
{
	for (size_t i = 0; i < kdds_count(block); i++)
		**sum += (*block)[i];
}

int main()
{
	if (kdds_init())
		return 1;
	KDDS_DATA(double, sum);
	**sum = 0;
	for (int i = 0; i < COUNT; i++)
		vector[i] = i;
	for (int i = 0; i < COUNT; i += BLOCK) {
		KDDS_OVER_ARRAY(double, block, vector + i, BLOCK);
		kdds_spawn(add_up, block, sum);
	}
	kdds_sync();
	printf("%.0f\n", **sum);
	return kdds_finalize() ? 1 : 0;
}
