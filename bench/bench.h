/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The benchmark is one set of problems (problems.c), one main (main.c) and, for each library
 * compared, one program that solves them as users of that library would: kdds.c, openmp.c, tbb.cc,
 * starpu.c. problems.c also has the sequential C that all are measured against, and checks every
 * result. So two programs differ only in how they create tasks: what the tasks compute is compiled
 * once, by one compiler, except the few inline functions below.
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

/* A lower triangular matrix of nt x nt tiles: at[i * nt + j], i >= j. Each tile has nb x nb
 * elements, row-major and contiguous. */
struct tiles {
	long n, nb, nt; /* n = nt * nb */
	double **at;
};

/* Two grids of (n + 2) x (n + 2) points, including the boundary, row-major; ld = n + 2. Jacobi
 * steps alternate between them. Tiles have nb x nb points, nt = n / nb in each direction. */
struct plate {
	long n, nb, nt, ld, steps;
	double *grid[2]; /* step s reads grid[s % 2] */
};

/* The queens of the rows above, by column. */
struct board {
	signed char column[16];
};

/* A node of an unbalanced tree: the digest that determines its children, its depth, and its
 * tree. */
struct uts_node {
	uint32_t digest[5];
	int16_t depth, tree;
};

/*
 * What a program provides for main.c. The function of a workload solves the problem and returns
 * when done; NULL: users of this library would not write such a program. It is called between start
 * and stop.
 */
struct backend {
	const char *name;              /* as in the tables */
	const char *(*version)(void);  /* of the library and, where that matters, of the compiler */
	bool (*start)(int workers);    /* 0: the library's default. False after a line on stderr */
	bool (*stop)(void);            /* the same */
	int (*workers)(void);
	int (*ranks)(void);            /* processes of the job; NULL: 1 */
	bool (*is_root)(void);         /* whether this process poses the problems; NULL: yes */
	/* the library's own counters since start, one line; NULL: none */
	void (*stats)(FILE *out);
	void (*help)(FILE *out);       /* the end of --help; NULL: nothing */

	long (*fib)(int n, int cutoff);          /* below cutoff: fib_plain */
	/* the sum is a separate task that waits for both results */
	long (*fib_dataflow)(int n);
	double (*integrate)(double to);          /* integrand from 0, adaptive, INTEGRATE_EPSILON */
	long (*nqueens)(int n);                  /* a task for each queen that can be placed */
	long (*uts)(const struct uts_node *root); /* nodes of the tree */
	void (*chain)(long n, long *x);          /* n tasks that update x: chain_step */
	void (*independent)(long n, long *v);    /* task i writes v[i]: independent_step */
	long (*reduce)(long n);                  /* task i adds i to a sum */
	/* Task (i, j) writes v[i % rows][j] from [(i - 1) % rows][j] and [i % rows][j - 1]:
	 * wavefront_step; 1 <= i, j <= n. v has rows of n + 1. */
	void (*wavefront)(long n, long rows, long *v);
	void (*wavefront_rows)(long n, long rows, long *v); /* the same for fewer rows than n + 1 */
	void (*cholesky)(struct tiles *a);
	void (*stencil)(struct plate *p);
	void (*grain)(long n, long steps, long *v); /* task i writes v[i]: grain_step */
	/* In each round task i writes v[1 - r][i] from v[r][i] and v[r][i + 1], the last one from
	 * v[r][0]: narrow_step. r is 0 in the first round, 1 in the next. v has 2 rows. */
	void (*narrow)(long columns, long rounds, long steps, long *v);
	void (*triad)(long n, double s, const double *b, const double *c, double *a);
	double (*dot)(long n, const double *x, const double *y);
	/* c = a b, n x n, row-major; a parallel loop over rows, and one over columns in its body */
	void (*matmul)(long n, const double *a, const double *b, double *c);
	void (*skewed)(long n, long *v); /* index i writes v[i]: grain_step of skewed_steps */
	/* Task (i, j) writes v[i][j] from [i - 1][j] and [i][j - 1]: narrow_step; 1 <= i, j <= n. v
	 * has rows of n + 1. Each also adds 1 to a sum; the sum. */
	long (*wavefront_reduce)(long n, long steps, long *v);
};

/* Each program defines its own, and the name it has on the command line. */
extern const struct backend backend;
extern const char program_name[];

/* problems.c: what tasks do, and the sequential programs */

long fib_plain(int n);
void grain_step(long i, long steps, long *x);
void narrow_step(const long *a, const long *b, long steps, long *x);

/* loops.c: a part of n elements, or of a row of c; the steps of index i */
void triad_part(double s, const double *b, const double *c, double *a, long n);
double dot_part(const double *x, const double *y, long n);
void matmul_part(long n, const double *a, const double *b, double *c, long columns);
long skewed_steps(long i);

void potrf(double *a, int nb);
void trsm(const double *l, double *a, int nb);
void syrk(const double *l, double *a, int nb);
void gemm(const double *l, const double *r, double *a, int nb);

/* One row of a tile from the row, those above and below it, and the points left and right of it. */
void stencil_row(double *to, const double *row, const double *above, const double *below,
		 double left, double right, long cols);
/* The tile that starts at the given point; ld points in a row of both grids. */
void stencil_tile(double *to, const double *from, long ld, long rows, long cols);

/* uts.c: the trees, the children of a node, and the number of nodes of a published tree; 0 of
 * others */
enum { UTS_T1, UTS_T3, UTS_SMALL_T1, UTS_SMALL_T3 };
void uts_root(int tree, struct uts_node *root);
int uts_children(const struct uts_node *node);
void uts_child(const struct uts_node *node, int i, struct uts_node *child);
long uts_nodes(int tree);

/* The tasks of the overhead benchmarks: just enough work for the result to show that each has run,
 * and in the right order. */

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
 * The clock runs around a workload's function. If a function prepares something that users would
 * prepare once for many runs, it calls clock_start again afterwards; if it has to clean up, it
 * calls clock_stop before. The last start and the first stop after it count.
 */
void clock_start(void);
void clock_stop(void);
double now(void);

/* One line on stderr, then exit with status 1. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *allocate(size_t count, size_t size);

/* The interface between main.c, problems.c and loops.c. */

#define MAX_SIZES 3

struct workload {
	const char *name, *help;
	const char *sizes;      /* the names of what --size sets, "N,TILE"; NULL: one size only */
	long size[MAX_SIZES];   /* the size measured */
	long quick[MAX_SIZES];  /* for checking and for warming up */
	long max[MAX_SIZES];
	const char *unit;
	size_t needs;           /* offset of the function in struct backend */
	/* Solves the problem once and checks the result; b NULL: sequentially. Returns the number
	 * of units; the clock has the time. */
	double (*run)(const struct backend *b, const long *size, bool quick);
};

extern const struct workload workloads[];
extern const int nworkloads;

/* Whether the program has a function for the workload. */
bool has(const struct backend *b, const struct workload *w);
/* Ends the program unless x has the expected value. */
void expect(const char *what, long x, long expected);
/* loops.c: as struct workload */
double run_triad(const struct backend *b, const long *size, bool quick);
double run_dot(const struct backend *b, const long *size, bool quick);
double run_matmul(const struct backend *b, const long *size, bool quick);
double run_skewed(const struct backend *b, const long *size, bool quick);
double run_wavefront_reduce(const struct backend *b, const long *size, bool quick);
double clock_seconds(void);

#ifdef __cplusplus
}
#endif
#endif
