/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_weigh.h"

#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MEMORY 32
#define FIRST_NS 5000000
#define LOSSES 8
#define LOSS_SHARE 4
#define LOOK_NS 250000
#define TRIAL_NS 1000000000
#define SHARE 4
#define MOST_NS 500000000

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void sim_weigh_start(struct sim_weighing *w, uint32_t ranks)
{
	memset(w, 0, sizeof(*w));
	w->account = sim_alloc(NULL, ranks * sizeof(*w->account));
	memset(w->account, 0, ranks * sizeof(*w->account));
}

void sim_weigh_stop(struct sim_weighing *w)
{
	free(w->account);
}

/* Types of these graphs spawn nothing. */
static int dear(const struct sim_weigh_type *a)
{
	return !a->packages || (a->losses && a->move > a->run);
}

int sim_weigh_dear(const struct sim_weighing *w, int type)
{
	return dear(&w->type[type]);
}

int64_t sim_weigh_until(const struct sim_weighing *w, int type)
{
	return dear(&w->type[type]) ? w->type[type].until : 0;
}

int64_t sim_weigh_large_until(const struct sim_weighing *w, int type, int64_t bytes)
{
	const struct sim_weigh_type *a = &w->type[type];

	if (!a->until || (a->packages && !dear(a)))
		return 0;
	return a->until + least(a->pause * least(bytes / SIM_SMALL, TRIAL_NS), TRIAL_NS);
}

int sim_weigh_pays(const struct sim_weighing *w, int type, int64_t inputs_ns)
{
	const struct sim_weigh_type *a = &w->type[type];

	return !a->packages || a->run / least(a->packages, MEMORY) >= inputs_ns;
}

int sim_weigh_all_lose(const struct sim_weighing *w)
{
	int64_t packages = 0;

	for (int i = 0; i < SIM_TYPES; i++) {
		if (w->type[i].packages && !dear(&w->type[i]))
			return 0;
		packages += w->type[i].packages;
	}
	return packages != 0;
}

static void postpone(struct sim_weigh_type *a, int64_t now, int64_t move)
{
	a->pause = least(LOSS_SHARE * a->losses * (move + LOOK_NS), TRIAL_NS);
	a->until = now + a->pause;
}

void sim_weigh_given(struct sim_weighing *w, int type, int64_t now)
{
	struct sim_weigh_type *a = &w->type[type];

	if (a->packages)
		postpone(a, now, a->move / MEMORY);
	else if (!a->until)
		a->until = now + FIRST_NS;
}

void sim_weigh_returned(struct sim_weighing *w, int type, int64_t now, int64_t run, int64_t move)
{
	struct sim_weigh_type *a = &w->type[type];

	a->packages++;
	a->run += run - a->run / MEMORY;
	a->move += move - a->move / MEMORY;
	if (move > run)
		a->losses = least(a->losses + move / (run + 1), LOSSES);
	else
		a->losses /= 2;
	postpone(a, now, move);
}

static int64_t saved(const struct sim_account *a, int64_t now)
{
	int64_t elapsed = a->since ? now - a->since : 0, ns = a->saved - elapsed / SHARE;

	if (a->idle)
		ns += least(elapsed, a->most);
	return least(ns < 0 ? 0 : ns, MOST_NS);
}

void sim_balance_note(struct sim_weighing *w, uint32_t rank, int idle, int64_t now, int64_t most)
{
	struct sim_account *a = &w->account[rank];

	*a = (struct sim_account){now, most, saved(a, now), idle};
}

int sim_balance_affords(const struct sim_weighing *w, uint32_t rank, uint32_t from, int64_t bytes,
			int64_t now)
{
	return saved(&w->account[rank], now) - saved(&w->account[from], now) >=
	       sim_balance_ns(bytes);
}

static void set(struct sim_account *a, int64_t ns, int64_t now)
{
	a->most -= a->since ? least(now - a->since, a->most) : 0;
	a->since = now;
	a->saved = ns < 0 ? 0 : ns;
}

void sim_balance_spend(struct sim_weighing *w, uint32_t rank, uint32_t from, int64_t bytes,
		       int64_t now)
{
	set(&w->account[rank], saved(&w->account[rank], now) - 2 * sim_balance_ns(bytes), now);
	set(&w->account[from], 0, now);
}

int64_t sim_balance_ns(int64_t bytes)
{
	return 50000 + bytes;
}
