/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "boot/boot.h"
#include "sim.h"

#define POLL_NS 10000
#define NEWS_NS 20000000 /* until the launcher tells a rank that another is dead, at most */
#define JOIN_NS 1000000 /* for a rank that has been started again to be admitted, at most */
#define RANKS 64
#define PROCESSES (RANKS + 64)

struct value {
	struct value *next;
	uint32_t rank;
	char key[32];
	size_t size;
	char bytes[KD_BOOT_VALUE_BYTES];
};

/* Something that the launcher has to tell a process. */
struct news {
	struct news *next;
	uint32_t to;
	uint64_t due_ns;
	struct kd_boot_change change;
};

static struct value *values;
static struct news *first, **last = &first; /* for one process, in the order in which they arrive */
static uint32_t arrived[PROCESSES]; /* by process: at the fence, since the beginning */
static uint32_t member[RANKS];      /* by rank: the process that is part of the job, or was */
static uint32_t begun[RANKS];       /* by rank: processes so far, without the first */
static uint32_t incarnation[PROCESSES];
static uint8_t departs[PROCESSES];
static int over;

void sim_boot_reset(void)
{
	while (values) {
		struct value *v = values;

		values = v->next;
		free(v);
	}
	while (first) {
		struct news *n = first;

		first = n->next;
		free(n);
	}
	last = &first;
	memset(arrived, 0, sizeof(arrived));
	memset(begun, 0, sizeof(begun));
	memset(incarnation, 0, sizeof(incarnation));
	memset(departs, 0, sizeof(departs));
	for (uint32_t r = 0; r < RANKS; r++)
		member[r] = r;
	over = 0;
}

static int present(const struct kd_boot *b)
{
	(void)b;
	return 1;
}

/* Every rank has a host of its own. */
static int start(struct kd_boot *b)
{
	b->rank = sim_rank();
	b->size = sim.ranks;
	if (sim_process() >= sim.ranks)
		incarnation[sim_process()] = ++begun[b->rank];
	b->incarnation = incarnation[sim_process()];
	b->local_rank = 0;
	b->local_size = 1;
	memset(b->secret, 7, sizeof(b->secret));
	b->fd = 0; /* wait() of sim_comm.c asks whether there is something to tell */
	b->tells = 1;
	return 0;
}

static int put(struct kd_boot *b, const char *key, const void *value, size_t size)
{
	struct value *v;

	if (sim_dead(sim_process()))
		return 0; /* the launcher listens to its successor */
	v = kd_must(calloc(1, sizeof(*v)));
	v->rank = b->rank;
	snprintf(v->key, sizeof(v->key), "%s", key);
	v->size = size;
	memcpy(v->bytes, value, size);
	v->next = values;
	values = v;
	return 0;
}

/* Whether a live rank has not been at so many fences. */
static int waits(uint32_t fences)
{
	for (uint32_t r = 0; r < sim.ranks; r++)
		if (!sim_dead(member[r]) && arrived[member[r]] < fences)
			return 1;
	return 0;
}

int sim_boot_joined(void)
{
	return !waits(1);
}

int sim_boot_is_over(void)
{
	return over;
}

static void tell(uint32_t to, const struct kd_boot_change *change)
{
	struct news *n = kd_must(malloc(sizeof(*n)));

	*n = (struct news){NULL, to, sim.now_ns + sim_draw(NEWS_NS), *change};
	for (const struct news *before = first; before; before = before->next)
		if (before->to == to)
			n->due_ns = kd_max(n->due_ns, before->due_ns);
	*last = n;
	last = &n->next;
	sim_comm_tell(to, n->due_ns);
}

/* A zombie is told nothing. */
static void tell_others(const struct kd_boot_change *change)
{
	for (uint32_t r = 0; r < sim.ranks; r++)
		if (r != change->rank && !sim_dead(member[r]))
			tell(member[r], change);
}

/* One that has not joined is missed by nobody. */
void sim_boot_lose(uint32_t process)
{
	const struct kd_boot_change lost = {.kind = KD_BOOT_LOST, .rank = sim_rank_of(process)};

	if (member[lost.rank] == process)
		tell_others(&lost);
}

