/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of the PMI-1 wire protocol, separate from the connection so that tests can feed it any
 * input. */
#ifndef KD_BOOT_PMI_H
#define KD_BOOT_PMI_H

#include "base/base.h"

/* Finds the field with that name in a line such as "cmd=get_result rc=0 value=6162" and copies its
 * value, with a NUL, to value, which has room for size bytes. 0; -ENOENT: no such field; -EMSGSIZE:
 * the value is longer. */
int kd_pmi_field(const char *line, const char *name, char *value, size_t size);
/* The same for a decimal number with an optional sign. Also -EINVAL: the value is not a number, or
 * does not fit. */
int kd_pmi_number(const char *line, const char *name, int *value_p);

/* Writes two hexadecimal digits per byte and a NUL: text has room for 2 * size + 1 bytes. */
void kd_pmi_encode(const void *value, size_t size, char *text);
/* Decodes at most *size_p bytes and sets *size_p. 0; -EINVAL: text is not of that form; -EMSGSIZE:
 * it is longer. */
int kd_pmi_decode(const char *text, void *value, size_t *size_p);

#endif
