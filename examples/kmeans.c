/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clusters of points in the plane, by Lloyd's algorithm (S. Lloyd, "Least Squares Quantization in
 * PCM", 1982): each point belongs to the nearest centre, and the centres move to the means of their
 * points, until no point changes its cluster.
 *
 * One loop over the points does a step. Its parts read the centres, write the cluster of each of
 * their points, and contribute to two reductions: the sums per cluster, with an operator of the
 * program, and the number of points that have changed. Contributions are combined in an order that
 * depends only on the number of points, so the centres have the same bits on any number of workers.
 */
#include <stdio.h>
#include <stdlib.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"kmeans", "N K [STEPS]",
	"Finds K clusters among N random points of the plane.\n"
	"\n"
	"  N      points, 1 to 100000000\n"
	"  K      clusters, 1 to 1000, at most N\n"
	"  STEPS  steps, unless no point changes its cluster before, 1 to 1000 (default 100)\n"
	"\n"
	"Try 1000000 10.\n"
};

struct point {
	double x, y;
};

/* Of the points of a cluster: the sum of their coordinates, their number, and the sum of the
 * squares of their distances from the centre. */
struct sum {
	struct point at;
	long points;
	double squares;
};

KDDS_OP(joint, struct sum, ((struct sum){{0, 0}, 0, 0}), KDDS_ORDERED)
{
	x->at.x += y->at.x;
	x->at.y += y->at.y;
	x->points += y->points;
	x->squares += y->squares;
}

/* Points scatter around the corners of a grid of 4 x 4. */
KDDS_TASK(scatter, RANGE(i), WRITE_EACH(struct point, points))
{
	for (size_t k = i.begin; k < i.end; k++) {
		struct point *p = &(*points)[k - i.begin];
		uint64_t corner = mix(k) % 16;

		p->x = (double)(corner % 4) + uniform(5 * k) - uniform(5 * k + 1);
		p->y = (double)(corner / 4) + uniform(5 * k + 2) - uniform(5 * k + 3);
	}
}

static double square_distance(struct point p, struct point q)
{
	return (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y);
}

KDDS_TASK(assign, READ_EACH(struct point, points), UPDATE_EACH(int, clusters),
	  READ_ARRAY(struct point, centres), REDUCE_ARRAY(struct sum, sums, &joint),
	  REDUCE(long, changed, KDDS_SUM(long)))
{
	size_t k = kdds_count(centres);

	for (size_t i = 0; i < kdds_count(points); i++) {
		struct point p = (*points)[i];
		double least = square_distance(p, (*centres)[0]);
		int nearest = 0;

		for (size_t c = 1; c < k; c++) {
			double square = square_distance(p, (*centres)[c]);

			if (square < least) {
				least = square;
				nearest = (int)c;
			}
		}
		**changed += (*clusters)[i] != nearest;
		(*clusters)[i] = nearest;
		kdds_combine(joint, &(*sums)[nearest], (&(struct sum){p, 1, least}));
	}
}

/* Moves the centres to the means of their points. A centre without points stays. Returns the sum of
 * the squares of all distances. */
static double move(struct point *centre, const struct sum *sum, long k)
{
	double squares = 0;

	for (long c = 0; c < k; c++) {
		squares += sum[c].squares;
		if (sum[c].points) {
			centre[c].x = sum[c].at.x / (double)sum[c].points;
			centre[c].y = sum[c].at.y / (double)sum[c].points;
		}
	}
	return squares;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	long n, k, most, step = 0, moved = 0;
	struct point *point, *centre;
	struct sum *sum;
	int *cluster;
	double squares, t;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 2, 3, &argc);
	n = integer("N", argv[0], 1, 100000000);
	k = integer("K", argv[1], 1, n < 1000 ? n : 1000);
	most = argc > 2 ? integer("STEPS", argv[2], 1, 1000) : 100;

	start();
	point = allocate((size_t)n, sizeof(*point));
	cluster = allocate((size_t)n, sizeof(*cluster));
	centre = allocate((size_t)k, sizeof(*centre));
	sum = allocate((size_t)k, sizeof(*sum));
	KDDS_OVER_ARRAY(struct point, points, point, n);
	KDDS_OVER_ARRAY(int, clusters, cluster, n);
	KDDS_OVER_ARRAY(struct point, centres, centre, k);
	KDDS_OVER_ARRAY(struct sum, sums, sum, k);
	KDDS_OVER(long, changed, &moved);

	kdds_for(scatter, kdds_range(0, (size_t)n), points);
	kdds_sync();
	kdds_freeze(points);
	for (long i = 0; i < n; i++)
		cluster[i] = -1;
	for (long c = 0; c < k; c++)
		centre[c] = point[c * (n / k)];
	t = now();
	do {
		moved = 0;
		for (long c = 0; c < k; c++)
			sum[c] = (struct sum){{0, 0}, 0, 0};
		kdds_for(assign, points, clusters, centres, sums, changed);
		kdds_wait(sums);
		kdds_wait(changed);
		squares = move(centre, sum, k);
	} while (++step < most && moved);
	kdds_sync();
	t = now() - t;
	kdds_thaw(points);

	printf("kmeans(%ld, %ld): %ld steps, %ld points changed in the last\n", n, k, step, moved);
	printf("mean square distance = %.17g\n", squares / (double)n);
	free(sum);
	free(centre);
	free(cluster);
	free(point);
	return finish(t, true);
}
