/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The graph of a small run, for graphviz: closures, in each frame the data that order them, and whose children they are. Under one
 * lock, and only the first 10,000 closures: it is for looking at.
 */
#ifndef KD_DOT_H
#define KD_DOT_H

#include "observe/span.h"

int kd_dot_start(uint32_t rank, uint32_t size);
/* 0 or -errno after a line: there is no file then. */
int kd_dot_stop(void);
void kd_dot_drop(void);

/* The body of c, a closure of f, begins. Returns its number. */
uint64_t kd_dot_begin(int worker, struct kd_stack *s, struct kdds_frame *f, char *c);
void kd_dot_end(uint64_t node, uint64_t ticks);
/* Closure c has been run by another rank. */
void kd_dot_export(const struct kd_range *range, const char *c);
/* c is passed: after whom did it come? */
void kd_dot_pass(struct kd_stack *s, struct kdds_frame *f, char *c);

#endif
