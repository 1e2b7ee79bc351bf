/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to data between the spawn of a closure and the time when it may run. A program calls
 * the library before it fills a closure, not after: so memory that the closure is likely to be
 * given is copied at that time (the C stack of the body, its parameters, its KDDS_DATA, small
 * global objects), and compared when the library is called next. From then on a hash is compared.
 */
#ifndef KD_CHECKER_PUSH_H
#define KD_CHECKER_PUSH_H

#include "core/worker.h"
#include "observe/checker_task.h"

/* Finds the global objects of the program. */
void kd_checker_push_start(void);

/* t is about to fill a closure of `bytes' bytes at the end of its frame. */
void kd_checker_push(struct kd_worker *w, struct kd_checked_task *t, size_t bytes);
/* The closures of t's frame are about to run. The C stack below `low' is not in use. */
void kd_checker_push_end(struct kd_worker *w, struct kd_checked_task *t, const char *low);

/* Some of them have run, and have changed data that others wait for. */
void kd_checker_push_again(struct kd_checked_task *t);

#endif
