/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks go: lists of hosts as users and Slurm write them. */
#ifndef KD_RUN_HOSTS_H
#define KD_RUN_HOSTS_H

#include "base.h"

struct run_place {
	char *name;
	uint32_t slots; /* ranks it is to take */
	int counted;    /* the user said how many */
	int near;       /* this very host */
	uint32_t first, ranks;
};

struct run_places {
	struct run_place *place;
	size_t count;
};

/* Adds a host, or slots to one that is there already. */
void run_places_add(struct run_places *p, const char *name, size_t length, uint32_t slots, int counted);
/* Gives each place its ranks. size 0: as many as there are slots. Returns the job's size; 0: they do not fit, after a line. */
uint32_t run_places_deal(struct run_places *p, uint32_t size);

#endif
