/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/watched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

struct kd_observe kd_observe;

static struct kd_watched *records;

int kd_watched_start(void)
{
	size_t one = (sizeof(*records) + KD_CACHE_LINE - 1) / KD_CACHE_LINE * KD_CACHE_LINE;
	char *all = aligned_alloc(KD_CACHE_LINE, (size_t)kd_pool.count * one);
	uint64_t now = kd_clock_ticks();

	if (!all) {
		kd_error("out of memory for the observers' records of %d workers", kd_pool.count);
		return -ENOMEM;
	}
	memset(all, 0, (size_t)kd_pool.count * one);
	records = (struct kd_watched *)all;
	for (int i = 0; i < kd_pool.count; i++) {
		struct kd_watched *r = (struct kd_watched *)(all + (size_t)i * one);

		r->phase = i ? KD_PHASE_LOOK : KD_PHASE_RUN;
		r->since = r->phase_since = r->idle_begun = now;
		kd_pool.workers[i].watched = r;
	}
	return 0;
}

void kd_watched_stop(void)
{
	free(records);
	records = NULL;
}
