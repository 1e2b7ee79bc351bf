/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that the user has asked for: opened at the start, so that a bad name is known before the work is done; complete at the
 * end, or removed. In a job of several ranks each has its own, NAME.RANK. */
#ifndef KD_FILES_H
#define KD_FILES_H

#include <stdio.h>

#include "base.h"

struct kd_file {
	FILE *stream; /* NULL: none */
	char *name;
	const char *variable; /* that asked for it */
};

/* 0 or -errno after a line. */
int kd_file_open(struct kd_file *f, const char *variable, const char *name, uint32_t rank, uint32_t size);
/* 0, or -errno after a line: not everything could be written. */
int kd_file_close(struct kd_file *f);
/* Not wanted after all. */
void kd_file_drop(struct kd_file *f);

/* The text between double quotes in JSON or dot. */
void kd_file_quote(FILE *out, const char *text);

#endif
