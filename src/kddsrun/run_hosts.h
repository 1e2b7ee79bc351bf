/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks run: lists of hosts, as users and Slurm write them. */
#ifndef KD_RUN_HOSTS_H
#define KD_RUN_HOSTS_H

#include "base/base.h"

#define RUN_MOST_RANKS 1000000u

struct run_place {
	char *name;
	uint32_t slots; /* ranks that it may take */
	int counted;    /* the user said how many */
	int near;       /* this host */
	uint32_t first, ranks;
};

struct run_places {
	struct run_place *place;
	size_t count;
};

/* Adds a host, or adds the slots to a host that is already listed. */
void run_places_add(struct run_places *p, const char *name, size_t length, uint32_t slots,
		    int counted);
/* Whether the two are the same host, as far as names show. */
int run_places_same(const struct run_place *a, const struct run_place *b);
/* "a:2,b": 0, or -EINVAL. */
int run_places_parse(struct run_places *p, const char *text);
void run_places_free(struct run_places *p);
/* The list that run_places_parse reads, with the ranks that were dealt as slots, after a prefix. The
 * caller frees it. */
char *run_places_text(const struct run_places *p, const char *prefix);
/* A file with a host per line, "a:2" or "a slots=2", and comments after #. 0, or -errno after a
 * line on stderr. */
int run_places_read(struct run_places *p, const char *path);
/* Slurm's "n[1-3,7],m2", and "2(x3),1" for the tasks per node (NULL: 1 each). 0, or -EINVAL after
 * a line on stderr. */
int run_places_slurm(struct run_places *p, const char *nodes, const char *tasks);
/*
 * Gives each place its ranks and removes places without any. size 0: as many ranks as slots. When
 * there are more ranks than slots, and the user gave no slots, ranks are distributed evenly.
 * Returns the size of the job, or 0 after a line on stderr if the ranks do not fit.
 */
uint32_t run_places_deal(struct run_places *p, uint32_t size);

#endif
