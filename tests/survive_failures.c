/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of failures.c, for check_survive.c, which has those of oracle.c. */
#include <kdds.h>

#include "sim/sim.h"

/* Bodies call it at each child. */
static int work(void)
{
	sim_work(sim_draw(100000));
	return kdds_worker();
}

#define kdds_worker work
#define main failures_main
#include "failures.c"
#undef main
#undef kdds_worker

int survive_failures(uint64_t seed);

/* Whether the program fails where it is to, and its values are right. */
int survive_failures(uint64_t seed)
{
	return !program(seed);
}
