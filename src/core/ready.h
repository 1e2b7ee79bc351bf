/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readiness: which earlier closure of its frame a closure waits for, by the links of its accesses
 * and the modes of the accesses that they lead to. The states of the earlier closures are in their
 * readiness records (record.h). A search that has found a closure to wait for continues from there
 * once that is complete. Called under the stack's lock.
 */
#ifndef KD_READY_H
#define KD_READY_H

#include "core/record.h"

/* The closure that c waits for. NULL: c is ready. n is the record of c. Closures from `from` on
 * (NULL: none) count as complete: they precede c in the range being built; *inside_p is set if c
 * depends on one of them. */
char *kd_ready_waits_for(struct kd_view *v, struct kdds_closure *c, struct kd_record *n,
			 const char *from, int *inside_p);

/* The closure that the contributions of c, which is complete, must follow: an earlier use of the
 * data that is not complete, or a contribution that is not merged. NULL: they may be merged.
 * *never_p: only the owner can merge them. */
char *kd_ready_merges_after(struct kd_view *v, struct kdds_closure *c, int *never_p);

/* Marks the last writers before c of the data that c uses: a later closure needs their results. */
void kd_ready_mark_uses(struct kd_view *v, struct kdds_closure *c);

#endif
