/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of a closure, in the word that the owner looks at before it runs it.
 *
 *        born 0 (KD_SPECIAL when it reduces by an operator that is not exact)
 *          |  \
 *          |   \ a thief takes a range that begins here   (under the stack's lock)
 *          |    v
 *          |   |KD_STOLEN -- the thief has run the range --> |KD_DONE (|KD_MERGE, |KD_ALONE)
 *          v                                                    |  the thief's last access
 *     run by the owner                                   the owner passes the range
 *
 * Only the first closure of a stolen range changes state; the end of the range is in the readiness
 * records (record.h). KD_ALONE: the range was this closure, so the owner does without the record, a
 * line of the thief's (0.13 us a task where workers take turns and share no cache). The owner knows
 * which closures it has run itself by its position alone (kdds_frame.head).
 * KD_SPECIAL: it reduces into private copies; a thief sets it in every reducing closure it takes.
 * KD_PRIVATE: it reduces, and its access records refer to private copies that are not merged yet.
 * KD_PLACED: it is to run on a given rank (place.h); thieves of this process leave it alone.
 * KD_OVER: it is not to run, at all or again. KD_FAILED: it or a descendant has failed. The bits
 * from KD_FAILED_SHIFT on say which of its accesses have (fail.h).
 */
#ifndef KD_CLOSURE_H
#define KD_CLOSURE_H

#include "base/atomic.h"
#include "base/base.h"

#define KD_STOLEN 1u
#define KD_DONE 2u
#define KD_ALONE KD_STOLEN /* with KD_DONE; no other bit is left */
/* KD_SPECIAL 4u is in kdds/inline.h */
#define KD_PRIVATE 8u
#define KD_MERGE 16u
#define KD_FAILED 64u
#define KD_FAILED_SHIFT 16
/* KD_OVER 32u, KD_UNMARKED 128u and KD_PLACED 256u are in kdds/inline.h, too */

static inline struct kdds_closure *kd_closure_at(const char *p)
{
	return (struct kdds_closure *)(uintptr_t)p;
}

static inline struct kdds_access *kd_closure_access(struct kdds_closure *c, uint32_t i)
{
	return (struct kdds_access *)((char *)c + c->type->access[i].offset);
}

#endif
