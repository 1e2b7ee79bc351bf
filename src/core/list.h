/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks with parameters that are lists of references (READ_LIST). A closure of one has an access
 * for each item, so its type is derived from the one that the program declares: it has a row for
 * each item, in the place of the row of the list. Derived types last as long as the process; there
 * is one for each combination of numbers of items.
 */
#ifndef KD_LIST_H
#define KD_LIST_H

#include "base/base.h"

struct kdds_closure;
struct kdds_type;

/* The declared type of a derived one. */
const struct kdds_type *kd_list_base(const struct kdds_type *derived);
/* Whether access i of a derived type is an item of a list. */
int kd_list_has(const struct kdds_type *derived, uint32_t i);
/* The type of c, a closure of the declared type that another process has sent. NULL: its bytes are no
 * such closure. */
const struct kdds_type *kd_list_type_of(const struct kdds_type *base, const struct kdds_closure *c);

#endif
