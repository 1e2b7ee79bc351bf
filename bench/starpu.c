/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The problems with StarPU's sequential task flow: codelets and starpu_task_insert. Its tasks do
 * not create tasks, so recursion is left out. Data are registered before the clock starts, since
 * users register them once.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include <starpu.h>

#include "bench.h"

const char program_name[] = "bench-starpu";

static const char *version(void)
{
	static char text[40];
	int major, minor, release;

	starpu_get_version(&major, &minor, &release);
	snprintf(text, sizeof(text), "%d.%d.%d", major, minor, release);
	return text;
}

static bool start(int workers)
{
	struct starpu_conf conf;
	int error;

	starpu_conf_init(&conf);
	conf.ncpus = workers ? workers : -1;
	conf.ncuda = conf.nopencl = 0;
	error = starpu_init(&conf);
	if (error)
		fprintf(stderr, "%s: starpu_init: error %d\n", program_name, error);
	return !error;
}

static bool stop(void)
{
	starpu_shutdown();
	return true;
}

static int workers(void)
{
	return (int)starpu_cpu_worker_get_count();
}

static void check(int error)
{
	if (error)
		fail("starpu_task_insert: error %d", error);
}

/* Handles for n consecutive long. */
static starpu_data_handle_t *register_longs(long *v, long n)
{
	starpu_data_handle_t *h = allocate((size_t)n, sizeof(*h));

	for (long i = 0; i < n; i++)
		starpu_variable_data_register(&h[i], STARPU_MAIN_RAM, (uintptr_t)&v[i], sizeof(*v));
	return h;
}

static void unregister(starpu_data_handle_t *h, long n)
{
	for (long i = 0; i < n; i++)
		if (h[i])
			starpu_data_unregister(h[i]);
	free(h);
}

#define LONG(buffer) ((long *)STARPU_VARIABLE_GET_PTR(buffer))

/* flat frames */

static void run_chain(void *buffers[], void *arg)
{
	(void)arg;
	chain_step(LONG(buffers[0]));
}

static struct starpu_codelet chain_codelet = {
	.cpu_funcs = {run_chain}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "chain"};

static void solve_chain(long n, long *x)
{
	starpu_data_handle_t *h = register_longs(x, 1);

	clock_start();
	for (long i = 0; i < n; i++)
		check(starpu_task_insert(&chain_codelet, STARPU_RW, *h, 0));
	starpu_task_wait_for_all();
	clock_stop();
	unregister(h, 1);
}

static void run_independent(void *buffers[], void *arg)
{
	long i;

	starpu_codelet_unpack_args(arg, &i);
	independent_step(i, LONG(buffers[0]));
}

static struct starpu_codelet independent_codelet = {
	.cpu_funcs = {run_independent}, .nbuffers = 1, .modes = {STARPU_W}, .name = "independent"};

static void solve_independent(long n, long *v)
{
	starpu_data_handle_t *h = register_longs(v, n);

	clock_start();
	for (long i = 0; i < n; i++)
		check(starpu_task_insert(&independent_codelet, STARPU_W, h[i], STARPU_VALUE, &i,
					 sizeof(i), 0));
	starpu_task_wait_for_all();
	clock_stop();
	unregister(h, n);
}

static void run_grain(void *buffers[], void *arg)
{
	long i, steps;

	starpu_codelet_unpack_args(arg, &i, &steps);
	grain_step(i, steps, LONG(buffers[0]));
}

static struct starpu_codelet grain_codelet = {
	.cpu_funcs = {run_grain}, .nbuffers = 1, .modes = {STARPU_W}, .name = "grain"};

static void solve_grain(long n, long steps, long *v)
{
	starpu_data_handle_t *h = register_longs(v, n);

	clock_start();
	for (long i = 0; i < n; i++)
		check(starpu_task_insert(&grain_codelet, STARPU_W, h[i], STARPU_VALUE, &i,
					 sizeof(i), STARPU_VALUE, &steps, sizeof(steps), 0));
	starpu_task_wait_for_all();
	clock_stop();
	unregister(h, n);
}

static void run_wavefront(void *buffers[], void *arg)
{
	(void)arg;
	wavefront_step(LONG(buffers[0]), LONG(buffers[1]), LONG(buffers[2]));
}

static struct starpu_codelet wavefront_codelet = {.cpu_funcs = {run_wavefront},
						  .nbuffers = 3,
						  .modes = {STARPU_R, STARPU_R, STARPU_W},
						  .name = "wavefront"};

static void solve_wavefront(long n, long rows, long *v)
{
	long w = n + 1;
	starpu_data_handle_t *h = register_longs(v, rows * w);

	clock_start();
	for (long i = 1; i <= n; i++)
		for (long j = 1; j <= n; j++)
			check(starpu_task_insert(&wavefront_codelet, STARPU_R, h[(i - 1) * w + j],
						 STARPU_R, h[i * w + j - 1], STARPU_W, h[i * w + j],
						 0));
	starpu_task_wait_for_all();
	clock_stop();
	unregister(h, rows * w);
}

/* cholesky */

#define TILE(buffer) ((double *)STARPU_MATRIX_GET_PTR(buffer))
#define ROWS(buffer) ((int)STARPU_MATRIX_GET_NX(buffer))

static void run_potrf(void *buffers[], void *arg)
{
	(void)arg;
	potrf(TILE(buffers[0]), ROWS(buffers[0]));
}

