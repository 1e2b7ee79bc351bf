/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of the PMI-1 wire protocol, apart from the process that speaks it so that tests can feed it anything. */
#ifndef KD_BOOT_PMI_H
#define KD_BOOT_PMI_H

#include "base/base.h"

/* Milliseconds that the launcher has to answer, and that the other ranks have to reach a fence. Tests shorten them. */
extern int kd_pmi_answer_ms, kd_pmi_fence_ms;

/* Looks in a line "cmd=get_result rc=0 value=6162" for the field of that name and copies its value, with a NUL, to value,
 * which has room for size bytes. 0; -ENOENT: no such field; -EMSGSIZE: the value is longer. */
int kd_pmi_field(const char *line, const char *name, char *value, size_t size);
/* The same for a decimal number with an optional sign. Also -EINVAL: it is none, or does not fit. */
int kd_pmi_number(const char *line, const char *name, int *value_p);

/* Two hexadecimal digits a byte and a NUL: text has room for 2 * size + 1. */
void kd_pmi_encode(const void *value, size_t size, char *text);
/* At most *size_p bytes, and sets *size_p. 0; -EINVAL: text is not of that form; -EMSGSIZE. */
int kd_pmi_decode(const char *text, void *value, size_t *size_p);

#endif
