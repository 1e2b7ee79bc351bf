/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiet SECONDS: a job in which all ranks have work and then, for SECONDS, only rank 0.
 * check_network.sh runs it and breaks connections meanwhile: the end of the job must reach every
 * rank, although no rank has anything to send to the one that announces it.
 */
#include <kdds.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

KDDS_TASK(spin, VALUE(int, us), REDUCE(long, n, KDDS_SUM(long)))
{
	for (double end = now() + 1e-6 * us; now() < end;)
		;
	++**n;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	long count = 0;
	KDDS_OVER(long, n, &count);

	if (kdds_init())
		return 1;
	for (int i = 0; i < 20000; i++)
		kdds_spawn(spin, 300, n);
	kdds_sync();
	printf("up\n");
	fflush(stdout);
	for (double end = now() + seconds; now() < end;) {
		struct timespec t = {0, 100000000};

		nanosleep(&t, NULL);
	}
	if (kdds_finalize())
		return 1;
	printf("%ld tasks\n", count);
	return 0;
}
