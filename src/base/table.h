/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that messages refer to by number. */
#ifndef KD_TABLE_H
#define KD_TABLE_H

#include <stdint.h>

struct kd_table {
	void **at;
	uint32_t size, *free, nfree;
};

/* Adds p, not NULL, and returns its number. Dies without memory. */
uint32_t kd_table_add(struct kd_table *t, void *p);
/* NULL: the number is not in use. */
void *kd_table_get(const struct kd_table *t, uint32_t i);
void kd_table_remove(struct kd_table *t, uint32_t i);
/* Frees the table, not what is in it. */
void kd_table_free(struct kd_table *t);

#endif
