/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stealing between processes (dds.txt, section 3). The victim keeps the stolen closures, marked, and an *export* that says who has
 * them; the thief runs copies of them at the base of a stack of its own, behind which, as the paper's send-signal task, stands the
 * *import*: when all is complete it sends the outputs back, and the victim's closures are complete as if a worker of its own
 * had run them.
 *
 *   thief                                victim
 *   idle ── REQ ───────────────────────> a range of closures, or: NONE, and the thief may be remembered
 *   fetch inputs <──────────────── WORK  export: closures KD_STOLEN, inputs stay as they are (their writers wait)
 *   run (others may steal parts)
 *   results ── DONE ───────────────────> fetch outputs, or leave them there for a while (rest.h); then closures KD_DONE, whoever
 *                                        waited goes on
 *   forget <───────────────────── FREE   (only if there was something to fetch)
 *
 * Outputs are read by the victim, never written by the thief: nobody writes into another process's memory.
 * All under the net lock.
 */
#ifndef KD_RSTEAL_H
#define KD_RSTEAL_H

#include "base/base.h"

void kd_rsteal_start(void);
void kd_rsteal_stop(void);

/* What a peer sent. */
void kd_rsteal_message(uint32_t from, unsigned kind, const void *body, size_t bytes);
/* The job is over: tells the other ranks. Rank 0. */
void kd_rsteal_end(void);

#endif
