/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "sim.h"

#define WAY_NS 5000     /* of a message; up to twice as long */
#define BYTES_PER_NS 10 /* of reads */
#define PROMISE_NS 2000 /* in which a read that will_progress was asked about is completed */
#define PATIENCE_NS 30000000000u /* with a rank that is cut off */

struct packet {
	struct packet *next;
	uint64_t due_ns;
	size_t len;
	kd_aligned(8) char bytes[];
};

struct reading {
	struct reading *next;
	uint64_t due_ns;
	struct endpoint *from;
	char *to;
	uint64_t addr, key;
	size_t len;
	struct kd_comm_get *get;
	int promised; /* it ended at once, and its reader said that it goes on */
};

struct region {
	struct region *next;
	uint64_t addr, len, key;
};

struct endpoint {
	struct kd_comm comm; /* first */
	struct endpoint *next; /* of all */
	uint32_t process;
	int closed, dead;
	uint8_t *gone; /* by rank: forget() has been called */
	const struct kd_comm_events *events;
	void *arg;
	struct endpoint **peers;
	uint32_t npeers;
	struct packet *packets; /* on their way to here */
	struct packet *arrived; /* being handed over; the rank may die meanwhile */
	struct reading *readings;
	struct region *regions;
	struct sim_fiber *sleeper; /* in wait() */
	int watches; /* for messages */
	int progresses;
	int rung, listens; /* in wait(): wake() was called; to the launcher */
};

static struct endpoint *endpoints;

static struct endpoint *of(struct kd_comm *c)
{
	return (struct endpoint *)c;
}

static int start(const struct kd_comm_config *config, struct kd_comm **comm_p, void *address,
		 size_t *size_p)
{
	struct endpoint *e = kd_must(calloc(1, sizeof(*e)));

	e->watches = 1;
	e->events = config->events;
	e->arg = config->arg;
	e->npeers = config->size;
	e->process = sim_process();
	e->gone = kd_must(calloc(config->size, 1));
	e->peers = kd_must(calloc(config->size, sizeof(*e->peers)));
	e->next = endpoints;
	endpoints = e;
	memcpy(address, &e, sizeof(e));
	*size_p = sizeof(e);
	*comm_p = &e->comm;
	return 0;
}

/* Others may still send to it, so it stays, empty. */
static void empty(struct endpoint *e)
{
	free(e->arrived);
	e->arrived = NULL;
	while (e->packets) {
		struct packet *p = e->packets;

		e->packets = p->next;
		free(p);
	}
	while (e->readings) {
		struct reading *r = e->readings;

		e->readings = r->next;
		if (!e->dead)
			r->get->done(r->get, -ECANCELED);
		free(r);
	}
	while (e->regions) {
		struct region *r = e->regions;

		e->regions = r->next;
		free(r);
	}
	e->closed = 1;
}

static void stop(struct kd_comm *c)
{
	empty(of(c));
}

void sim_comm_kill(uint32_t process)
{
	for (struct endpoint *e = endpoints; e; e = e->next)
		if (e->process == process && !e->closed) {
			e->dead = 1;
			empty(e);
		}
}

void sim_comm_tell(uint32_t process, uint64_t at)
{
	for (struct endpoint *e = endpoints; e; e = e->next)
		if (e->process == process && e->sleeper && e->listens)
			sim_wake(e->sleeper, at);
}

void sim_comm_reset(void)
{
	while (endpoints) {
		struct endpoint *e = endpoints;

		endpoints = e->next;
		e->dead = 1; /* one that was to end later, too */
		empty(e);
		free(e->peers);
		free(e->gone);
		free(e);
	}
}

static const char *name(struct kd_comm *c)
{
	(void)c;
	return "sim";
}

static int connect(struct kd_comm *c, uint32_t rank, const void *address, size_t size)
{
	if (size != sizeof(of(c)->peers[rank]))
		return -EINVAL;
	memcpy(&of(c)->peers[rank], address, size);
	return 0;
}

static uint64_t arrival(void)
{
	uint64_t due = sim.now_ns + WAY_NS + sim_draw(WAY_NS);

	return sim.faults.delay_ns && !sim_draw(4) ? due + sim_draw(sim.faults.delay_ns) : due;
}

/* The two can no longer reach each other. */
static int is_cut(const struct endpoint *a, const struct endpoint *b)
{
	return sim_cut_since(a->process, b->process) <= sim.now_ns;
}

static void announce(struct endpoint *e, uint64_t due)
{
	if (e->sleeper && e->watches)
		sim_wake(e->sleeper, due);
}

static int send_message(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	struct endpoint *to = of(c)->peers[rank];

	if (of(c)->gone[rank])
		return -ENOTCONN;
	sim_event();
	if (sim_draw(100) < sim.faults.refused)
		return -EAGAIN;
	if (is_cut(of(c), to)) {
		if (sim.now_ns - sim_cut_since(of(c)->process, to->process) >= PATIENCE_NS)
			of(c)->events->unreached(of(c)->arg, rank, "its address", "it is cut off");
		return 0;
	}
	if (to->closed || sim_draw(100) < sim.faults.lost)
		return 0;
	for (unsigned n = 1 + (sim_draw(100) < sim.faults.doubled); n; n--) {
		struct packet *p = kd_must(malloc(sizeof(*p) + len));

		*p = (struct packet){.next = to->packets, .due_ns = arrival(), .len = len};
		memcpy(p->bytes, message, len);
		to->packets = p;
		announce(to, p->due_ns);
	}
	return 0;
}

