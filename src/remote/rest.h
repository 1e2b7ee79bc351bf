/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results at rest: large ones stay where they are, at the thief, until somebody here needs them. Meanwhile their closures count as
 * complete for the thief alone (KD_AWAY in index.h), who is given what follows them first: tasks that update one tile again and
 * again move it once. What a follower has written over is never read.
 *
 *   DONE ──> at rest ── somebody here reads them, or has nothing to do ──> being read ──> settled
 *               └────── taken over by a follower, which is done ─────────────────────────────┘
 *
 * export.c says what may rest and when to look; here is what does, and what is to become of it. All under the net lock, unless it
 * says otherwise.
 */
#ifndef KD_REST_H
#define KD_REST_H

#include "remote/package.h"
#include "remote/reading.h"

struct kd_rest;

/* One that is to be read, or written over. */
struct kd_output {
	struct kd_reading get; /* first */
	struct kd_target *target;
	struct kd_rest *taker;   /* its closures write over it at the thief */
	struct kd_output *chain; /* in the table of those at rest */
};

/* The large results of an export, and those of others that its closures write over. */
struct kd_rest {
	const struct kd_range *range; /* the export's, as is thief */
	uint32_t thief;
	void (*settled)(struct kd_rest *r);
	struct kd_output *outputs;
	uint32_t noutputs, pending, lent; /* pending: neither here nor written over; lent: of these, those with a taker */
	uint32_t reading;                 /* of the outputs, those that are being read */
	uint64_t bytes;                   /* of the outputs */
	int rests, recalled;
	struct kd_rest *newer, *older;    /* of those at rest */
	struct kd_rest *after, *before;   /* likewise, of those in one list by thief */
	struct kd_output **taken;         /* of others, which this one writes over */
	uint32_t ntaken;
	struct kd_parcel *parcel;         /* has gathered a value that rests at the thief */
	struct kd_rest *next;             /* among those that have */
};

void kd_rest_start(void);
/* How many exports have results at rest. Any thread, no lock. */
uint32_t kd_rest_count(void);

/* Whether the thief has left this value with it. */
int kd_rest_has(uint32_t thief, const struct kd_value *v);
/* What of the export's package rests at its thief: targets are not to be read any more, what has been gathered is to be gathered again
 * when it has come, before the thief may forget it. */
void kd_rest_take_over(struct kd_rest *r, struct kd_parcel *p);
/* Closures that can only run where they are: at the thief, which wants so many and may
 * have what the filter says. Returns 1 and a range, or 0. */
int kd_rest_follow(uint32_t thief, uint32_t want, struct kd_filter *filter, struct kd_range *range_p);

/* The closures are complete there, and the package is not read any more. What they have written over is settled. */
void kd_rest_settle_taken(struct kd_rest *r);
/* Their large results, `most` at most: fits kd_results_apply. Once all are here or written over, *settled is called. */
void kd_rest_expect(struct kd_rest *r, uint32_t most, void (*settled)(struct kd_rest *r));
void kd_rest_add(void *r, struct kd_target *t, const struct kd_wire_memory *from);
/* That was all, and not nothing: lets them rest, if they may and there is not too much of that, or reads them. */
void kd_rest_begin(struct kd_rest *r, int may);
void kd_rest_free(struct kd_rest *r);

/* Looks at some of those at rest, from the oldest to the newest, and reads what somebody here waits to read. Whether there are more to
 * be looked at. */
int kd_rest_fetch_wanted(void);
/* Some worker has nothing to do: it may have when results are here. Reads some that there seems to be use for. */
void kd_rest_recall(uint64_t now_ns);
/* The same, whatever they are good for. */
void kd_rest_recall_any(void);
/* Whether any that were recalled have come since this was last asked. */
int kd_rest_back(void);

#endif
