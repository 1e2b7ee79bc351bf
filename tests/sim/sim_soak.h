/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many simulated jobs, each in a process of its own: several at a time, and one that fails or
 * crashes does not end the others. Every job begins in the same state, at the same addresses, so it
 * can be repeated alone.
 */
#ifndef KD_TESTS_SIM_SOAK_H
#define KD_TESTS_SIM_SOAK_H

#include <stdint.h>

/* Sums over the jobs; they lie in memory that the processes share. */
struct sim_soak {
	uint64_t jobs, failed;
	/* added to by jobs, atomically */
	uint64_t deaths, joined, left, events, steals, again;
	uint64_t hash; /* of all that has happened, in whatever order the jobs ran */
};

/* Fixes the addresses of this process and those it starts, where the system allows that: the
 * program may begin once more. To be called first. */
void sim_soak_begin(char **argv);
/* Runs job(number), which returns 0 or, after a line on stderr, 1, for so many numbers: that many
 * at a time, 0: one per CPU. Prints how far it is from time to time. Returns the number of those
 * that have failed. */
uint64_t sim_soak(uint64_t first, uint64_t count, unsigned processes,
		  int (*job)(uint64_t number, struct sim_soak *sums), struct sim_soak *sums_p);

#endif
