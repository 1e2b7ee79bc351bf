/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The graph of a small run, for graphviz: closures, the data that order those of a frame, and the
 * edges from parents to children. One lock protects it, and it has the first 10,000 closures
 * only: it is meant for viewing.
 */
#ifndef KD_DOT_H
#define KD_DOT_H

#include "observe/span.h"

int kd_dot_start(uint32_t rank, uint32_t size);
/* Writes the file. 0, or -errno after an error line: then there is no file. */
int kd_dot_stop(void);
void kd_dot_drop(void);

/* The body of c, a closure of f, begins. Returns its number. */
uint64_t kd_dot_begin(int worker, struct kd_stack *s, struct kdds_frame *f, char *c);
void kd_dot_end(uint64_t node, uint64_t ticks);
/* Closure c has been run by another rank. */
void kd_dot_export(const struct kd_range *range, const char *c);
/* c is passed: adds the edges from the closures that it had to wait for. */
void kd_dot_pass(struct kd_stack *s, struct kdds_frame *f, char *c);

#endif
