/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers without work look again at growing intervals, and sleep after KDDS_SPIN_US.
 *
 * Owners do not look for sleepers. A worker that goes to sleep leaves a wake hint on the stacks of
 * the others (KD_HINT, and a limit that makes the next push call the library), so waking costs
 * nothing while nobody sleeps. Before it sleeps, it looks at every stack once more and leaves the
 * hint where it finds nothing. If a hint is lost (owners rewrite limit), the sleep is bounded all
 * the same.
 */
#ifndef KD_IDLE_H
#define KD_IDLE_H

#include "core/worker.h"

/* w has just looked everywhere and found nothing. Spins, yields or sleeps for a while. look(arg) is
 * the last look before sleep, with hint; it returns 1 if it has found something. Returns what look
 * returns, or 0. */
int kd_idle(struct kd_worker *w, int (*look)(struct kd_worker *w, void *arg), void *arg);
/* w has found something. */
void kd_idle_end(struct kd_worker *w);

/* Wakes one sleeper of the pool, if there is one. */
void kd_idle_wake_one(struct kd_pool *p);
void kd_idle_wake_all(struct kd_pool *p);
/* What a bound stack of w waits for is complete. */
void kd_idle_interrupt(struct kd_worker *w);

#endif
