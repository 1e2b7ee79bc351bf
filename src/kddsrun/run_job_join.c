/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_join.h"

#include <stdio.h>

#include "kddsrun/run_job_respawn.h"

/* Whether ranks there can reach the others. */
static int is_reachable(const struct run_place *place)
{
	return !job.options->one_host || run_places_same(place, job.ranks[0].host->place);
}

static uint32_t vacancies(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < job.options->size; i++)
		n += (uint32_t)run_job_vacant(&job.ranks[i]);
	return n;
}

static void check(const struct run_places *places, char *why, size_t size)
{
	uint64_t slots = 0;
	uint32_t room = vacancies();

	if (run_hosts_lack_files(places->count, why, size))
		return;
	for (size_t i = 0; i < places->count; i++) {
		slots += places->place[i].slots;
		if (!is_reachable(&places->place[i])) {
			snprintf(why, size, "the job takes no connections from other hosts such as "
				 "%.100s: start it with --capacity or --spare",
				 places->place[i].name);
			return;
		}
	}
	if (slots > room)
		snprintf(why, size, "the job has room for %u more rank%s, not for %llu: its --capacity "
			 "is %u", room, room == 1 ? "" : "s", (unsigned long long)slots,
			 job.options->size);
}

static void start_there(const struct run_place *place)
{
	struct run_host *h = run_hosts_add(place);
	uint32_t left = h->given_up ? 0 : place->slots;

	for (uint32_t i = 0; i < job.options->size && left; i++)
		if (run_job_vacant(&job.ranks[i])) {
			run_job_start_on(&job.ranks[i], h);
			left--;
		}
}

void run_job_join(const char *hosts, char *why, size_t size)
{
	struct run_places places = {NULL, 0};

	*why = 0;
	if (!job.joined)
		snprintf(why, size, "the ranks have not joined the job yet: repeat the command later");
	else if (run_job_is_over() || job.ending)
		snprintf(why, size, "the job, or its first program, is ending");
	else if (run_places_parse(&places, hosts))
		snprintf(why, size, "not a list of hosts: %.100s", hosts);
	else
		check(&places, why, size);
	if (*why) {
		run_places_free(&places);
		return;
	}
	for (size_t i = 0; i < places.count; i++)
		start_there(&places.place[i]); /* the place lives on */
}
