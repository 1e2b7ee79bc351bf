// SPDX-License-Identifier: BSD-3-Clause
//
// The problems with oneTBB: task_group for recursion and for independent tasks, a flow graph of
// continue_nodes where tasks wait for others, parallel_for for the stencil. The time includes the
// construction of a graph, but not its destruction.
#include <sched.h>

#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <oneapi/tbb.h>

#include "bench.h"

using tbb::flow::continue_msg;
using tbb::flow::continue_node;

namespace
{

// TBB leaves its threads to the kernel. Here each is bound to a CPU, as with the other libraries.
class Pin : public tbb::task_scheduler_observer
{
public:
	Pin()
	{
		CPU_ZERO(&all);
		sched_getaffinity(0, sizeof(all), &all);
		observe(true);
	}

	~Pin() override
	{
		observe(false);
		sched_setaffinity(0, sizeof(all), &all);
	}

	void on_scheduler_entry(bool) override
	{
		int left = tbb::this_task_arena::current_thread_index() % CPU_COUNT(&all);
		cpu_set_t one;

		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &all) && left-- == 0) {
				CPU_ZERO(&one);
				CPU_SET(cpu, &one);
				sched_setaffinity(0, sizeof(one), &one);
			}
	}

private:
	cpu_set_t all;
};

struct Running {
	explicit Running(int workers)
	    : limit(tbb::global_control::max_allowed_parallelism, workers), arena(workers)
	{
	}

	tbb::global_control limit;
	tbb::task_arena arena;
	Pin pin;
};

std::unique_ptr<Running> running;
int current_workers;

bool start(int workers)
{
	current_workers = workers ? workers : tbb::info::default_concurrency();
	running = std::make_unique<Running>(current_workers);
	return true;
}

bool stop()
{
	running.reset();
	return true;
}

int workers()
{
	return current_workers;
}

// fib

long fib(int n)
{
	if (n < 2)
		return n;
	tbb::task_group g;
	long x, y;

	g.run([&x, n] { x = fib(n - 1); });
	y = fib(n - 2);
	g.wait();
	return x + y;
}

long fib_cutoff(int n, int cutoff)
{
	if (n < 2 || n < cutoff)
		return fib_plain(n);
	tbb::task_group g;
	long x, y;

	g.run([&x, n, cutoff] { x = fib_cutoff(n - 1, cutoff); });
	y = fib_cutoff(n - 2, cutoff);
	g.wait();
	return x + y;
}

long solve_fib(int n, int cutoff)
{
	return cutoff ? fib_cutoff(n, cutoff) : fib(n);
}

// integrate

double integrate(double x1, double y1, double x2, double y2, double area)
{
	double half = (x2 - x1) / 2, x0 = x1 + half, y0 = integrand(x0);
	double left = (y1 + y0) / 2 * half, right = (y0 + y2) / 2 * half;
	double a, b;

	if (std::fabs(left + right - area) < INTEGRATE_EPSILON)
		return left + right;
	tbb::task_group g;
	g.run([=, &a] { a = integrate(x1, y1, x0, y0, left); });
	b = integrate(x0, y0, x2, y2, right);
	g.wait();
	return a + b;
}

double solve_integrate(double to)
{
	return integrate(0, integrand(0), to, integrand(to), 0);
}

// nqueens, uts: one group for all tasks, and a count for each thread. Nested groups, whose tasks
// wait and add up, take up to 1.5 times as long on one worker.

struct Count {
	tbb::task_group group;
	tbb::combinable<long> count{[] { return 0L; }};

	long total()
	{
		group.wait();
		return count.combine([](long a, long b) { return a + b; });
	}
};

void nqueens(Count &all, board b, int row, int n)
{
	if (row == n) {
		++all.count.local();
		return;
	}
	for (int c = 0; c < n; c++)
		if (board_safe(&b, row, c)) {
			b.column[row] = (signed char)c;
			all.group.run([=, &all] { nqueens(all, b, row + 1, n); });
		}
}

