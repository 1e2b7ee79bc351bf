/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "core/remote.h"
#include "core/worker.h"
#include "observe/stats.h"
#include "observe/watched.h"
#include "remote/net.h"

static uint64_t shown_ns, shown_tasks, shown_idle_ns; /* at the last update of the line */

int kd_progress_wanted(void)
{
	shown_ns = shown_tasks = shown_idle_ns = 0;
	return kd_env.progress == KD_PROGRESS_ALWAYS || (kd_env.progress && isatty(STDERR_FILENO));
}

/* 1234567 as 1.23M: at most 6 characters. */
static const char *shorten(char text[16], double n)
{
	static const char units[] = " kMGTP";
	int i = 0;

	for (; n >= 999.5 && units[i + 1]; n /= 1000)
		i++;
	snprintf(text, 16, i ? "%.3g%c" : "%.3g", n, units[i]);
	return text;
}

/* Counts the steal messages out at other ranks and those received. 0 if the net lock is taken. */
static int away(uint64_t *exported_p, uint64_t *received_p)
{
	if (pthread_mutex_trylock(&kd_observe.net->lock))
		return 0;
	*exported_p = kd_observe.net->counts.exports - kd_observe.net->counts.returned;
	*received_p = kd_observe.net->counts.imports;
	pthread_mutex_unlock(&kd_observe.net->lock);
	return 1;
}

void kd_progress_show(void)
{
	const struct kd_pool *p = kd_observe.net->pool;
	static uint64_t exported, received;
	struct kd_worker_counts sum = {.tasks = 0};
	uint64_t now = kd_os_now_ns(), span;
	char line[256], total[16], rate[16], steals[16];
	double seconds = (double)(now - kd_clock.ns) * 1e-9;
	int n;

	kd_clock_settle();
	for (int i = 0; i < p->count; i++) {
		struct kd_worker_counts c;

		kd_stats_worker(&p->workers[i], &c);
		sum.tasks += c.tasks;
		sum.steals += c.steals;
		sum.idle_ns += c.idle_ns + c.look_ns + c.comm_ns;
	}
	span = shown_ns ? now - shown_ns : now - kd_clock.ns;
	n = snprintf(line, sizeof(line),
		     "\r\033[Kkdds: %.1f s  %s tasks  %s/s  idle %.0f %%  %s steals", seconds,
		     shorten(total, (double)sum.tasks),
		     shorten(rate, (double)(sum.tasks - shown_tasks) * 1e9 / (double)span),
		     kd_min(100.0,
			    (double)(sum.idle_ns - kd_min(shown_idle_ns, sum.idle_ns)) * 100 /
				    ((double)span * p->count)),
		     shorten(steals, (double)sum.steals));
	if (p->remote && (away(&exported, &received) || shown_ns))
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "  rank 0 of %u: %" PRIu64 " steal messages out, %" PRIu64
			      " taken in",
			      kd_observe.net->size, exported, received);
	shown_ns = now;
	shown_tasks = sum.tasks;
	shown_idle_ns = sum.idle_ns;
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* stderr has been closed */
}

void kd_progress_end(void)
{
	if (shown_ns && write(STDERR_FILENO, "\r\033[K", 4) < 0)
		return;
}
