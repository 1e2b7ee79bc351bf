/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "run_hosts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_loop.h"
#include "run_say.h"

#define MOST_RANKS 1000000u

/* By name alone: what an address leads to says nothing about network namespaces and containers. */
static int is_near(const char *name)
{
	char own[256] = "";

	gethostname(own, sizeof(own) - 1);
	if (!strcmp(name, "localhost") || !strcmp(name, own))
		return 1;
	/* One of the two names may be without its domain. */
	return strcspn(name, ".") == strcspn(own, ".") && !strncmp(name, own, strcspn(own, ".")) &&
	       (!strchr(name, '.') || !strchr(own, '.'));
}

void run_places_add(struct run_places *p, const char *name, size_t length, uint32_t slots, int counted)
{
	struct run_place *place;

	for (size_t i = 0; i < p->count; i++)
		if (strlen(p->place[i].name) == length && !memcmp(p->place[i].name, name, length)) {
			p->place[i].slots += slots;
			p->place[i].counted |= counted;
			return;
		}
	p->place = run_alloc(p->place, (p->count + 1) * sizeof(*p->place));
	place = &p->place[p->count++];
	*place = (struct run_place){run_alloc(NULL, length + 1), slots, counted, 0, 0, 0};
	memcpy(place->name, name, length);
	place->name[length] = 0;
	place->near = is_near(place->name);
}

uint32_t run_places_deal(struct run_places *p, uint32_t size)
{
	uint64_t slots = 0;
	uint32_t next = 0;
	int counted = 0;

	for (size_t i = 0; i < p->count; i++) {
		slots += p->place[i].slots;
		counted |= p->place[i].counted;
	}
	if ((size > slots && counted) || (size ? size : slots) > MOST_RANKS) {
		run_say("%u ranks do not fit into the %llu slots of the hosts: give them more (host:slots), or ask for fewer (-n)",
			size, (unsigned long long)slots);
		return 0;
	}
	if (!size)
		size = (uint32_t)slots;
	for (size_t i = 0; i < p->count; i++) {
		struct run_place *place = &p->place[i];

		/* When nobody counted, all take the same, the first ones one more. */
		place->ranks = size > slots ? size / p->count + (i < size % p->count) : kd_min(place->slots, size - next);
		place->first = next;
		next += place->ranks;
	}
	return size;
}
