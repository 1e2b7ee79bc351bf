/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/balance.h"

#include <stdlib.h>

#include "base/log.h"
#include "remote/net.h"

#define SHARE 4         /* of all time, a SHAREth is subtracted */
#define MOST_NS 500000000 /* on an account */

struct account {
	uint64_t since_ns, most_ns;
	int64_t saved_ns;
	int idle;
};

struct kd_balance {
	struct account *accounts; /* by rank */
};

void kd_balance_start(struct kd_net *net)
{
	net->balance = kd_must(calloc(1, sizeof(*net->balance)));
	net->balance->accounts = kd_must(calloc(net->size, sizeof(*net->balance->accounts)));
}

void kd_balance_stop(struct kd_net *net)
{
	free(net->balance->accounts);
	free(net->balance);
	net->balance = NULL;
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

	*a = (struct account){now, most_ns, saved(a, now), idle};
}

int kd_balance_affords(const struct kd_net *net, uint32_t rank, uint32_t from, uint64_t bytes,
		       uint64_t now)
{
	const struct account *a = net->balance->accounts;

	return saved(&a[rank], now) - saved(&a[from], now) >= (int64_t)kd_balance_ns(bytes);
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

	set(&a[rank], saved(&a[rank], now) - 2 * (int64_t)kd_balance_ns(bytes), now);
	set(&a[from], 0, now);
}
