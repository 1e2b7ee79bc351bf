/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what the ranks of a job do and need, and prints one line per rank at its end. bench/sim
 * is calibrated with these figures and checked against them (doc/scaling.md). Run with kddsrun -n
 * RANKS:
 *
 *   ranks idle SECONDS      nothing; 0 seconds: the start and the end of a job
 *   ranks meet SECONDS      the same, after every rank has sent a message to every other
 *   ranks fib N THRESHOLD
 *   ranks knary N K THRESHOLD
 *
 * Times start with main in that process; cpu is the CPU time of the process in us. The trees are
 * those of examples/fib and examples/knary, so that a simulation of them counts the same closures.
 */
#define _GNU_SOURCE
#include <kdds.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "comm/comm.h"
#include "rank.h"
#include "remote/peer.h"

static struct kd_net *const net = &kd_process.net;

#define LOOK_NS 200000
#define IDLE_LOOK_NS 10000000 /* shorter polling would cost 1,000 ranks more than their start */

static uint64_t begin_ns, joined_ns, work_ns, met_ns;
static int meets, works;

/* The kilobytes in a line of /proc/self/status. */
static long status_kb(const char *name)
{
	char line[200];
	size_t n = strlen(name);
	FILE *f = fopen("/proc/self/status", "r");
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, n) && line[n] == ':')
			kb = atol(line + n + 1);
	if (f)
		fclose(f);
	return kb;
}

static double ms(uint64_t ns)
{
	return ns ? (double)(ns - begin_ns) / 1e6 : -1;
}

static void report(void)
{
	const struct kd_net_counts *c = &net->counts;
	struct timespec cpu;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("pid %d hwm_kb %ld cpu_us %.0f joined_ms %.1f work_ms %.1f met_ms %.1f end_ms %.1f "
	       "asked %llu refused %llu imports %llu "
	       "imported %llu exports %llu exported %llu ask_us %.1f messages %llu bytes %llu "
	       "repeated %llu\n",
	       (int)getpid(), status_kb("VmHWM"),
	       (double)cpu.tv_sec * 1e6 + (double)cpu.tv_nsec / 1e3, ms(joined_ns), ms(work_ns),
	       ms(met_ns), ms(kd_os_now_ns()), (unsigned long long)c->remote_requests,
	       (unsigned long long)c->refusals, (unsigned long long)c->imports,
	       (unsigned long long)c->imported, (unsigned long long)c->exports,
	       (unsigned long long)c->exported,
	       c->replies ? (double)c->reply_ns / (double)c->replies / 1e3 : 0.0,
	       (unsigned long long)net->peer_counts.messages,
	       (unsigned long long)net->peer_counts.bytes,
	       (unsigned long long)net->peer_counts.repeated);
	fflush(stdout);
}

/* A FREE that frees nothing: unlike a request it is repeated until it has arrived. */
static void meet_all(void)
{
	pthread_mutex_lock(&net->lock);
	for (uint32_t i = 1; i < net->size; i++) {
		struct kd_wire_head *m = kd_peer_message(KD_WIRE_FREE, sizeof(struct kd_wire_free));

		*(struct kd_wire_free *)(m + 1) = (struct kd_wire_free){UINT32_MAX, 0};
		kd_peer_send(net, (net->rank + i) % net->size, m, 0);
	}
	pthread_mutex_unlock(&net->lock);
	kd_comm_wake(net->comm);
}

static void *watch(void *arg)
{
	struct timespec pause = {0, meets || works ? LOOK_NS : IDLE_LOOK_NS};
	uint64_t met = 0;

	(void)arg;
	while (!__atomic_load_n(&kd_process.pool.remote, __ATOMIC_ACQUIRE))
		nanosleep(&pause, NULL);
	joined_ns = kd_os_now_ns();
	if (meets) {
		sleep(1); /* by then all have joined, and idle thieves have stopped asking */
		begin_ns = kd_os_now_ns();
		/* messages are counted when they are sent */
		met = net->peer_counts.messages + net->size - 1;
		meet_all();
	}
	while ((meets && !met_ns) || (works && !work_ns)) {
		nanosleep(&pause, NULL);
		if (!work_ns && __atomic_load_n(&net->counts.imports, __ATOMIC_RELAXED))
			work_ns = kd_os_now_ns();
		if (meets && !met_ns &&
		    __atomic_load_n(&net->peer_counts.messages, __ATOMIC_RELAXED) >= met)
			met_ns = kd_os_now_ns();
	}
	return NULL;
}

/* The trees */

static int threshold, k;

static __attribute__((noinline)) long fib_plain(int n)
{
	return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2);
}

KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r))
{
	**r = **a + **b;
}

KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
{
	if (n < threshold) {
		**r = fib_plain(n);
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib, n - 1, x);
	kdds_spawn(fib, n - 2, y);
	kdds_spawn(sum, x, y, r);
}

static long count(int n)
{
	long nodes = 1;

	if (n > 0)
		for (int i = 1; i <= k; i++)
			nodes += count(n - i);
	return nodes;
}

KDDS_TASK(node, VALUE(int, n), REDUCE(long, total, KDDS_SUM(long)))
{
	if (n <= 0 || n < threshold) {
		**total += count(n);
		return;
	}
	**total += 1;
	for (int i = 1; i <= k; i++)
		kdds_spawn(node, n - i, total);
}

static int usage(void)
{
	fprintf(stderr, "usage: kddsrun -n RANKS ranks idle SECONDS | meet SECONDS | fib N "
			"THRESHOLD | knary N K THRESHOLD\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0, is_fib = !strcmp(what, "fib") && argc == 4,
	    is_knary = !strcmp(what, "knary") && argc == 5;
	int is_idle = !strcmp(what, "idle");
	pthread_t thread;
	uint64_t t;

	meets = !strcmp(what, "meet");
	works = is_fib || is_knary;
	if (n < (is_idle ? 0 : 1) || (!is_fib && !is_knary && !meets && !is_idle))
		return usage();
	threshold = is_fib ? atoi(argv[3]) : is_knary ? atoi(argv[4]) : 0;
	threshold = is_fib && threshold < 2 ? 2 : threshold;
	k = is_knary ? atoi(argv[3]) : 0;
	begin_ns = kd_os_now_ns();
	atexit(report);
	if (pthread_create(&thread, NULL, watch, NULL) || kdds_init())
		return 1;
	KDDS_DATA(long, r);
	**r = 0;
	t = kd_os_now_ns();
	if (is_fib)
		kdds_spawn(fib, n, r);
	else if (is_knary)
		kdds_spawn(node, n, r);
	else
		sleep((unsigned)n);
	kdds_sync();
	t = kd_os_now_ns() - t;
	printf("%s %d: %ld in %.6f s\n", what, n, **r, (double)t / 1e9);
	return kdds_finalize() != 0;
}
