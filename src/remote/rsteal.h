/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stealing between processes, after section 3 of T. Gautier, J.-L. Roch, F. Wagner, "Fine Grain
 * Distributed Implementation of a Dataflow Language with Provable Performances", 2007. The victim
 * keeps the stolen closures, marked, and an *export* that records which rank has them. The thief
 * runs copies of them at the base of a stack of its own. The *import* behind them is the
 * send-signal task of the paper: when all of them are complete it sends the outputs back, and the
 * victim's closures become complete as if a worker of the victim had run them.
 *
 *   thief                                victim
 *   idle ── REQ ───────────────────────> a range of closures, or NONE and the thief is remembered
 *   fetch inputs <──────────────── WORK  export: closures KD_STOLEN; inputs do not change, since
 *   run (others may steal parts)         their writers wait
 *   results ── DONE ───────────────────> fetch outputs, or let the thief retain them (retained.h);
 *                                        then closures KD_DONE, what waited for them continues
 *   forget <───────────────────── FREE   (only if there was something to fetch)
 *
 * The victim reads outputs, the thief never writes them: no process writes into the memory of
 * another. The net lock protects everything here.
 */
#ifndef KD_RSTEAL_H
#define KD_RSTEAL_H

#include "base/base.h"

struct kd_net;

void kd_rsteal_start(struct kd_net *net);
void kd_rsteal_stop(struct kd_net *net);

/* Handles a message of a peer. */
void kd_rsteal_message(struct kd_net *net, uint32_t from, unsigned kind, const void *body,
		       size_t bytes);
/* The job is over: sends END to the other ranks. Rank 0. */
void kd_rsteal_end(struct kd_net *net);

#endif
