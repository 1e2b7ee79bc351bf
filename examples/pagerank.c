/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PageRank: the probability with which a random surfer is at each page, who follows a link of the
 * page or, now and then, begins anew anywhere. An iteration is two loops over the pages:
 *
 *   pull     rank of a page = the shares of the pages that link to it
 *   share    what a page gives to each page that it links to = its rank / its links
 *
 * The links lie in a matrix with a row for each page, the pages that link to it, so that both loops
 * cut it with the ranks. main waits for the change of an iteration to see whether it is the last.
 * What a page without links has is lost, so the ranks add up to less than 1.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"pagerank", "PAGES [LINKS]",
	"Ranks the pages of a random graph.\n"
	"\n"
	"  PAGES  1 to 100000000\n"
	"  LINKS  links to each page, 1 to 1000 (default 10)\n"
	"\n"
	"Try 1000000.\n"
};

#define DAMPING 0.85
#define STEPS_MOST 100

/* Most links come from the first pages. */
KDDS_TASK(draw, RANGE(page), VALUE(uint64_t, pages), WRITE_EACH(uint32_t, from))
{
	size_t links = kdds_shape_of(from)->cols;

	for (size_t i = 0; i < (page.end - page.begin) * links; i++) {
		double x = uniform(page.begin * links + i);

		(*from)[i] = (uint32_t)(x * x * (double)pages);
	}
}

KDDS_TASK(pull, READ_EACH(uint32_t, from), READ_ARRAY(double, share), WRITE_EACH(double, rank))
{
	size_t links = kdds_shape_of(from)->cols;

	for (size_t i = 0; i < kdds_count(rank); i++) {
		double sum = 0;

		for (size_t k = 0; k < links; k++)
			sum += (*share)[(*from)[i * links + k]];
		(*rank)[i] = (1 - DAMPING) / (double)kdds_count(share) + DAMPING * sum;
	}
}

KDDS_TASK(divide, READ_EACH(double, rank), READ_EACH(uint32_t, links), UPDATE_EACH(double, share),
	  REDUCE(double, change, KDDS_SUM(double)))
{
	for (size_t i = 0; i < kdds_count(rank); i++) {
		double gives = (*links)[i] ? (*rank)[i] / (*links)[i] : 0;

		**change += fabs(gives - (*share)[i]) * (*links)[i];
		(*share)[i] = gives;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	uint32_t *link, *count;
	double *give, *rank, t, sum = 0;
	size_t pages, links, best = 0;
	int steps = 0;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 1, 2, &argc);
	pages = (size_t)integer("PAGES", argv[0], 1, 100000000);
	links = argc > 1 ? (size_t)integer("LINKS", argv[1], 1, 1000) : 10;
	link = allocate(pages * links, sizeof(*link));
	count = allocate(pages, sizeof(*count));
	give = allocate(pages, sizeof(*give));
	rank = allocate(pages, sizeof(*rank));

	start();
	kdds_array(uint32_t) from;
	kdds_bind_tile(from, link, pages, links, links);
	KDDS_OVER_ARRAY(uint32_t, out, count, pages);
	KDDS_OVER_ARRAY(double, share, give, pages);
	KDDS_OVER_ARRAY(double, ranks, rank, pages);
	KDDS_DATA(double, change);
	kdds_for(draw, kdds_range(0, pages), pages, kdds_ref(from));
	kdds_freeze(kdds_ref(from));
	for (size_t i = 0; i < pages; i++)
		count[i] = 0;
	for (size_t i = 0; i < pages * links; i++)
		count[link[i]]++;
	for (size_t i = 0; i < pages; i++)
		give[i] = count[i] ? 1 / (double)pages / count[i] : 0;
	kdds_freeze(out);
	t = now();
	do {
		**change = 0;
		kdds_for(pull, kdds_ref(from), share, ranks);
		kdds_for(divide, ranks, out, share, change);
		kdds_wait(change);
	} while (++steps < STEPS_MOST && **change > 1e-9);
	kdds_sync();
	t = now() - t;
	kdds_thaw(out);
	kdds_thaw(kdds_ref(from));

	for (size_t i = 0; i < pages; i++) {
		sum += rank[i];
		best = rank[i] > rank[best] ? i : best;
	}
	printf("pagerank(%zu, %zu): %d iterations, page %zu has rank %.6e of %.6f\n", pages, links,
	       steps, best, rank[best], sum);
	free(rank);
	free(give);
	free(count);
	free(link);
	return finish(t, true);
}
