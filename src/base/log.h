/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the user, each one line "kdds: ..." on stderr; and assertions. */
#ifndef KD_LOG_H
#define KD_LOG_H

#include "base/base.h"

void kd_error(const char *format, ...) kd_printf(1, 2) kd_cold;
/* Prints the line and ends the process with status 1. For errors of the program, and resources that
 * the system does not have, where no caller could handle an error code. */
kd_noreturn void kd_die(const char *format, ...) kd_printf(1, 2) kd_cold;

/* From now on kd_die calls the handler with its line before it ends the process. NULL: nothing. */
void kd_on_death(void (*handler)(const char *line, void *arg), void *arg);

/* Returns p. If it is NULL, dies: there is no memory for communication between ranks. */
void *kd_must(void *p);

const char *kd_errno_text(int error);

kd_noreturn void kd_assert_failed(const char *condition, const char *file, int line) kd_cold;

/* Internal invariants, checked with --enable-debug. */
#ifdef KDDS_DEBUG
#define kd_assert(c) (kd_likely(c) ? (void)0 : kd_assert_failed(#c, __FILE__, __LINE__))
#else
#define kd_assert(c) ((void)sizeof(c))
#endif

#endif
