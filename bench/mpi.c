/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * examples/cg, heat and kmeans as programs of MPI: each process has a block of the rows, or of the
 * points, and sends its neighbours the rows at the edges. They compute the same from the same data
 * and print the time of the same part, as
 *
 *   T = SECONDS s
 *
 *   mpi cg N STEPS | heat N STEPS | kmeans N K STEPS
 *
 * The results are those of the examples, except that sums are rounded otherwise. bench/mpi-run
 * compares the times.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void *allocate(size_t count, size_t bytes)
{
	void *p = calloc(count, bytes);

	if (!p) {
		fprintf(stderr, "mpi: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* Sends the first and the last of the rows, with the ld values of each, and receives those next to
 * them. at is the row before the first one. */
static void exchange(double *at, long rows, long ld)
{
	int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;

	MPI_Sendrecv(at + ld, (int)ld, MPI_DOUBLE, up, 0, at + (rows + 1) * ld, (int)ld, MPI_DOUBLE,
		     down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(at + rows * ld, (int)ld, MPI_DOUBLE, down, 1, at, (int)ld, MPI_DOUBLE, up, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double sum_of(double x)
{
	MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return x;
}

static long begin_of(long n, int r)
{
	return n * r / size;
}

static double cg(long n, long most)
{
	long rows = begin_of(n, rank + 1) - begin_of(n, rank), ld = n + 2, step = 0;
	double *p = allocate((size_t)((rows + 2) * ld), sizeof(*p));
	double *q = allocate((size_t)(rows * n), sizeof(*q));
	double *x = allocate((size_t)(rows * n), sizeof(*x));
	double *r = allocate((size_t)(rows * n), sizeof(*r));
	double rr = (double)n * (double)n, first = rr, t;

	for (long i = 0; i < rows * n; i++) {
		r[i] = 1;
		p[(i / n + 1) * ld + i % n + 1] = 1;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	do {
		double pq = 0, next = 0, a, b;

		exchange(p, rows, ld);
		for (long i = 0; i < rows; i++) {
			const double *at = p + (i + 1) * ld, *up = at - ld, *down = at + ld;

			for (long c = 0; c < n; c++) {
				double y = 4 * at[c + 1] - (at[c] + at[c + 2]) -
					   (up[c + 1] + down[c + 1]);

				q[i * n + c] = y;
				pq += at[c + 1] * y;
			}
		}
		a = rr / sum_of(pq);
		for (long i = 0; i < rows; i++)
			for (long c = 0; c < n; c++) {
				double *to = r + i * n + c;

				x[i * n + c] += a * p[(i + 1) * ld + c + 1];
				*to -= a * q[i * n + c];
				next += *to * *to;
			}
		next = sum_of(next);
		b = next / rr;
		rr = next;
		for (long i = 0; i < rows; i++)
			for (long c = 0; c < n; c++) {
				double *to = p + (i + 1) * ld + c + 1;

				*to = r[i * n + c] + b * *to;
			}
	} while (++step < most && rr > 1e-16 * first);
	t = MPI_Wtime() - t;
	if (!rank)
		printf("cg(%ld): %ld steps, residual %.9g\n", n, step, sqrt(rr));
	free(p);
	free(q);
	free(x);
	free(r);
	return t;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static double uniform(uint64_t x)
{
	return (double)(mix(x) >> 11) * 0x1p-53;
}

/* Of the block that begins behind row `first' of the grid, with the rows before and after it. */
static double *new_points(long first, long rows, long n)
{
	long ld = n + 2;
	double *at = allocate((size_t)((rows + 2) * ld), sizeof(*at));

	for (long r = 0; r < rows + 2; r++)
		for (long c = 0; c < ld; c++)
			if (!(first + r))
				at[c] = 100;
			else if (first + r <= n && c && c <= n)
				at[r * ld + c] = 50 * uniform((uint64_t)((first + r) * ld + c));
	return at;
}

static double step_row(double *restrict y, const double *x, const double *above,
		       const double *below, size_t cols)
{
	double most = 0;

	for (size_t c = 0; c < cols; c++) {
		double change;

		y[c] = 0.25 * ((x[c] + x[c + 2]) + (above[c + 1] + below[c + 1]));
		change = fabs(y[c] - x[c + 1]);
		most = change > most ? change : most;
	}
	return most;
}

static double heat(long n, long most)
{
	long first = begin_of(n, rank), rows = begin_of(n, rank + 1) - first, ld = n + 2, step = 0;
	double *x = new_points(first, rows, n), *y = new_points(first, rows, n), change, t;

	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	do {
		double *swap = x;

		change = 0;
		exchange(x, rows, ld);
		for (long r = 1; r <= rows; r++) {
			double row = step_row(y + r * ld + 1, x + r * ld, x + (r - 1) * ld,
					      x + (r + 1) * ld, (size_t)n);

			change = row > change ? row : change;
		}
		MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		x = y;
		y = swap;
	} while (++step < most && change > 1e-3);
	t = MPI_Wtime() - t;
	if (!rank)
		printf("heat(%ld): %ld steps, the last changed a point by %.9f\n", n, step, change);
	free(x);
	free(y);
	return t;
}

struct point {
	double x, y;
};

/* For MPI_Allreduce of doubles: the number of points, too. */
struct sum {
	double x, y, points, squares;
};

static struct point scattered(uint64_t k)
{
	uint64_t corner = mix(k) % 16;

	return (struct point){(double)(corner % 4) + uniform(5 * k) - uniform(5 * k + 1),
			      (double)(corner / 4) + uniform(5 * k + 2) - uniform(5 * k + 3)};
}

static double square_distance(struct point p, struct point q)
{
	return (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y);
}

static long assign(const struct point *point, int *cluster, long n, const struct point *centre,
		   struct sum *sum, long k)
{
	long changed = 0;

	for (long i = 0; i < n; i++) {
		struct point p = point[i];
		double least = square_distance(p, centre[0]);
		int nearest = 0;

		for (long c = 1; c < k; c++) {
			double square = square_distance(p, centre[c]);

			if (square < least) {
				least = square;
				nearest = (int)c;
			}
		}
		changed += cluster[i] != nearest;
		cluster[i] = nearest;
		sum[nearest].x += p.x;
		sum[nearest].y += p.y;
		sum[nearest].points++;
		sum[nearest].squares += least;
	}
	return changed;
}

static double kmeans(long n, long k, long most)
{
	long first = begin_of(n, rank), mine = begin_of(n, rank + 1) - first, step = 0, changed;
	struct point *point = allocate((size_t)mine, sizeof(*point));
	struct point *centre = allocate((size_t)k, sizeof(*centre));
	struct sum *sum = allocate((size_t)k, sizeof(*sum));
	int *cluster = allocate((size_t)mine, sizeof(*cluster));
	double t;

	for (long i = 0; i < mine; i++) {
		point[i] = scattered((uint64_t)(first + i));
		cluster[i] = -1;
	}
	for (long c = 0; c < k; c++)
		centre[c] = scattered((uint64_t)(c * (n / k)));
	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	do {
		memset(sum, 0, (size_t)k * sizeof(*sum));
		changed = assign(point, cluster, mine, centre, sum, k);
		MPI_Allreduce(MPI_IN_PLACE, sum, (int)(4 * k), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		MPI_Allreduce(MPI_IN_PLACE, &changed, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		for (long c = 0; c < k; c++)
			if (sum[c].points > 0)
				centre[c] = (struct point){sum[c].x / sum[c].points,
							   sum[c].y / sum[c].points};
	} while (++step < most && changed);
	t = MPI_Wtime() - t;
	if (!rank)
		printf("kmeans(%ld, %ld): %ld steps, %ld points changed in the last\n", n, k, step,
		       changed);
	free(point);
	free(centre);
	free(sum);
	free(cluster);
	return t;
}

static long number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || n < 1) {
		fprintf(stderr, "mpi: %s: a number above 0 is expected\n", text);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return n;
}

int main(int argc, char **argv)
{
	double t = -1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc == 4 && !strcmp(argv[1], "cg"))
		t = cg(number(argv[2]), number(argv[3]));
	else if (argc == 4 && !strcmp(argv[1], "heat"))
		t = heat(number(argv[2]), number(argv[3]));
	else if (argc == 5 && !strcmp(argv[1], "kmeans"))
		t = kmeans(number(argv[2]), number(argv[3]), number(argv[4]));
	else if (!rank)
		fprintf(stderr, "usage: mpi cg N STEPS | heat N STEPS | kmeans N K STEPS\n");
	MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	if (!rank && t >= 0)
		printf("T = %.6f s\n", t);
	MPI_Finalize();
	return t < 0 ? 2 : 0;
}
