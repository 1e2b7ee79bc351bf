/* SPDX-License-Identifier: BSD-3-Clause */
/* The thief's requests: which rank to ask, when, and for how much. One request is outstanding per
 * process. The net lock protects everything here. */
#ifndef KD_ASK_H
#define KD_ASK_H

#include <stddef.h>
#include <stdint.h>

struct kd_net;

void kd_ask_start(struct kd_net *net);
void kd_ask_stop(struct kd_net *net);

/* Sends a request when the time for one has come. idle: a worker has nothing to run, and no import
 * is ready or arriving. Returns when to call it again (UINT64_MAX: the job is over). */
uint64_t kd_ask(struct kd_net *net, uint64_t now_ns, int idle);
/* When it would. */
uint64_t kd_ask_due(struct kd_net *net, uint64_t now_ns);
/* NONE from a victim. */
void kd_ask_refused(struct kd_net *net, const void *body, size_t bytes);
/* WORK of that generation has come from that victim. Returns when it was requested; 0: it was not,
 * or a later request has been sent. */
uint64_t kd_ask_answered(struct kd_net *net, uint32_t victim, uint32_t generation,
			 uint32_t request);
/* WORK has come that belongs to this rank, and more may: asks later. */
void kd_ask_given(struct kd_net *net, uint32_t victim, uint32_t generation);
/* The rank has died: another process may take its place. */
void kd_ask_lost(struct kd_net *net, uint32_t rank);
/* As many closures make an import of the right length. */
void kd_ask_want(struct kd_net *net, uint64_t closures);

#endif
