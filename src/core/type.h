/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of task types that all processes of a job understand. A KDDS_TASK is named by its place in
 * its module (module.h). A type made by kdds_type_create before kdds_init, in the part of the
 * program that all processes execute alike, is named by its number and a fingerprint.
 */
#ifndef KD_TYPE_H
#define KD_TYPE_H

#include "base/base.h"

struct kdds_type;

/* 0: the type has no name. */
uint64_t kd_type_name(const struct kdds_type *type);
/* NULL: no type in this process has the name. */
const struct kdds_type *kd_type_at(uint64_t name);

/* kdds_init (1): types made from then on get no name. kdds_finalize (0). */
void kd_type_fix_names(int fixed);

/* Ends the program if this worker has allocated a closure and not committed it: without this check
 * it would be dropped silently. */
void kd_type_expect_complete(void);

#endif
