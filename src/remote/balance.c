/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/balance.h"

#include <stdlib.h>

#include "base/log.h"
#include "remote/net.h"

#define SHARE 4         /* of all time, a SHAREth is subtracted */
#define MOST_NS 500000000 /* on an account */
#define LATENCY_NS 50000
#define SAMPLE_BYTES 262144u /* what is shorter says little about the bandwidth */
/* Per byte, until something has moved faster. What has moved more slowly may have waited for the
 * tasks of both ranks, and shows in what packages have cost (weigh.h). */
#define MOST_PS 1000
#define LEAST_PS 10
#define DIRECT_PS 500 /* if the kernel copies them, into pages that it clears before */
#define SPARE_NS 8000000u /* of work that a rank may have besides that for the next move */
#define MEMORY 8         /* samples: older ones count less */

struct account {
	uint64_t since_ns, most_ns;
	int64_t saved_ns;
	int idle;
	uint32_t workers; /* 0: not known */
	int direct;
	uint32_t out; /* ranges that the rank has not answered */
	/* How long these are expected to run, and when the rank will have run them; how long the
	 * last one moves. */
	uint64_t run_ns, end_ns, move_ns;
	int ran_out; /* nevertheless it has nothing to run */
};

struct kd_balance {
	struct account *accounts; /* by rank */
	uint64_t ps; /* that it takes to move a byte, MEMORY times as many */
	uint32_t direct; /* ranks of which the kernel copies the data */
};

void kd_balance_start(struct kd_net *net)
{
	net->balance = kd_must(calloc(1, sizeof(*net->balance)));
	net->balance->accounts = kd_must(calloc(net->size, sizeof(*net->balance->accounts)));
	net->balance->ps = MEMORY * MOST_PS;
}

void kd_balance_stop(struct kd_net *net)
{
	free(net->balance->accounts);
	free(net->balance);
	net->balance = NULL;
}

void kd_balance_rank(struct kd_net *net, uint32_t rank, uint32_t workers, int direct)
{
	struct account *a = &net->balance->accounts[rank];

	a->workers = workers;
	if (a->direct != direct)
		kd_store_relaxed(&net->balance->direct,
				 net->balance->direct + (direct ? 1u : UINT32_MAX));
	a->direct = direct;
}

static uint32_t workers_of(const struct account *a)
{
	return kd_max(a->workers, 1u);
}

void kd_balance_given(struct kd_net *net, uint32_t rank, uint64_t run_ns, uint64_t move_ns,
		      uint64_t now)
{
	struct account *a = &net->balance->accounts[rank];

	if (!a->out++ || a->ran_out)
		a->end_ns = now + move_ns;
	a->end_ns += run_ns / workers_of(a);
	a->run_ns += run_ns;
	a->move_ns = move_ns;
	a->ran_out = 0;
}

/* A single worker begins the next range now. Of several, the others have run parts of theirs. */
void kd_balance_answered(struct kd_net *net, uint32_t rank, uint64_t run_ns, uint64_t now)
{
	struct account *a = &net->balance->accounts[rank];
	uint64_t end_ns;

	kd_assert(a->out && a->run_ns >= run_ns);
	a->out--;
	a->run_ns -= run_ns;
	end_ns = now + a->run_ns / workers_of(a);
	a->end_ns = workers_of(a) == 1 ? end_ns : kd_min(a->end_ns, end_ns);
}

void kd_balance_ran_out(struct kd_net *net, uint32_t rank, int ran_out)
{
	net->balance->accounts[rank].ran_out = ran_out;
}

uint64_t kd_balance_has_until(const struct kd_net *net, uint32_t rank)
{
	const struct account *a = &net->balance->accounts[rank];
	uint64_t before = a->move_ns + SPARE_NS;

	if (a->ran_out || a->out < workers_of(a) || a->end_ns <= before)
		return 0;
	return a->end_ns - before;
}

uint32_t kd_balance_has(const struct kd_net *net, uint32_t rank)
{
	return net->balance->accounts[rank].out;
}

void kd_balance_moved(struct kd_net *net, uint64_t bytes, uint64_t ns)
{
	struct kd_balance *me = net->balance;
	uint64_t ps = (uint64_t)((double)ns * 1000 / (double)kd_max(bytes, (uint64_t)1));

	if (bytes >= SAMPLE_BYTES)
		kd_store_relaxed(&me->ps, me->ps - me->ps / MEMORY +
						  kd_min(kd_max(ps, (uint64_t)LEAST_PS),
							 (uint64_t)MOST_PS));
}

uint64_t kd_balance_ns(const struct kd_net *net, uint64_t bytes)
{
	double ps = (double)kd_load_relaxed(&net->balance->ps); /* spread.c has no lock */

	return LATENCY_NS + (uint64_t)((double)bytes * ps / (MEMORY * 1000));
}

uint64_t kd_balance_spread_ns(const struct kd_net *net, uint64_t bytes)
{
	uint64_t ns = kd_balance_ns(net, bytes);

	if (kd_load_relaxed(&net->balance->direct) < net->size - 1)
		return ns;
	return kd_min(ns, LATENCY_NS + bytes * DIRECT_PS / 1000);
}

/* What is on the account. */
static int64_t saved(const struct account *a, uint64_t now)
{
	uint64_t elapsed = a->since_ns ? now - a->since_ns : 0;
	int64_t ns = a->saved_ns - (int64_t)(elapsed / SHARE);

	if (a->idle)
		ns += (int64_t)kd_min(elapsed, a->most_ns);
	return kd_min(kd_max(ns, (int64_t)0), (int64_t)MOST_NS);
}

void kd_balance_note(struct kd_net *net, uint32_t rank, int idle, uint64_t now, uint64_t most_ns)
{
	struct account *a = &net->balance->accounts[rank];

	a->saved_ns = saved(a, now);
	a->since_ns = now;
	a->most_ns = most_ns;
	a->idle = idle;
}

void kd_balance_left(struct kd_net *net, uint32_t rank, uint64_t at)
{
	const struct account *a = &net->balance->accounts[rank];

	if (a->idle && at > a->since_ns)
		kd_balance_note(net, rank, 0, at, a->most_ns);
}

int kd_balance_affords(const struct kd_net *net, uint32_t rank, uint32_t from, uint64_t bytes,
		       uint64_t now)
{
	const struct account *a = net->balance->accounts;

	return saved(&a[rank], now) - saved(&a[from], now) >= (int64_t)kd_balance_ns(net, bytes);
}

static void set(struct account *a, int64_t ns, uint64_t now)
{
	a->most_ns -= a->since_ns ? kd_min(now - a->since_ns, a->most_ns) : 0;
	a->since_ns = now;
	a->saved_ns = kd_max(ns, (int64_t)0);
}

void kd_balance_spend(struct kd_net *net, uint32_t rank, uint32_t from, uint64_t bytes,
		      uint64_t now)
{
	struct account *a = net->balance->accounts;

	set(&a[rank], saved(&a[rank], now) - 2 * (int64_t)kd_balance_ns(net, bytes), now);
	set(&a[from], 0, now);
}