static int find(uint32_t rank, const char *key, const struct value **v_p)
{
	const struct value *v = values;

	while (v && (v->rank != rank || strcmp(v->key, key)))
		v = v->next;
	*v_p = v;
	return v != NULL;
}

static struct kd_boot_change joined(uint32_t rank)
{
	struct kd_boot_change c = {.kind = KD_BOOT_JOINED, .rank = rank,
				   .incarnation = incarnation[member[rank]]};
	const struct value *v;

	if (!find(rank, "endpoint", &v))
		abort();
	c.size = v->size;
	memcpy(c.card, v->bytes, v->size);
	return c;
}

/* A rank that has been started again: it is told of all others, and they of it. */
static void join(struct kd_boot *b)
{
	struct kd_boot_change c;

	member[b->rank] = sim_process();
	sim.joined++;
	for (uint32_t r = 0; r < sim.ranks; r++) {
		c = (struct kd_boot_change){.kind = KD_BOOT_ABSENT, .rank = r};
		if (!sim_dead(member[r]) && incarnation[member[r]])
			c = joined(r);
		if (r != b->rank && (sim_dead(member[r]) || incarnation[member[r]]))
			kd_boot_add_change(b, &c);
	}
	c = joined(b->rank);
	tell_others(&c);
}

static int event(struct kd_boot *b);

static int fence(struct kd_boot *b, int share)
{
	uint32_t process = sim_process();

	(void)share;
	arrived[process]++;
	if (arrived[process] == 1 && b->incarnation) {
		do
			sim_work(sim_draw(JOIN_NS));
		while (sim_dead(process));
		join(b);
		/* further changes may arrive right behind the launcher's answer */
		if (sim_draw(2)) {
			sim_work(sim_draw(NEWS_NS));
			event(b);
		}
		return 0;
	}
	while (waits(arrived[process]))
		sim_work(POLL_NS + sim_draw(POLL_NS));
	if (arrived[process] == 1)
		for (uint32_t r = sim.ranks - sim.faults.absent; r < sim.ranks; r++)
			kd_boot_add_change(b, &(struct kd_boot_change){.kind = KD_BOOT_ABSENT,
								       .rank = r});
	return 0;
}

/* Ranks that have been started again and have not joined end; rank 0 may not know of the others. */
static void end_job(struct kd_boot *b)
{
	const struct kd_boot_change c = {.kind = KD_BOOT_OVER};

	(void)b;
	over = 1;
	for (uint32_t p = sim.ranks; p < sim.processes; p++)
		if (sim_dead(p))
			continue;
		else if (member[sim_rank_of(p)] == p)
			tell(p, &c);
		else
			sim_end_process(p);
}

static void depart(struct kd_boot *b)
{
	(void)b;
	departs[sim_process()] = 1;
}

/* Rank 0 is never killed, and the caller for it. */
static void suspect(struct kd_boot *b, uint32_t rank, uint32_t number, const char *why)
{
	(void)b;
	(void)why;
	if (!sim_dead(sim_process()) && incarnation[member[rank]] == number)
		sim_kill(rank ? member[rank] : sim_process());
}

int sim_boot_departs(uint32_t process)
{
	return departs[process] && arrived[process] < 2;
}

uint64_t sim_boot_due(uint32_t process)
{
	for (const struct news *n = first; n; n = n->next)
		if (n->to == process)
			return n->due_ns;
	return UINT64_MAX;
}

static int event(struct kd_boot *b)
{
	struct news **link = &first;

	while (*link) {
		struct news *n = *link;

		if (n->to != sim_process() || n->due_ns > sim.now_ns) {
			link = &n->next;
			continue;
		}
		*link = n->next;
		if (!*link)
			last = link;
		kd_boot_add_change(b, &n->change);
		free(n);
	}
	return 0;
}

static int get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	const struct value *v;

	(void)b;
	if (!find(rank, key, &v))
		return -ENOENT;
	if (v->size > *size_p)
		return -EMSGSIZE;
	memcpy(value, v->bytes, v->size);
	*size_p = v->size;
	return 0;
}

static void stop(struct kd_boot *b)
{
	(void)b;
}

const struct kd_boot_launcher sim_boot = {
	"sim", present, start, put, fence, get, event, stop, stop, NULL, end_job, depart, suspect,
};
