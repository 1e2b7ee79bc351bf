/* SPDX-License-Identifier: BSD-3-Clause */
/* src/remote/weigh.c and balance.c, as rank 0 of a simulation has them. */
#ifndef SIM_WEIGH_H
#define SIM_WEIGH_H

#include <stdint.h>

#define SIM_TYPES 4
#define SIM_SMALL 2097152 /* bytes in and out of a small trial */

struct sim_weigh_type {
	int64_t run, move, pause, until;
	int64_t packages, losses;
};

struct sim_account {
	int64_t since, most, saved;
	int idle;
};

struct sim_weighing {
	struct sim_weigh_type type[SIM_TYPES];
	struct sim_account *account; /* by rank */
};

void sim_weigh_start(struct sim_weighing *w, uint32_t ranks);
void sim_weigh_stop(struct sim_weighing *w);
int sim_weigh_dear(const struct sim_weighing *w, int type);
int64_t sim_weigh_until(const struct sim_weighing *w, int type);
int64_t sim_weigh_large_until(const struct sim_weighing *w, int type, int64_t bytes);
int sim_weigh_pays(const struct sim_weighing *w, int type, int64_t inputs_ns);
int sim_weigh_all_lose(const struct sim_weighing *w);
void sim_weigh_given(struct sim_weighing *w, int type, int64_t now);
void sim_weigh_returned(struct sim_weighing *w, int type, int64_t now, int64_t run, int64_t move);

void sim_balance_note(struct sim_weighing *w, uint32_t rank, int idle, int64_t now, int64_t most);
int sim_balance_affords(const struct sim_weighing *w, uint32_t rank, uint32_t from, int64_t bytes,
			int64_t now);
void sim_balance_spend(struct sim_weighing *w, uint32_t rank, uint32_t from, int64_t bytes,
		       int64_t now);
int64_t sim_balance_ns(int64_t bytes);

#endif
