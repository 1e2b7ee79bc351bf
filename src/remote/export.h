/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The victim's side of stealing between processes; rsteal.h has the drawing. The net lock
 * protects everything here; the functions that need no lock say so.
 *
 *   out ── DONE ──> large results retained by the thief (rest.h), or being read ──> complete
 */
#ifndef KD_EXPORT_H
#define KD_EXPORT_H

#include "base/base.h"

void kd_export_start(void);
void kd_export_stop(void);

/* Messages from a thief: REQ; DONE. */
void kd_export_asked(uint32_t from, const void *body, size_t bytes);
void kd_export_done(uint32_t from, const void *body, size_t bytes);

/* Serves waiting thieves and fetches retained results that are needed here. Returns when to
 * call it again at the latest (UINT64_MAX: no need). */
uint64_t kd_export_tick(uint64_t now_ns);
/* There may be work for waiting thieves. Any thread, no lock. */
void kd_export_poked(void);
/* The workers among kd_pool.sleepers. Waiting thieves count there as one more sleeper, which
 * has no use for results at this rank. Any thread, no lock. */
uint32_t kd_export_sleepers(void);
/* Called by a worker that is about to sleep, after it has added itself to kd_pool.sleepers. Any
 * thread, no lock. */
void kd_export_sleep(void);
/* Some results that a thief still retains are needed here; see KD_AWAY_WANTED in index.h. Any
 * thread, no lock. */
void kd_export_want(void);

#endif
