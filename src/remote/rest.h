/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retained results: large results stay at the thief until this rank, the victim, needs them.
 * Meanwhile their closures are complete for that thief only (KD_AWAY in index.h), and it is given
 * their followers first: tasks that update one tile repeatedly move it once. A result that a
 * follower overwrites is never read.
 *
 *   DONE ──> at rest ── a closure here reads them, or a worker is idle ──> coming ──> settled
 *               └────── taken over by a follower, which is complete ─────────────────────┘
 *
 * export.c decides which results may be retained and when to look at them. This file has those
 * that are, and decides what happens to them. The net lock protects everything here; the
 * functions that need no lock say so.
 */
#ifndef KD_REST_H
#define KD_REST_H

#include "remote/package.h"
#include "remote/reading.h"

struct kd_rest;

/* The life of an export; doc/protocol.md describes the states and has the drawing. */
enum kd_export_state {
	KD_EXPORT_OUT,      /* WORK has been sent */
	KD_EXPORT_ANSWERED, /* DONE has arrived; its list of results may have yet to be read */
	KD_EXPORT_AT_REST,  /* the thief retains the large outputs */
	KD_EXPORT_RECALLED, /* they are being read because a worker here is idle */
	KD_EXPORT_COMING,   /* they are being read, or will be overwritten by a follower */
	KD_EXPORT_COMPLETE, /* the closures are complete for all ranks */
};

/* A large output: it will be read here, or overwritten at the thief. */
struct kd_output {
	struct kd_reading get; /* first */
	struct kd_target *target;
	struct kd_rest *taker;   /* whose closures overwrite it at the thief; NULL: none's do */
	struct kd_output *chain; /* in the table of retained outputs */
};

/* The large outputs of an export, and those of other exports that its closures overwrite. */
struct kd_rest {
	const struct kd_range *range; /* the export's, as is thief */
	uint32_t thief;
	enum kd_export_state state; /* of the export; only kd_rest_turn changes it */
	void (*settled)(struct kd_rest *r);
	struct kd_output *outputs;
	uint32_t noutputs;
	uint32_t pending; /* outputs neither here nor overwritten */
	uint32_t lent;    /* of these, outputs with a taker */
	uint32_t reading; /* outputs that are being read */
	uint64_t bytes;   /* of all outputs */
	struct kd_rest *newer, *older;  /* in the list of all at rest */
	struct kd_rest *after, *before; /* in the list of those at rest by thief */
	struct kd_output **taken;       /* outputs of other exports that this one overwrites */
	uint32_t ntaken;
	struct kd_parcel *parcel; /* has gathered a value that its thief retains */
	struct kd_rest *next;     /* in the list of those with a parcel */
};

void kd_rest_start(void);
/* The export enters another state. */
void kd_rest_turn(struct kd_rest *r, enum kd_export_state to);
/* The number of exports whose results are retained. Any thread, no lock. */
uint32_t kd_rest_count(void);

/* Whether the thief retains this value. */
int kd_rest_has(uint32_t thief, const struct kd_value *v);
/* For what the export's steal message shares with results retained by its thief: targets among
 * them are not read any more, and gathered values are gathered again once the result has
 * arrived, before the thief may forget it. */
void kd_rest_take_over(struct kd_rest *r, struct kd_parcel *p);
/* Followers: closures that only this thief can run, at most want of them, that pass the filter.
 * Returns 1 and a range, or 0. */
int kd_rest_follow(uint32_t thief, uint32_t want, struct kd_filter *filter,
		   struct kd_range *range_p);

/* The thief has run the closures and reads the steal message no more: settles the outputs that
 * they have overwritten. */
void kd_rest_settle_taken(struct kd_rest *r);
/* Adds the large outputs, at most `most`; kd_rest_add fits kd_results_apply. When all are here or
 * overwritten, settled is called. */
void kd_rest_expect(struct kd_rest *r, uint32_t most, void (*settled)(struct kd_rest *r));
void kd_rest_add(void *r, struct kd_target *t, const struct kd_wire_memory *from);
/* All outputs have been added (at least one). Retains them if `may` is set and they are within
 * the budget, otherwise fetches them. */
void kd_rest_begin(struct kd_rest *r, int may);
void kd_rest_free(struct kd_rest *r);

/* Looks at some retained results, oldest first, and reads those that closures here wait to read.
 * Returns whether more remain to be looked at. */
int kd_rest_fetch_wanted(void);
/* A worker is idle, and results may give it work. Reads some that are likely to be of use
 * here. */
void kd_rest_recall(uint64_t now_ns);
/* Likewise, whether they are likely to be of use or not. */
void kd_rest_recall_any(void);
/* Whether recalled results have arrived since the last call. */
int kd_rest_back(void);

/* Dies unless the lists, the table and the numbers above agree, for some exports at rest. */
#ifdef KDDS_DEBUG
void kd_rest_check(void);
#else
static inline void kd_rest_check(void) {}
#endif

#endif
