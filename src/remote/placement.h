/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives placed closures (core/place.h) to their ranks: those that are ready, without a request, and
 * those that their owners have claimed. What cannot leave runs here. The net lock protects
 * everything; the functions that need no lock say so.
 *
 *   spawned ── ready ────> taken by the communication thread ──┐
 *           ── claimed ──> taken by the owner ─────────────────┴──> WORK 0, or kd_again_stay
 */
#ifndef KD_PLACEMENT_H
#define KD_PLACEMENT_H

#include "base/base.h"

struct kd_net;
struct kd_range;
struct kd_remote;

void kd_placement_start(struct kd_net *net);
void kd_placement_stop(struct kd_net *net);

/* The rank that the number stands for; -1: this one; -2: one that has died. Any thread, no lock. */
int kd_placement_rank(struct kd_remote *r, uint32_t number);
/* There may be closures to be given. Any thread; locks may be held. */
void kd_placement_look(struct kd_remote *r);
/* The same without locks: gives them at once, if nobody holds the net lock. */
void kd_placement_now(struct kd_remote *r);
/* As kd_placement_look, if an owner that has gone on makes any ready. */
void kd_placement_passed(struct kd_remote *r);
/* A rank has joined: closures that are placed there go there, also those that were lost with its
 * predecessor. Under the lock. */
void kd_placement_joined(struct kd_net *net);
/* The range has been taken by its owner. Any thread, no lock. */
void kd_placement_give(struct kd_remote *r, const struct kd_range *range);

/* Gives what there is. Returns when to call it again at the latest (UINT64_MAX: no need). */
uint64_t kd_placement_tick(struct kd_net *net, uint64_t now_ns);

#endif
