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
#include <string.h>

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
#define DIGIT 12      /* bits of a key that are sorted by at a time */
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

/* What is sorted, instead of bodies. */
struct entry {
	uint64_t key;
	size_t body;
};

struct cell {
	struct vector at; /* the centre of mass */
	double mass;
	float edge;    /* 0: a leaf */
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

/* The bits of a number of LEVELS bits, with two zeros before each. */
static uint64_t stretch(uint64_t x)
{
	x = (x | x << 32) & 0x001f00000000ffff;
	x = (x | x << 16) & 0x001f0000ff0000ff;
	x = (x | x << 8) & 0x100f00f00f00f00f;
	x = (x | x << 4) & 0x10c30c30c30c30c3;
	return (x | x << 2) & 0x1249249249249249;
}

/* Sorts entries by key, DIGIT bits at a time, the least significant first, by way of n others.
 * Returns which of the two has the result. */
static struct entry *sort_entries(struct entry *from, struct entry *to, size_t n)
{
	for (int shift = 0; shift < 3 * LEVELS; shift += DIGIT) {
		size_t at[1 << DIGIT] = {0}, sum = 0;
		struct entry *sorted = to;

		for (size_t i = 0; i < n; i++)
			at[from[i].key >> shift & ((1 << DIGIT) - 1)]++;
		for (size_t d = 0; d < 1 << DIGIT; d++) {
			size_t count = at[d];

			at[d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			to[at[from[i].key >> shift & ((1 << DIGIT) - 1)]++] = from[i];
		to = from;
		from = sorted;
	}
	return from;
}

/* Sorts the bodies along the curve, with room for as many and for two entries each. Returns the
 * edge of a cube that contains them all. */
static double sort(struct body *bodies, struct body *room, struct entry *entries, size_t n)
{
	double most = 0, scale;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, fmax(fabs(bodies[i].at.x),
				       fmax(fabs(bodies[i].at.y), fabs(bodies[i].at.z))));
	most *= 1.001;
	scale = (double)(1 << LEVELS) / (2 * most);
	for (size_t i = 0; i < n; i++) {
		struct vector at = bodies[i].at;

		bodies[i].key = stretch((uint32_t)((at.x + most) * scale)) << 2 |
				stretch((uint32_t)((at.y + most) * scale)) << 1 |
				stretch((uint32_t)((at.z + most) * scale));
		entries[i] = (struct entry){bodies[i].key, i};
	}
	entries = sort_entries(entries, entries + n, n);
	memcpy(room, bodies, n * sizeof(*bodies));
	for (size_t i = 0; i < n; i++)
		bodies[i] = room[entries[i].body];
	return 2 * most;
}

/* The level of the smallest cube that has two keys; 0: they are the same. */
static int common_level(uint64_t a, uint64_t b)
{
	return a == b ? 0 : (63 - __builtin_clzll(a ^ b)) / 3 + 1;
}

/* Adds a cell for n bodies, which share a cube at that level, and cells for its parts. Returns the
 * number of cells. A cube whose bodies are all in one part has no cell of its own, so there are
 * fewer than 2 n. */
static uint32_t build(struct cell *cells, uint32_t count, const struct body *bodies, size_t n,
		      int level, double edge)
{
	struct cell *c = &cells[count++];
	int common = common_level(bodies[0].key, bodies[n - 1].key);
	struct vector sum = {0, 0, 0};
	double mass = 0;

	edge = ldexp(edge, common - level);
	for (size_t i = 0, k; i < n; i = k) {
		struct vector at = bodies[i].at;
		double m = 1;

		for (k = i + 1; common && k < n; k++)
			if (common_level(bodies[k].key, bodies[i].key) == common)
				break;
		if (common) {
			uint32_t part = count;

			count = build(cells, count, bodies + i, k - i, common - 1, edge / 2);
			at = cells[part].at;
			m = cells[part].mass;
		}
		add(&sum, (struct vector){m * at.x, m * at.y, m * at.z});
		mass += m;
	}
	*c = (struct cell){.at = {sum.x / mass, sum.y / mass, sum.z / mass},
			   .mass = mass, .edge = common ? (float)edge : 0, .skip = count};
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
	struct body *body, *room;
	struct entry *entry;
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
	room = allocate(n, sizeof(*room));
	entry = allocate(2 * n, sizeof(*entry));
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
		edge = sort(body, room, entry, n);
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
	free(entry);
	free(room);
	free(body);
	return finish(t, off < 0.02);
}