static void run_trsm(void *buffers[], void *arg)
{
	(void)arg;
	trsm(TILE(buffers[0]), TILE(buffers[1]), ROWS(buffers[1]));
}

static void run_syrk(void *buffers[], void *arg)
{
	(void)arg;
	syrk(TILE(buffers[0]), TILE(buffers[1]), ROWS(buffers[1]));
}

static void run_gemm(void *buffers[], void *arg)
{
	(void)arg;
	gemm(TILE(buffers[0]), TILE(buffers[1]), TILE(buffers[2]), ROWS(buffers[2]));
}

static struct starpu_codelet potrf_codelet = {
	.cpu_funcs = {run_potrf}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "potrf"};
static struct starpu_codelet trsm_codelet = {
	.cpu_funcs = {run_trsm}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "trsm"};
static struct starpu_codelet syrk_codelet = {
	.cpu_funcs = {run_syrk}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}, .name = "syrk"};
static struct starpu_codelet gemm_codelet = {.cpu_funcs = {run_gemm},
					     .nbuffers = 3,
					     .modes = {STARPU_R, STARPU_R, STARPU_RW},
					     .name = "gemm"};

static void solve_cholesky(struct tiles *m)
{
	long nt = m->nt;
	uint32_t nb = (uint32_t)m->nb;
	starpu_data_handle_t *h = allocate((size_t)(nt * nt), sizeof(*h));

	for (long i = 0; i < nt; i++)
		for (long j = 0; j <= i; j++)
			starpu_matrix_data_register(&h[i * nt + j], STARPU_MAIN_RAM,
						    (uintptr_t)m->at[i * nt + j], nb, nb, nb,
						    sizeof(double));
	clock_start();
	for (long k = 0; k < nt; k++) {
		check(starpu_task_insert(&potrf_codelet, STARPU_PRIORITY, STARPU_MAX_PRIO,
					 STARPU_RW, h[k * nt + k], 0));
		for (long i = k + 1; i < nt; i++)
			check(starpu_task_insert(&trsm_codelet, STARPU_R, h[k * nt + k], STARPU_RW,
						 h[i * nt + k], 0));
		for (long j = k + 1; j < nt; j++) {
			check(starpu_task_insert(&syrk_codelet, STARPU_R, h[j * nt + k], STARPU_RW,
						 h[j * nt + j], 0));
			for (long i = j + 1; i < nt; i++)
				check(starpu_task_insert(&gemm_codelet, STARPU_R, h[i * nt + k],
							 STARPU_R, h[j * nt + k], STARPU_RW,
							 h[i * nt + j], 0));
		}
	}
	starpu_task_wait_for_all();
	clock_stop();
	unregister(h, nt * nt);
}

/* stencil: a task declares its tile and the neighbours. Codelets know that these are adjacent in
 * memory. The boundary has no handle. */

static void run_stencil(void *buffers[], void *arg)
{
	long ld = STARPU_MATRIX_GET_LD(buffers[0]), nb = ROWS(buffers[0]);

	(void)arg;
	stencil_tile(TILE(buffers[5]), TILE(buffers[0]), ld, nb, nb);
}

static struct starpu_codelet stencil_codelet = {
	.cpu_funcs = {run_stencil}, .nbuffers = 6, .name = "stencil",
	.modes = {STARPU_R, STARPU_R, STARPU_R, STARPU_R, STARPU_R, STARPU_W}};

static starpu_data_handle_t *register_plate(const struct plate *p, double *grid)
{
	starpu_data_handle_t *h = allocate((size_t)(p->nt * p->nt), sizeof(*h));
	uint32_t ld = (uint32_t)p->ld, nb = (uint32_t)p->nb;

	for (long i = 0; i < p->nt; i++)
		for (long j = 0; j < p->nt; j++) {
			double *tile = grid + (1 + i * p->nb) * p->ld + 1 + j * p->nb;

			starpu_matrix_data_register(&h[i * p->nt + j], STARPU_MAIN_RAM,
						    (uintptr_t)tile, ld, nb, nb, sizeof(*tile));
		}
	return h;
}

static void solve_stencil(struct plate *p)
{
	starpu_data_handle_t *grid[2] = {register_plate(p, p->grid[0]),
					 register_plate(p, p->grid[1])};
	long nt = p->nt;

	clock_start();
	for (long s = 0; s < p->steps; s++)
		for (long i = 0; i < nt; i++)
			for (long j = 0; j < nt; j++) {
				starpu_data_handle_t *x = &grid[s % 2][i * nt + j],
						     *to = &grid[(s + 1) % 2][i * nt + j];

				check(starpu_task_insert(
					&stencil_codelet, STARPU_R, x[0], STARPU_R, x[i ? -nt : 0],
					STARPU_R, x[i < nt - 1 ? nt : 0], STARPU_R, x[j ? -1 : 0],
					STARPU_R, x[j < nt - 1 ? 1 : 0], STARPU_W, *to, 0));
			}
	starpu_task_wait_for_all();
	clock_stop();
	unregister(grid[0], nt * nt);
	unregister(grid[1], nt * nt);
}

const struct backend backend = {
	.name = "StarPU",
	.version = version,
	.start = start,
	.stop = stop,
	.workers = workers,
	.chain = solve_chain,
	.independent = solve_independent,
	.wavefront = solve_wavefront,
	.cholesky = solve_cholesky,
	.stencil = solve_stencil,
	.grain = solve_grain,
};
