/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retained results: large results stay at the rank that has made them until they are needed
 * elsewhere. Their closures are complete all the same, for all: what follows them is ready, and
 * before it runs this rank, the victim, looks where its data are (place.h). A closure goes to the
 * rank that retains what it writes, or most of what it reads, and reads what another rank retains
 * from there. What closures only read here stays retained, and is read once, part by part. A result
 * that a closure overwrites at its thief is never read.
 *
 *   DONE ──> retained ── a closure or a body needs it here ──> read ──> here
 *               └────── a thief has overwritten it, or the program does not use it any more
 *
 * A set of values by address has what is retained for this rank. Only rank 0 has one: the frames of
 * the others are parts of imports, whose results leave them. The net lock protects everything
 * here, and a lock of its own the set, in which workers look, too.
 */
#ifndef KD_RETAINED_H
#define KD_RETAINED_H

#include "core/segments.h"
#include "remote/outgoing.h"
#include "remote/read.h"

struct kd_lie;
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

/* Whether a result of a range may be retained by the rank that has made it: it lies in the
 * program's own memory, in a frame of rank 0 that is no part of an import. Gives up others that are
 * here, too, to make room for it. */
int kd_retained_may(struct kd_net *net, const struct kd_range *range, const struct kd_value *v,
		    uint32_t rank, uint64_t bytes);
/* The rank has no more memory for results: gives up those that are here, too, until it retains
 * KDDS_CACHE bytes. */
void kd_retained_shrink(struct kd_net *net, uint32_t rank);
/* The rank of the import retains v there; gaps: with the gaps between its rows. */
void kd_retained_add(struct kd_retained_import *of, const struct kd_value *v,
		     const struct kd_wire_memory *from, int gaps);
/* Values have been added; before their closures are complete. */
void kd_retained_begin(struct kd_net *net);
/* v has another value now: what is retained of it is of no use. */
void kd_retained_overwrite(struct kd_net *net, const struct kd_value *v);
/* The import whose rank retains v, and where it has it; NULL: it is not the same value as one that
 * a rank retains, or has gaps and does not lie at the thief. A steal message that names it borrows
 * the import: until it is returned, FREE does not overtake the message, and the thief may read
 * v. */
struct kd_retained_import *kd_retained_at(struct kd_net *net, const struct kd_value *v,
					  uint32_t thief, struct kd_wire_memory *memory_p);
/* For each block of the bytes wanted of the value around them that another rank retains: calls
 * part, with the import, borrowed as above, and the value of which the block is a part, here and
 * there. Removes these bytes from the set. */
typedef void kd_retained_part(void *arg, struct kd_retained_import *of,
			      const struct kd_value *value, const struct kd_wire_memory *memory,
			      const struct kd_rows *b);
void kd_retained_parts(struct kd_net *net, const struct kd_value *around,
		       struct kd_segments *wanted, kd_retained_part *part, void *arg);
void kd_retained_return(struct kd_retained_import *of);
/* Adds the bytes of what c uses that the rank retains, and of what else c reads. */
void kd_retained_count(struct kd_net *net, struct kdds_closure *c, uint32_t rank, uint64_t *there_p,
		       uint64_t *rest_p);
/* Has all read here that the closures of the range use. If they go to another rank, only what that
 * can neither use in place nor read where it is. Adds to need->left what it waits for. */
void kd_retained_need(struct kd_net *net, const struct kd_range *range, uint32_t to,
		      struct kd_need *need);
/* A closure on its way to another rank overwrites v: kdds_sync of no other body reads it. */
void kd_retained_lend(struct kd_net *net, const struct kd_value *v);

/* For kd_remote_ops. */
int kd_retained_residence(struct kd_remote *r, const struct kdds_closure *c, int stays);
int kd_retained_elsewhere(struct kd_remote *r, const struct kd_value *v);
uint32_t kd_retained_lies(struct kd_remote *r, const struct kd_value *v, struct kd_lie *lies,
			  uint32_t most);
void kd_retained_bring(struct kd_remote *r, struct kd_worker *w, const struct kd_value *v,
		       int reads);
void kd_retained_gone(struct kd_remote *r, struct kd_worker *w, const void *p, uint64_t bytes);

#endif
