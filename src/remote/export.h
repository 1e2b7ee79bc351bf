/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The victim's side of stealing between processes; rsteal.h has the drawing. The net lock
 * protects everything here; the functions that need no lock say so.
 *
 *   out ── DONE ──> large results retained by the thief (retained.h) or read ──> complete
 */
#ifndef KD_EXPORT_H
#define KD_EXPORT_H

#include "base/base.h"

struct kd_net;
struct kd_range;
struct kd_remote;

void kd_export_start(struct kd_net *net);
void kd_export_stop(struct kd_net *net);

/* Messages from a thief: REQ; DONE; DECLINE. From a victim: BACK. */
void kd_export_asked(struct kd_net *net, uint32_t from, const void *body, size_t bytes);
void kd_export_done(struct kd_net *net, uint32_t from, const void *body, size_t bytes);
void kd_export_back(struct kd_net *net, uint32_t from, const void *body, size_t bytes);
void kd_export_declined(struct kd_net *net, uint32_t from, const void *body, size_t bytes);
/* A worker waits for that closure: if it has been exported, asks the thief to return it unless it
 * has begun it. Looks through all exports. */
void kd_export_recall(struct kd_net *net, const char *closure);
/* A worker is idle: asks for one of the exports that have not been answered for long. The thief may
 * have become busy since it requested work. Returns when to call again. */
uint64_t kd_export_recall_overdue(struct kd_net *net, uint64_t now);

/* Sends WORK: the range, which has been taken for that rank. request: the number of its request; 0:
 * it has made none. */
void kd_export_send(struct kd_net *net, uint32_t thief, uint32_t request,
		    const struct kd_range *range);
/* The same as soon as what the range uses is where that rank can use it. To this rank: then it runs
 * here or, if opens_p is not NULL, wherever somebody is idle, and *opens_p is decremented. */
void kd_export_give(struct kd_net *net, uint32_t rank, uint32_t request,
		    const struct kd_range *range, int *opens_p);
/* What the data of a range for that rank may take: what it has said in its last request. */
uint64_t kd_export_room(struct kd_net *net, uint32_t thief);

/* Serves waiting thieves. Returns when to call it again at the latest (UINT64_MAX: no need). */
uint64_t kd_export_tick(struct kd_net *net, uint64_t now_ns);
/* The rank has died: what it had is run again (survive.h). */
void kd_export_lost(struct kd_net *net, uint32_t rank);
/* There may be work for waiting thieves. Any thread, no lock. */
void kd_export_available(struct kd_remote *r);
/* The same: a worker has run closures ahead of reference order for them. Any thread, no lock. */
void kd_export_ahead(struct kd_remote *r);
/* The workers among kd_pool.sleepers. Waiting thieves count there as one more sleeper, which
 * has no use for results at this rank. Any thread, no lock. */
uint32_t kd_export_sleepers(struct kd_remote *r);
#endif
