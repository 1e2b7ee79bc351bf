/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The benchmark is one set of problems (problems.c), one main (main.c) and, for each library that is compared, one program
 * that solves them as its users would: kdds.c, openmp.c, tbb.cc, starpu.c. The sequential C they are all measured against is
 * in problems.c, with the check of every result. So what differs between two programs is how they make tasks, and nothing else:
 * what the tasks compute is compiled once, by one compiler, but for the few inline functions below.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lower triangular matrix of nt x nt tiles, each nb x nb, row-major and by itself in memory: at[i * nt + j], i >= j. */
struct tiles {
	long n, nb, nt; /* n = nt * nb */
	double **at;
};

/* Two grids of (n + 2) x (n + 2) points, the rim included, row-major; ld = n + 2. Jacobi steps lead from one to the other and
 * back; tiles have nb x nb points, nt = n / nb in each direction. */
struct plate {
	long n, nb, nt, ld, steps;
	double *grid[2]; /* step s reads grid[s % 2] */
};

/* Queens on the rows above, by column. */
struct board {
	signed char column[16];
};

/* A node of an unbalanced tree: the digest from which its children's follow, its depth, and the tree it is in. */
struct uts_node {
	uint32_t digest[5];
	int16_t depth, tree;
};

/*
 * What a program gives to main.c. A workload's function solves the problem and returns when it is done; NULL: this library's
 * users would not write such a program. They are called between start and stop.
 */
struct backend {
	const char *name;              /* as tables have it */
	const char *(*version)(void);  /* of the library and, where that matters, of the compiler */
	bool (*start)(int workers);    /* 0: as many as the library thinks right. False after a line on stderr */
	bool (*stop)(void);            /* likewise */
	int (*workers)(void);
	int (*ranks)(void);            /* processes that work together; NULL: 1 */
	bool (*is_root)(void);         /* whether the problems are posed in this process; NULL: yes */
	void (*stats)(FILE *out);      /* the library's own counters since start, one line; NULL: none */
	void (*help)(FILE *out);       /* the end of --help; NULL: nothing */

	long (*fib)(int n, int cutoff);          /* below cutoff: fib_plain */
	long (*fib_dataflow)(int n);             /* the sum is a task of its own, which waits for both calls' results */
	double (*integrate)(double to);          /* of integrand from 0, adaptively, INTEGRATE_EPSILON */
	long (*nqueens)(int n);                  /* a task for each queen that can be placed */
	long (*uts)(const struct uts_node *root); /* nodes of the tree */
	void (*chain)(long n, long *x);          /* n tasks that update x: chain_step */
	void (*independent)(long n, long *v);    /* task i writes v[i]: independent_step */
	long (*reduce)(long n);                  /* task i adds i to a sum */
	/* Task (i, j) writes v[i % rows][j] from [(i - 1) % rows][j] and [i % rows][j - 1]: wavefront_step; 1 <= i, j <= n.
	 * v has rows of n + 1. */
	void (*wavefront)(long n, long rows, long *v);
	void (*wavefront_rows)(long n, long rows, long *v); /* the same for fewer rows than n + 1 */
	void (*cholesky)(struct tiles *a);
	void (*stencil)(struct plate *p);
	void (*grain)(long n, long steps, long *v); /* task i writes v[i]: grain_step */
};

/* Each program defines its own, and the name it has on the command line. */
extern const struct backend backend;
extern const char program_name[];

/* problems.c: what tasks do, and the sequential programs */

long fib_plain(int n);
void grain_step(long i, long steps, long *x);

void potrf(double *a, int nb);
void trsm(const double *l, double *a, int nb);
void syrk(const double *l, double *a, int nb);
void gemm(const double *l, const double *r, double *a, int nb);

/* One row of a tile from the row, those above and below it, and the points left and right of it. */
void stencil_row(double *to, const double *row, const double *above, const double *below, double left, double right, long cols);
/* The tile whose first point is the given one; both in grids of ld points in a row. */
void stencil_tile(double *to, const double *from, long ld, long rows, long cols);

/* uts.c: the trees, how a node's children are found, the sequential program, and how many nodes it has to find */
enum { UTS_T1, UTS_T3, UTS_SMALL_T1, UTS_SMALL_T3 };
void uts_root(int tree, struct uts_node *root);
int uts_children(const struct uts_node *node);
void uts_child(const struct uts_node *node, int i, struct uts_node *child);
long uts_plain(const struct uts_node *node);
long uts_nodes(int tree);

/* The tasks that do next to nothing: enough for the result to tell whether each has run, and in its turn. */

static inline void chain_step(long *x)
{
	++*x;
}

static inline void independent_step(long i, long *x)
{
	*x = i + 1;
}

static inline void wavefront_step(const long *up, const long *left, long *here)
{
	*here = (long)((unsigned long)*up + (unsigned long)*left);
}

#define INTEGRATE_EPSILON 1e-9

static inline double integrand(double x)
{
	return (x * x + 1.0) * x;
}

static inline bool board_safe(const struct board *b, int row, int column)
{
	for (int r = 0; r < row; r++) {
		int d = b->column[r] - column;

		if (!d || d == row - r || d == r - row)
			return false;
	}
	return true;
}

/*
 * Time is taken around a workload's function. One that has preparations to make which its users would make once for many such
 * runs calls clock_start again after them, and one that has to clean up calls clock_stop before: the last start and the first
 * stop after it count.
 */
void clock_start(void);
void clock_stop(void);
double now(void);

/* One line on stderr, then exit with status 1. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *allocate(size_t count, size_t size);

/* What main.c asks of problems.c. */

#define MAX_SIZES 3

struct workload {
	const char *name, *help;
	const char *sizes;      /* names of what --size sets, "N,TILE"; NULL: nothing */
	long size[MAX_SIZES];   /* as measured */
	long quick[MAX_SIZES];  /* for a look at whether it works, and to warm up */
	long max[MAX_SIZES];
	const char *unit;
	size_t needs;           /* offset of the function in struct backend */
	/* Solves and checks it once: b NULL is the sequential program. Returns the number of units; the clock has the time. */
	double (*run)(const struct backend *b, const long *size, bool quick);
};

extern const struct workload workloads[];
extern const int nworkloads;

/* Whether the program has a function for it. */
bool has(const struct backend *b, const struct workload *w);
double clock_seconds(void);

#ifdef __cplusplus
}
#endif
#endif
