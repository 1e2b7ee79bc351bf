/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_spare.h"

#include <string.h>

#include "kddsrun/run_job_suspect.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

/* What has become of the slots of job.options->spares: as many. */
static struct spare {
	uint32_t used;
	struct run_host *host; /* NULL: no agent has been started there */
} *spares;

/* Agents end when they have no more ranks. */
static int ended(const struct run_host *h)
{
	return h->released || h->state == RUN_HOST_DONE || h->state == RUN_HOST_LOST;
}

struct run_host *run_job_spare(void)
{
	const struct run_places *places = &job.options->spares;
	char why[200];

	if (!spares && places->count) {
		spares = run_alloc(NULL, places->count * sizeof(*spares));
		memset(spares, 0, places->count * sizeof(*spares));
	}
	for (size_t i = 0; i < places->count; i++) {
		struct spare *s = &spares[i];

		if (s->used == places->place[i].slots || run_job_is_unreached(&places->place[i]) ||
		    (s->host && (s->host->given_up || s->host->departs)))
			continue;
		if (!s->host || ended(s->host)) {
			if (run_hosts_lack_files(1, why, sizeof(why))) {
				run_say("%s", why);
				return NULL;
			}
			s->host = run_hosts_add(&places->place[i]);
		}
		s->used++;
		if (!s->host->given_up)
			return s->host;
	}
	return NULL;
}
