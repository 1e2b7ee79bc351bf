/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers without work: look again, more and more slowly, and after KDDS_SPIN_US sleep.
 *
 * Owners do not look for sleepers; a sleeper leaves a mark on the stacks of the others (KD_POKE, and a limit that makes the
 * next push call the library), so waking costs nothing while nobody sleeps. Before it sleeps it looks at every stack once
 * more, leaving the mark where there was nothing. Should a mark be lost (a limit is rewritten by its owner), the sleep is
 * bounded all the same.
 */
#ifndef KD_IDLE_H
#define KD_IDLE_H

#include "core/worker.h"

/* w has just looked everywhere in vain. Spins, yields or sleeps a little. look(arg) is the last look, with poke; it returns 1
 * when it has found something. Returns what look does, or 0. */
int kd_idle(struct kd_worker *w, int (*look)(struct kd_worker *w, void *arg), void *arg);
/* w has found something. */
void kd_idle_end(struct kd_worker *w);

/* Wakes one sleeper, if there is one. */
void kd_idle_wake_one(void);
void kd_idle_wake_all(void);
/* What a bound stack of w's waits for is there. */
void kd_idle_interrupt(struct kd_worker *w);

#endif
