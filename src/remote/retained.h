/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retained results: large results stay at the thief until this rank, the victim, needs them.
 * Meanwhile their closures are complete for that thief only (KD_RETAINED in record.h), and it is
 * given their followers first: tasks that update one tile repeatedly move it once. A result that a
 * follower overwrites is never read.
 *
 *   DONE ──> retained ── a closure here reads them, or a worker is idle ──> coming ──> settled
 *               └────── taken over by a follower, which is complete ─────────────────────┘
 *
 * export.c decides which results may be retained and when to look at them. This file has those
 * that are, and decides what happens to them. The net lock protects everything here; the
 * functions that need no lock say so.
 */
#ifndef KD_RETAINED_H
#define KD_RETAINED_H

#include "remote/outgoing.h"
#include "remote/read.h"

struct kd_retained;

/* The life of an export; doc/protocol.md describes the states and has the drawing. */
enum kd_export_state {
	KD_EXPORT_OUT,      /* WORK has been sent */
	KD_EXPORT_ANSWERED, /* DONE has arrived; its list of results may have yet to be read */
	KD_EXPORT_RETAINED, /* the thief retains the large outputs */
	KD_EXPORT_RECALLED, /* they are being read because a worker here is idle */
	KD_EXPORT_COMING,   /* they are being read, or will be overwritten by a follower */
	KD_EXPORT_COMPLETE, /* the closures are complete for all ranks */
	KD_EXPORT_LOST,     /* the thief has died; the closures are run again */
};

/* A large output: it will be read here, or overwritten at the thief. */
struct kd_output {
	struct kd_read get; /* first */
	struct kd_target *target;
	struct kd_retained *taker;   /* whose closures overwrite it at the thief; NULL: none's do */
	struct kd_output *chain; /* in the table of retained outputs */
};

/* The large outputs of an export, and those of other exports that its closures overwrite. */
struct kd_retained {
	struct kd_net *net;
	const struct kd_range *range; /* the export's, as is thief */
	uint32_t thief;
	enum kd_export_state state; /* of the export; only kd_retained_turn changes it */
	void (*settled)(struct kd_retained *r);
	struct kd_output *outputs;
	uint32_t noutputs;
	uint32_t pending; /* outputs neither here nor overwritten */
	uint32_t lent;    /* of these, outputs with a taker */
	uint32_t reading; /* outputs that are being read */
	uint64_t bytes;   /* of all outputs */
	uint64_t fetch_ns; /* when reading them began; 0: it has not */
	struct kd_retained *newer, *older;  /* in the list of all retained */
	struct kd_retained *after, *before; /* in the list of those retained by thief */
	struct kd_output **taken;       /* outputs of other exports that this one overwrites */
	uint32_t ntaken;
	struct kd_outgoing *outgoing; /* has gathered a value that its thief retains */
	struct kd_retained *next;     /* in the list of those with a gathered copy */
};

void kd_retained_start(struct kd_net *net);
void kd_retained_stop(struct kd_net *net);
/* The export enters another state. */
void kd_retained_turn(struct kd_retained *r, enum kd_export_state to);
/* The number of exports whose results are retained. Any thread, no lock. */
uint32_t kd_retained_count(const struct kd_net *net);

/* Whether the thief retains this value. */
int kd_retained_has(struct kd_net *net, uint32_t thief, const struct kd_value *v);
/* For what the export's steal message shares with results retained by its thief: targets among
 * them are not read any more, and gathered values are gathered again once the result has
 * arrived, before the thief may forget it. */
void kd_retained_take_over(struct kd_retained *r, struct kd_outgoing *p);
/* Followers: closures that only this thief can run, at most want of them, that pass the filter.
 * Returns 1 and a range, or 0. */
int kd_retained_follow(struct kd_net *net, uint32_t thief, uint32_t want, struct kd_filter *filter,
		       struct kd_range *range_p);
/* The same for a thief that retains something, of those in turn. *thief_p: it, set before the
 * filter is asked. */
int kd_retained_follow_any(struct kd_net *net, uint32_t want, struct kd_filter *filter,
			   uint32_t *thief_p, struct kd_range *range_p);

/* The thief has run the closures and reads the steal message no more: settles the outputs that
 * they have overwritten. */
void kd_retained_settle_taken(struct kd_retained *r);
/* Adds the large outputs, at most `most`; kd_retained_add fits kd_results_apply. When all are here
 * or overwritten, settled is called. */
void kd_retained_expect(struct kd_retained *r, uint32_t most,
			void (*settled)(struct kd_retained *r));
void kd_retained_add(void *r, struct kd_target *t, const struct kd_wire_memory *from);
/* All outputs have been added (at least one). Retains them if `may` is set and they are within
 * the budget, otherwise fetches them. */
void kd_retained_begin(struct kd_retained *r, int may);
void kd_retained_free(struct kd_retained *r);

/* Looks at some retained results, oldest first, and reads those that closures here wait to read.
 * Returns whether more remain to be looked at. */
int kd_retained_fetch_wanted(struct kd_net *net);
/* A worker is idle, and results may give it work. Reads some that are likely to be of use
 * here. */
void kd_retained_recall(struct kd_net *net, uint64_t now_ns);
/* Likewise, whether they are likely to be of use or not. */
void kd_retained_recall_any(struct kd_net *net);
/* Whether recalled results have arrived since the last call. */
int kd_retained_back(struct kd_net *net);

/* Dies unless the lists, the table and the numbers above agree, for some exports retained. */
#ifdef KDDS_DEBUG
void kd_retained_check(struct kd_net *net);
#else
static inline void kd_retained_check(struct kd_net *net)
{
	(void)net;
}
#endif

#endif
