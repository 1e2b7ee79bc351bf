/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The victim's side of stealing between processes; rsteal.h draws it. All under the net lock, unless it says otherwise.
 *
 *   out ── DONE ──> large results at rest (rest.h), or being read ──> complete
 */
#ifndef KD_EXPORT_H
#define KD_EXPORT_H

#include "base/base.h"

void kd_export_start(void);
void kd_export_stop(void);

/* Messages from a thief: REQ; DONE. */
void kd_export_asked(uint32_t from, const void *body, size_t bytes);
void kd_export_done(uint32_t from, const void *body, size_t bytes);

/* Thieves that wait. Returns when to call it again at the latest (UINT64_MAX: no need). */
uint64_t kd_export_tick(uint64_t now_ns);
/* There may be work for thieves that wait. Any thread, no lock. */
void kd_export_poked(void);
/* Of kd_pool.sleepers the workers: thieves that wait are one more, who has no use for results here. Likewise. */
uint32_t kd_export_sleepers(void);
/* A worker is about to sleep, and has said so in kd_pool.sleepers. Likewise. */
void kd_export_sleep(void);
/* Some results that are still at the thief are needed here; KD_AWAY_WANTED in index.h. Likewise. */
void kd_export_want(void);

#endif
