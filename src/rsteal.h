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
 *   results ── DONE ───────────────────> fetch outputs, closures KD_DONE, whoever waited goes on
 *   forget <───────────────────── FREE   (only if there was something to fetch)
 *
 * Outputs are read by the victim, never written by the thief: nobody writes into another process's memory.
 * All under the net lock, unless it says otherwise.
 */
#ifndef KD_RSTEAL_H
#define KD_RSTEAL_H

#include "stack.h"
#include "worker.h"

struct kd_import;

struct kd_rsteal_counts {
	uint64_t asked, refused;     /* requests sent; answered by NONE, or not at all */
	uint64_t imports, imported;  /* packages received; closures in them */
	uint64_t exports, exported;  /* packages sent; closures in them */
	uint64_t returned;           /* packages whose results are in place */
	uint64_t fetched_bytes;      /* read from others: inputs and outputs */
	uint64_t asks, ask_ns;       /* packages that answered a request; from request to first instruction, summed */
};

extern struct kd_rsteal_counts kd_rsteal_counts;

void kd_rsteal_start(uint32_t rank, uint32_t size);
void kd_rsteal_stop(void);

/* What a peer sent. */
void kd_rsteal_message(uint32_t from, unsigned kind, const void *body, size_t bytes);

/* Some worker has nothing to do: asks for work when it is time to. Returns when to call it again. */
uint64_t kd_rsteal_ask(uint64_t now_ns);
/* Finished imports; thieves that wait. Returns when to call it again at the latest (UINT64_MAX: no need). */
uint64_t kd_rsteal_tick(uint64_t now_ns);
/* There may be work for thieves that wait. Any thread, no lock. */
void kd_rsteal_poked(void);

/* Takes an import to be run here, or (far) to be passed on to another rank. Any thread, no lock. */
int kd_rsteal_take(int far, struct kd_range *range_p);
/* The closures of the range, part of an import, are complete. Any worker, no lock. */
void kd_rsteal_complete(const struct kd_range *range);
/* Where the length of closure c of the import goes (span.h). Whoever runs c. */
uint64_t *kd_import_length(struct kd_import *im, const char *c);
uint64_t kd_import_serial(const struct kd_import *im);

/* The job is over: tells the other ranks. Rank 0. */
void kd_rsteal_end(void);

#endif
