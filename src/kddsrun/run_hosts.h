/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks go: lists of hosts as users and Slurm write them. */
#ifndef KD_RUN_HOSTS_H
#define KD_RUN_HOSTS_H

#include "base/base.h"

#define RUN_MOST_RANKS 1000000u

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
/* "a:2,b": 0, or -EINVAL. */
int run_places_parse(struct run_places *p, const char *text);
/* A file with a host per line, "a:2" or "a slots=2", and comments behind #. 0, or -errno after a line on stderr. */
int run_places_read(struct run_places *p, const char *path);
/* Slurm's "n[1-3,7],m2", and "2(x3),1" for the tasks per node (NULL: 1 each). 0, or -EINVAL after a line on stderr. */
int run_places_slurm(struct run_places *p, const char *nodes, const char *tasks);
/*
 * Gives each place its ranks, those without any to be left out. size 0: as many as there are slots. When there are more
 * ranks than slots and nobody said how many slots a host has, they are dealt evenly. Returns the job's size; 0: they do not
 * fit, after a line on stderr.
 */
uint32_t run_places_deal(struct run_places *p, uint32_t size);

#endif
