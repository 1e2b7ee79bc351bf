/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of task types that all processes of a job understand: of a KDDS_TASK the place in its image (image.h); of a type made by
 * kdds_type_create before kdds_init, by the part of the program that all processes run alike, its number and a fingerprint.
 */
#ifndef KD_TYPE_H
#define KD_TYPE_H

#include "base/base.h"

struct kdds_type;

/* 0: it has none. */
uint64_t kd_type_name(const struct kdds_type *type);
/* NULL: no type here has it. */
const struct kdds_type *kd_type_at(uint64_t name);

/* Ends the program if this thread has a closure that was allocated and not committed: it would be dropped in silence. */
void kd_type_expect_complete(void);

#endif
