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
	const struct kd_pool *p = kd_observe.net->pool;
	size_t bytes = (size_t)p->count * sizeof(*records);
	uint64_t now = kd_clock_ticks();

	records = aligned_alloc(KD_CACHE_LINE, bytes);
	if (!records) {
		kd_error("out of memory for the observers' records of %d workers", p->count);
		return -ENOMEM;
	}
	memset(records, 0, bytes);
	for (int i = 0; i < p->count; i++) {
		struct kd_watched *r = &records[i];

		r->phase = i ? KD_PHASE_LOOK : KD_PHASE_RUN;
		r->since = r->phase_since = r->idle_begun = now;
		p->workers[i].watched = r;
	}
	return 0;
}

void kd_watched_stop(void)
{
	free(records);
	records = NULL;
}
