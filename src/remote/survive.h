/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of a job when its launcher says that a rank is dead (kddsrun --survive).
 *
 * At a victim of the lost rank nothing has changed since the range was exported: results are
 * staged, and stored all at once when the last one has arrived (export.c). So the closures of the
 * range are run again, here, by any worker, as if a thief of this process had stolen them. What a
 * thief of the lost rank runs for it goes nowhere. No two ranks have to agree on anything: results
 * are stored by the victim alone, which has either stored them or given the range out again.
 *
 * A rank that has been started again (--respawn) is a thief without work: nothing of its
 * predecessor moves to it. Whatever could be taken for the predecessor's carries the incarnation
 * (base/member.h); the rest of what a rank knows of another is dropped when that dies.
 */
#ifndef KD_SURVIVE_H
#define KD_SURVIVE_H

#include "base/base.h"

struct kd_boot_change;
struct kd_net;

/* 0; -EINVAL after a line if ranks of this job cannot survive others. */
int kd_survive_start(struct kd_net *net);
void kd_survive_stop(struct kd_net *net);

/* The launcher says that a rank is dead, was dead when this one joined, or has been started again.
 * Under the lock, not during kd_comm_progress. */
void kd_survive_changed(struct kd_net *net, const struct kd_boot_change *change);
/* Rank 0, before it ends the job: finishes what it runs for dead ranks, with the help of others. */
void kd_survive_finish(struct kd_net *net);
/* Another rank, when the job is over: whether it still runs something for dead ranks, which may
 * wait for others that have ended. Then its workers cannot be ended: kd_survive_tick leaves the job
 * and ends the process. */
int kd_survive_ends(struct kd_net *net);
void kd_survive_tick(struct kd_net *net);

#endif
