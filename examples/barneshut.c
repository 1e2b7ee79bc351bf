/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gravitation among many bodies, after Barnes and Hut, "A hierarchical O(N log N) force-calculation
 * algorithm" (1986). A cube of space with several bodies is divided into eight. From afar, its
 * bodies attract as one in their centre of mass.
 *
 * The cells lie in one array, depth first, each with the index of the cell that follows its
 * descendants, so a walk goes forward through the array and needs no pointers. Bodies are sorted
 * along a space-filling curve, so those of a cell are neighbours. main builds the tree. Two loops
 * over the bodies do the rest:
 *
 *   attract  acceleration of a body = what the cells of the tree add to it
 *   move     its speed and its place a step later
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"barneshut", "BODIES [STEPS]",
	"Moves bodies that attract each other, and compares some of the last forces with sums over\n"
	"all bodies.\n"
	"\n"
	"  BODIES  2 to 100000000\n"
	"  STEPS   1 to 1000000 (default 10)\n"
	"\n"
	"Try 100000.\n"
};

#define LEVELS 20     /* of the tree: three bits of a key for each */
#define THETA 0.5     /* a cell is far away if its edge, over the distance, is less */
#define SOFTENING 0.01 /* keeps forces finite */
#define STEP 0.001
#define SAMPLES 100

struct vector {
	double x, y, z;
};

struct body {
	struct vector at, speed;
	uint64_t key; /* the place on the curve */
};

struct cell {
	struct vector at; /* the centre of mass */
	double mass;
	double edge;   /* 0: a leaf */
	uint32_t skip; /* the cell that follows the descendants */
};

static struct vector pull(struct vector from, struct vector to, double mass)
{
	struct vector d = {to.x - from.x, to.y - from.y, to.z - from.z};
	double r2 = d.x * d.x + d.y * d.y + d.z * d.z + SOFTENING * SOFTENING;
	double f = mass / (r2 * sqrt(r2));

	return (struct vector){f * d.x, f * d.y, f * d.z};
}

static void add(struct vector *sum, struct vector v)
{
	sum->x += v.x;
	sum->y += v.y;
	sum->z += v.z;
}

static struct vector attraction(struct vector at, const struct cell *cells, uint32_t count)
{
	struct vector sum = {0, 0, 0};

	for (uint32_t i = 0; i < count;) {
		const struct cell *c = &cells[i];
		double x = c->at.x - at.x, y = c->at.y - at.y, z = c->at.z - at.z;

		if (c->edge * c->edge >= THETA * THETA * (x * x + y * y + z * z) && c->edge > 0) {
			i++;
			continue;
		}
		add(&sum, pull(at, c->at, c->mass));
		i = c->skip;
	}
	return sum;
}

KDDS_TASK(attract, READ_EACH(struct body, bodies), READ_ARRAY(struct cell, cells),
	  WRITE_EACH(struct vector, forces))
{
	for (size_t i = 0; i < kdds_count(bodies); i++)
		(*forces)[i] = attraction((*bodies)[i].at, *cells, (uint32_t)kdds_count(cells));
}

KDDS_TASK(move, UPDATE_EACH(struct body, bodies), READ_EACH(struct vector, forces))
{
	for (size_t i = 0; i < kdds_count(bodies); i++) {
		struct body *b = &(*bodies)[i];
		struct vector f = (*forces)[i];

		add(&b->speed, (struct vector){STEP * f.x, STEP * f.y, STEP * f.z});
		f = b->speed;
		add(&b->at, (struct vector){STEP * f.x, STEP * f.y, STEP * f.z});
	}
}

/* Two clouds that rotate. */
KDDS_TASK(scatter, RANGE(i), WRITE_EACH(struct body, bodies))
{
	for (size_t k = i.begin; k < i.end; k++) {
		double r = 0.5 * sqrt(uniform(4 * k)), angle = 6.283185307 * uniform(4 * k + 1);
		double height = 0.1 * (uniform(4 * k + 2) - 0.5), side = k % 2 ? 0.7 : -0.7;

		(*bodies)[k - i.begin] = (struct body){
			.at = {side + r * cos(angle), r * sin(angle), height},
			.speed = {-sin(angle) * r, cos(angle) * r, 0}};
	}
}

