/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the checker asks of data items (value.h) and of plain memory. The poison of a word depends
 * on its address, so memory that holds it has not been written since: a program does not produce it
 * by chance, nor by a copy. Each word is a NaN as a float and, with the next one, as a double, and
 * negative as an integer.
 */
#ifndef KD_CHECKER_VALUE_H
#define KD_CHECKER_VALUE_H

#include "core/value.h"

#define KD_POISON_LEAST 4 /* bytes of memory that can be recognised as poisoned */

void kd_poison(void *at, size_t n);
void kd_poison_value(const struct kd_value *v);
/* Whether no byte has been written since it was poisoned. Not if there are fewer than
 * KD_POISON_LEAST. */
int kd_poisoned_value(const struct kd_value *v);
/* Whether an element is a number of 8 bytes close to what poison makes of it, but another. */
int kd_value_from_poison(const struct kd_value *v);

/* A hash of its bytes; if it has more than `most', of parts of it. */
uint64_t kd_value_hash(const struct kd_value *v, size_t most);
/* Its bytes, from the first to the last, and whether they lie between from and to. */
uint64_t kd_value_extent(const struct kd_value *v);
static inline int kd_value_within(const struct kd_value *v, const char *from, const char *to)
{
	return (char *)v->data >= from && (char *)v->data + kd_value_extent(v) <= to;
}

/* Whether they have a byte in common; unlike kd_value_overlaps exact for any two shapes. */
int kd_value_meets(const struct kd_value *a, const struct kd_value *b);

#endif