static int get(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
	       size_t len, struct kd_comm_get *get)
{
	struct endpoint *e = of(c);
	struct reading *r;

	if (e->gone[rank])
		return -ENOTCONN;
	sim_event();
	r = kd_must(malloc(sizeof(*r)));
	*r = (struct reading){.next = e->readings,
			      .due_ns = arrival() + WAY_NS + len / BYTES_PER_NS +
					sim_draw(sim.faults.read_ns + 1),
			      .from = e->peers[rank], .to = local, .addr = addr, .key = key,
			      .len = len, .get = get};
	e->readings = r;
	if (sim.faults.prompt && sim_draw(100) < sim.faults.prompt) {
		r->due_ns = sim.now_ns;
		r->promised = !e->progresses && e->events->will_progress && e->events->will_progress(e->arg);
	}
	if (!r->promised)
		announce(e, r->due_ns);
	return 0;
}

static int expose(struct kd_comm *c, void *p, size_t len, struct kd_comm_region *region_p)
{
	struct region *r = kd_must(malloc(sizeof(*r)));

	*r = (struct region){of(c)->regions, (uintptr_t)p, len, kd_os_random()};
	of(c)->regions = r;
	*region_p = (struct kd_comm_region){r->addr, r->key, r};
	return 0;
}

static void hide(struct kd_comm *c, struct kd_comm_region *region)
{
	struct region **link = &of(c)->regions;

	while (*link != region->handle)
		link = &(*link)->next;
	*link = (*link)->next;
	free(region->handle);
}

/* The bytes are read at the last moment: whoever writes them too early is found out. */
static void finish(const struct endpoint *e, struct reading *r)
{
	const struct region *g = r->from->regions;

	while (g && g->key != r->key)
		g = g->next;
	if (is_cut(e, r->from) || !g || r->addr < g->addr || r->addr - g->addr > g->len ||
	    r->len > g->len - (r->addr - g->addr) || sim_draw(100) < sim.faults.failed) {
		r->get->done(r->get, -EIO);
		return;
	}
	memcpy(r->to, (const void *)(uintptr_t)r->addr, r->len);
	if (sim_draw(100) < sim.faults.altered && r->len)
		r->to[sim_draw(r->len)] ^= (char)(1 << sim_draw(8));
	r->get->done(r->get, 0);
}

static void forget(struct kd_comm *c, uint32_t rank)
{
	struct endpoint *e = of(c);

	e->gone[rank] = 1;
	for (struct reading **link = &e->readings, *r; (r = *link);) {
		if (r->from != e->peers[rank]) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		r->get->done(r->get, -ECONNRESET);
		free(r);
		link = &e->readings; /* done may have begun others */
	}
}

static int renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		 size_t size)
{
	(void)incarnation;
	of(c)->gone[rank] = 0;
	return connect(c, rank, address, size);
}

/* The owner is dead: the read may fail, or never end. */
static int hangs(struct reading *r)
{
	if (!r->from->dead || sim_draw(2))
		return 0;
	r->due_ns = UINT64_MAX;
	return 1;
}

static int progress(struct kd_comm *c)
{
	struct endpoint *e = of(c);
	int n = 0;

	e->progresses = 1;
	for (struct packet **link = &e->packets, *p; (p = *link);) {
		if (p->due_ns > sim.now_ns) {
			link = &p->next;
			continue;
		}
		sim_event();
		*link = p->next;
		e->arrived = p;
		e->events->message(e->arg, p->bytes, p->len);
		e->arrived = NULL;
		free(p);
		n++;
		link = &e->packets; /* it may have sent itself something */
	}
	for (struct reading **link = &e->readings, *r; (r = *link);) {
		if (r->due_ns > sim.now_ns || hangs(r)) {
			link = &r->next;
			continue;
		}
		sim_event();
		if (r->promised && sim.now_ns - r->due_ns > PROMISE_NS)
			sim_fail("has left a read that had ended");
		*link = r->next;
		finish(e, r);
		free(r);
		n++;
		link = &e->readings; /* done may have begun others */
	}
	e->progresses = 0;
	return n;
}

static int wait(struct kd_comm *c, pthread_mutex_t *lock, int fd, uint64_t timeout_ns)
{
	struct endpoint *e = of(c);
	uint64_t until = sim.now_ns + timeout_ns;

	if (fd >= 0)
		until = kd_min(until, sim_boot_due(e->process));
	for (const struct packet *p = e->packets; e->watches && p; p = p->next)
		until = kd_min(until, p->due_ns);
	for (const struct reading *r = e->readings; e->watches && r; r = r->next)
		until = kd_min(until, r->due_ns);
	pthread_mutex_unlock(lock);
	e->sleeper = sim_self();
	e->listens = fd >= 0;
	if (!e->rung)
		sim_sleep(until);
	e->sleeper = NULL;
	e->rung = 0;
	pthread_mutex_lock(lock);
	return fd >= 0 && sim_boot_due(e->process) <= sim.now_ns;
}

static void wake(struct kd_comm *c)
{
	struct endpoint *e = of(c);

	e->rung = 1;
	if (e->sleeper)
		sim_wake(e->sleeper, sim.now_ns);
}

static void watch(struct kd_comm *c, int on)
{
	of(c)->watches = on;
	if (on)
		wake(c);
}

const struct kd_comm_engine sim_comm = {
	start, stop, name, connect, send_message, NULL, get, NULL, expose, hide, progress, watch,
	wait, wake,
	forget, renew,
};
