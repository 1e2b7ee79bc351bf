/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library of PMIx, loaded when a PMIx launcher has started this process, so that
 * programs run without it. It is one per process and never unloaded. To be included only with
 * KDDS_HAVE_PMIX: configure has found <pmix.h>.
 */
#ifndef KD_PMIX_LIBRARY_H
#define KD_PMIX_LIBRARY_H

#include <pmix.h>

/* The functions used. */
#define KD_PMIX_FUNCTIONS(f)                                                                       \
	f(Init) f(Finalize) f(Put) f(Commit) f(Fence_nb) f(Get) f(Register_event_handler)          \
		f(Error_string)

/* Each as kd_pmix.NAME with its type from the header, valid after kd_pmix_load. */
struct kd_pmix {
#define KD_PMIX_MEMBER(name) __typeof__(PMIx_##name) *name;
	KD_PMIX_FUNCTIONS(KD_PMIX_MEMBER)
#undef KD_PMIX_MEMBER
};

extern struct kd_pmix kd_pmix;

/* By one thread at a time. 0, or -errno after a line on stderr. */
int kd_pmix_load(void);

#endif
