/* SPDX-License-Identifier: BSD-3-Clause */
/* One line on stderr, "kdds: ...", and assertions. */
#ifndef KD_LOG_H
#define KD_LOG_H

#include "base/base.h"

void kd_error(const char *format, ...) kd_printf(1, 2) kd_cold;
/* For what the program did wrong or the system cannot give when there is no caller to tell: says so, ends with status 1. */
kd_noreturn void kd_die(const char *format, ...) kd_printf(1, 2) kd_cold;

/* p, or the end when it is NULL: no memory for what is under way between ranks. */
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