long solve_nqueens(int n)
{
	Count all;

	nqueens(all, board(), 0, n);
	return all.total();
}

void visit(Count &all, const uts_node &node, int children)
{
	++all.count.local();
	for (int i = 0; i < children; i++) {
		uts_node child;

		uts_child(&node, i, &child);
		all.group.run([=, n = uts_children(&child), &all] { visit(all, child, n); });
	}
}

long solve_uts(const uts_node *root)
{
	Count all;

	visit(all, *root, uts_children(root));
	return all.total();
}

// flat frames

void solve_chain(long n, long *x)
{
	tbb::flow::graph g;
	std::deque<continue_node<continue_msg>> nodes;

	for (long i = 0; i < n; i++) {
		nodes.emplace_back(g, [x](const continue_msg &) { chain_step(x); });
		if (i > 0)
			tbb::flow::make_edge(nodes[i - 1], nodes[i]);
	}
	nodes[0].try_put(continue_msg());
	g.wait_for_all();
	clock_stop();
}

void solve_independent(long n, long *v)
{
	tbb::task_group g;

	for (long i = 0; i < n; i++)
		g.run([=] { independent_step(i, &v[i]); });
	g.wait();
}

void solve_grain(long n, long steps, long *v)
{
	tbb::task_group g;

	for (long i = 0; i < n; i++)
		g.run([=] { grain_step(i, steps, &v[i]); });
	g.wait();
}

long solve_reduce(long n)
{
	tbb::combinable<long> sum([] { return 0L; });
	tbb::task_group g;

	for (long i = 0; i < n; i++)
		g.run([=, &sum] { sum.local() += i; });
	g.wait();
	return sum.combine([](long a, long b) { return a + b; });
}

void solve_wavefront(long n, long, long *v)
{
	tbb::flow::graph g;
	std::deque<continue_node<continue_msg>> nodes;

	for (long i = 1; i <= n; i++)
		for (long j = 1; j <= n; j++) {
			long *here = v + i * (n + 1) + j, *up = here - (n + 1), *left = here - 1;

			nodes.emplace_back(
				g, [=](const continue_msg &) { wavefront_step(up, left, here); });
			if (i > 1)
				tbb::flow::make_edge(nodes[(i - 2) * n + j - 1], nodes.back());
			if (j > 1)
				tbb::flow::make_edge(nodes[(i - 1) * n + j - 2], nodes.back());
		}
	nodes[0].try_put(continue_msg());
	g.wait_for_all();
	clock_stop();
}

// cholesky. A tile's next task waits for the one before on the same tile: writer[].

void solve_cholesky(tiles *m)
{
	using Node = continue_node<continue_msg>;
	tbb::flow::graph g;
	std::deque<Node> nodes;
	std::vector<Node *> writer(m->nt * m->nt);
	long nt = m->nt;
	int nb = (int)m->nb;

	auto tile = [=](long i, long j) { return m->at[i * nt + j]; };
	// A task on tile (i, j), after its last writer and the given tasks.
	auto add = [&](long i, long j, auto body, std::initializer_list<Node *> inputs,
		       unsigned priority) {
		Node *&last = writer[i * nt + j];

		nodes.emplace_back(g, [body](const continue_msg &) { body(); }, priority);
		if (last)
			tbb::flow::make_edge(*last, nodes.back());
		for (Node *input : inputs)
			tbb::flow::make_edge(*input, nodes.back());
		last = &nodes.back();
	};
	for (long k = 0; k < nt; k++) {
		double *kk = tile(k, k);

		add(k, k, [=] { potrf(kk, nb); }, {}, 1);
		Node *factor = writer[k * nt + k];
		for (long i = k + 1; i < nt; i++)
			add(
				i, k, [=, ik = tile(i, k)] { trsm(kk, ik, nb); }, {factor},
				tbb::flow::no_priority);
		for (long j = k + 1; j < nt; j++) {
			Node *jk = writer[j * nt + k];

			add(
				j, j, [=, l = tile(j, k), a = tile(j, j)] { syrk(l, a, nb); }, {jk},
				tbb::flow::no_priority);
			for (long i = j + 1; i < nt; i++)
				add(
					i, j,
					[=, l = tile(i, k), r = tile(j, k), a = tile(i, j)] {
						gemm(l, r, a, nb);
					},
					{writer[i * nt + k], jk}, tbb::flow::no_priority);
		}
	}
	nodes[0].try_put(continue_msg());
	g.wait_for_all();
	clock_stop();
}

