/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retained results: large results stay at the rank that has made them until they are needed
 * elsewhere. Their closures are complete all the same, for all: what follows them is ready, and
 * before it runs this rank, the victim, looks where its data are (place.h). A closure goes to the
 * rank that retains what it writes, or most of what it reads; whatever it needs that is not there
 * is read here first. A result that a closure overwrites at its thief is never read.
 *
 *   DONE ──> retained ── a closure or a body needs it here ──> read ──> here
 *               └────── its thief has overwritten it, or the program does not use it any more
 *
 * A set of values by address has what is retained for this rank. Only rank 0 has one: the frames of
 * the others are parts of imports, whose results leave them. The net lock protects everything
 * here, and a lock of its own the set, in which workers look, too.
 */
#ifndef KD_RETAINED_H
#define KD_RETAINED_H

#include "remote/outgoing.h"
#include "remote/read.h"

struct kd_worker;

/* What a rank retains of the results of one import. When nothing is left, it receives FREE. */
struct kd_retained_import {
	struct kd_net *net;
	uint32_t rank, import, generation;
	uint32_t left; /* values, and exports that have borrowed it */
	const struct kdds_type *type; /* of the first closure, for observers */
};

/* Somebody who waits for values. */
struct kd_need {
	uint32_t left;
	void (*here)(struct kd_need *need); /* under the net lock */
};

void kd_retained_start(struct kd_net *net);
void kd_retained_stop(struct kd_net *net);

/* Whether a result of a range may be retained where it is: the program's own memory, in a frame of
 * rank 0 that is no part of an import. */
int kd_retained_may(const struct kd_net *net, const struct kd_range *range,
		    const struct kd_value *v, uint64_t bytes);
/* The rank of the import retains v there. */
void kd_retained_add(struct kd_retained_import *of, const struct kd_value *v,
		     const struct kd_wire_memory *from);
/* Values have been added; before their closures are complete. */
void kd_retained_begin(struct kd_net *net);
/* v has another value now: what is retained of it is of no use. */
void kd_retained_overwrite(struct kd_net *net, const struct kd_value *v);
/* The import of which that rank retains v, and where it has it; NULL: it does not. A steal message
 * that names it borrows the import: until it is returned, FREE does not overtake the message. */
struct kd_retained_import *kd_retained_at(struct kd_net *net, uint32_t rank,
					  const struct kd_value *v,
					  struct kd_wire_memory *memory_p);
void kd_retained_return(struct kd_retained_import *of);
/* Adds the bytes of what c uses that the rank retains, and of what else c reads. */
void kd_retained_count(struct kd_net *net, struct kdds_closure *c, uint32_t rank, uint64_t *there_p,
		       uint64_t *rest_p);
/* Has all that c uses read, except for what rank `to` retains and uses in place. Adds to
 * need->left what it waits for. */
void kd_retained_need(struct kd_net *net, struct kdds_closure *c, uint32_t to,
		      struct kd_need *need);
/* A closure on its way to the rank overwrites v there: kdds_sync of no other body reads it. */
void kd_retained_lend(struct kd_net *net, uint32_t rank, const struct kd_value *v);

/* For kd_remote_ops. */
int kd_retained_residence(struct kd_remote *r, const struct kdds_closure *c, int stays);
int kd_retained_elsewhere(struct kd_remote *r, const struct kd_value *v);
void kd_retained_bring(struct kd_remote *r, struct kd_worker *w, const struct kd_value *v);
void kd_retained_gone(struct kd_remote *r, struct kd_worker *w, const void *p, uint64_t bytes);

#endif