/* Three numbers of LEVELS bits, bit by bit by turns. */
static uint64_t interleave(uint64_t x, uint64_t y, uint64_t z)
{
	uint64_t key = 0;

	for (int bit = LEVELS - 1; bit >= 0; bit--)
		key = key << 3 | (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1);
	return key;
}

static int compare_keys(const void *a, const void *b)
{
	const struct body *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Sorts the bodies along the curve. Returns the edge of a cube that contains them all. */
static double sort(struct body *bodies, size_t n)
{
	double most = 0, scale;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, fmax(fabs(bodies[i].at.x),
				       fmax(fabs(bodies[i].at.y), fabs(bodies[i].at.z))));
	most *= 1.001;
	scale = (double)(1 << LEVELS) / (2 * most);
	for (size_t i = 0; i < n; i++) {
		struct vector at = bodies[i].at;

		bodies[i].key = interleave((uint64_t)((at.x + most) * scale),
					   (uint64_t)((at.y + most) * scale),
					   (uint64_t)((at.z + most) * scale));
	}
	qsort(bodies, n, sizeof(*bodies), compare_keys);
	return 2 * most;
}

/* Adds a cell for n bodies, which share a cube at that level, and cells for its parts. Returns the
 * number of cells. A cube whose bodies are all in one part has no cell of its own, so there are
 * fewer than 2 n. */
static uint32_t build(struct cell *cells, uint32_t count, const struct body *bodies, size_t n,
		      int level, double edge)
{
	struct cell *c = &cells[count++];

	while (level && (bodies[0].key ^ bodies[n - 1].key) >> 3 * (level - 1) == 0) {
		level--;
		edge /= 2;
	}
	*c = (struct cell){.edge = level ? edge : 0};
	for (size_t i = 0; i < n; i++) {
		c->mass += 1.0;
		add(&c->at, bodies[i].at);
	}
	c->at = (struct vector){c->at.x / c->mass, c->at.y / c->mass, c->at.z / c->mass};
	for (size_t i = 0, k; level && i < n; i = k) {
		for (k = i + 1; k < n; k++)
			if ((bodies[k].key ^ bodies[i].key) >> 3 * (level - 1))
				break;
		count = build(cells, count, bodies + i, k - i, level - 1, edge / 2);
	}
	c->skip = count;
	return count;
}

/* Of some bodies: how far the forces are from sums over all bodies, relatively. */
static double error(const struct body *bodies, const struct vector *forces, size_t n)
{
	double off = 0, all = 0;

	for (size_t s = 0; s < SAMPLES; s++) {
		size_t i = s * n / SAMPLES;
		struct vector sum = {0, 0, 0}, f = forces[i];

		for (size_t k = 0; k < n; k++)
			add(&sum, pull(bodies[i].at, bodies[k].at, 1.0));
		off += fabs(f.x - sum.x) + fabs(f.y - sum.y) + fabs(f.z - sum.z);
		all += fabs(sum.x) + fabs(sum.y) + fabs(sum.z);
	}
	return off / all;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	struct body *body;
	struct cell *cell;
	struct vector *force;
	double t, off;
	size_t n;
	long steps;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 1, 2, &argc);
	n = (size_t)integer("BODIES", argv[0], 2, 100000000);
	steps = argc > 1 ? integer("STEPS", argv[1], 1, 1000000) : 10;
	body = allocate(n, sizeof(*body));
	force = allocate(n, sizeof(*force));
	cell = allocate(2 * n, sizeof(*cell));

	start();
	KDDS_OVER_ARRAY(struct body, bodies, body, n);
	KDDS_OVER_ARRAY(struct vector, forces, force, n);
	kdds_for(scatter, kdds_range(0, n), bodies);
	t = now();
	for (long s = 0; s < steps; s++) {
		double edge;

		kdds_wait(bodies);
		edge = sort(body, n);
		KDDS_OVER_ARRAY(struct cell, cells, cell, build(cell, 0, body, n, LEVELS, edge));
		kdds_for(attract, bodies, cells, forces);
		if (s < steps - 1)
			kdds_for(move, bodies, forces);
	}
	kdds_sync();
	t = now() - t;

	off = error(body, force, n);
	printf("barneshut(%zu): %ld steps, forces differ from sums by %.4f\n", n, steps, off);
	free(cell);
	free(force);
	free(body);
	return finish(t, off < 0.02);
}