// stencil

void solve_stencil(plate *p)
{
	tbb::affinity_partitioner partitioner;
	long nb = p->nb, ld = p->ld;

	for (long s = 0; s < p->steps; s++) {
		const double *from = p->grid[s % 2] + ld + 1;
		double *to = p->grid[(s + 1) % 2] + ld + 1;

		tbb::parallel_for(
			tbb::blocked_range2d<long>(0, p->nt, 0, p->nt),
			[=](const tbb::blocked_range2d<long> &r) {
				for (long i = r.rows().begin(); i < r.rows().end(); i++)
					for (long j = r.cols().begin(); j < r.cols().end(); j++) {
						long at = i * nb * ld + j * nb;

						stencil_tile(to + at, from + at, ld, nb, nb);
					}
			},
			partitioner);
	}
}

// loops, with the default partitioner

using Range = tbb::blocked_range<long>;

void solve_triad(long n, double s, const double *b, const double *c, double *a)
{
	tbb::parallel_for(Range(0, n), [=](const Range &r) {
		triad_part(s, b + r.begin(), c + r.begin(), a + r.begin(), r.end() - r.begin());
	});
}

double solve_dot(long n, const double *x, const double *y)
{
	return tbb::parallel_reduce(
		Range(0, n), 0.0,
		[=](const Range &r, double sum) {
			return sum + dot_part(x + r.begin(), y + r.begin(), r.end() - r.begin());
		},
		std::plus<double>());
}

void solve_matmul(long n, const double *a, const double *b, double *c)
{
	tbb::parallel_for(0L, n, [=](long i) {
		tbb::parallel_for(Range(0, n), [=](const Range &r) {
			matmul_part(n, a + i * n, b + r.begin(), c + i * n + r.begin(),
				    r.end() - r.begin());
		});
	});
}

void solve_skewed(long n, long *v)
{
	tbb::parallel_for(Range(0, n), [=](const Range &r) {
		for (long i = r.begin(); i < r.end(); i++)
			grain_step(i, skewed_steps(i), &v[i]);
	});
}

// Calls f in the arena.
template <auto f, typename... Arguments> auto in_arena(Arguments... arguments)
{
	return running->arena.execute([=] { return f(arguments...); });
}

struct backend make_backend()
{
	struct backend b = {};

	b.name = "oneTBB";
	b.version = TBB_runtime_version;
	b.start = start;
	b.stop = stop;
	b.workers = workers;
	b.fib = in_arena<solve_fib>;
	b.integrate = in_arena<solve_integrate>;
	b.nqueens = in_arena<solve_nqueens>;
	b.uts = in_arena<solve_uts>;
	b.chain = in_arena<solve_chain>;
	b.independent = in_arena<solve_independent>;
	b.reduce = in_arena<solve_reduce>;
	b.wavefront = in_arena<solve_wavefront>;
	b.cholesky = in_arena<solve_cholesky>;
	b.stencil = in_arena<solve_stencil>;
	b.grain = in_arena<solve_grain>;
	b.triad = in_arena<solve_triad>;
	b.dot = in_arena<solve_dot>;
	b.matmul = in_arena<solve_matmul>;
	b.skewed = in_arena<solve_skewed>;
	return b;
}

} // namespace

extern "C" const char program_name[] = "bench-tbb";
extern "C" const struct backend backend = make_backend();
