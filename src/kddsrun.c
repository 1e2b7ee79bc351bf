/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_agent.h"
#include "run_job.h"
int main(int argc, char **argv)
{
	struct run_options o = {.size = 1, .heartbeat_ms = 5000};
	int i = 1;
	if (argc > 1 && !strcmp(argv[1], "--agent=near"))
		run_agent_main(1);
	if (argc > 2 && !strcmp(argv[1], "-n")) {
		o.size = (uint32_t)atoi(argv[2]);
		i = 3;
	}
	o.argument = argv + i;
	o.argument_count = (uint32_t)(argc - i);
	run_places_add(&o.places, "localhost", 9, o.size, 1);
	o.size = run_places_deal(&o.places, o.size);
	return run_job(&o);
}
