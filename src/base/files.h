/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that the user has asked for: tried at the start, so that a bad name is known before the work is done; made at the end, so
 * that a process that is killed leaves none; complete, or removed. In a job of several ranks each has its own, NAME.RANK.
 *
 * The name may be a link of the user's or of root's, as /dev/stdout is. Another user's could lead to any file of this one's: it is
 * refused, and so is, where everybody may make files, a file of another user's.
 */
#ifndef KD_FILES_H
#define KD_FILES_H

#include <stdio.h>

#include "base/base.h"

struct kd_file {
	FILE *stream; /* NULL: not begun */
	char *name;   /* NULL: no file is wanted */
	char *base;   /* where it is, links followed: a name in the directory, whatever the program's current one is by now */
	int directory;
	const char *variable; /* that asked for it */
};

/* Finds out whether it can be written. 0 or -errno after a line. */
int kd_file_open(struct kd_file *f, const char *variable, const char *name, uint32_t rank, uint32_t size);
/* From here on there is a stream. 0, or -errno after a line, and no file. */
int kd_file_begin(struct kd_file *f);
/* 0, or -errno after a line: not everything could be written. */
int kd_file_close(struct kd_file *f);
/* Not wanted after all. */
void kd_file_drop(struct kd_file *f);

/* The text between double quotes in JSON or dot. */
void kd_file_quote(FILE *out, const char *text);

#endif
