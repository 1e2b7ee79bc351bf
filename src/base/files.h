/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An output file that the user has requested. It is checked at the start, so that a bad name is
 * known before the work is done. It is created at the end, so that a process that is killed leaves
 * none. It is either complete or removed. In a job of several ranks each rank has its own,
 * NAME.RANK.
 *
 * The name may be a link that belongs to the user or to root, such as /dev/stdout. Another user's
 * link could lead to any file of this user, so it is refused. So is another user's file in a
 * world-writable directory.
 */
#ifndef KD_FILES_H
#define KD_FILES_H

#include <stdio.h>

#include "base/base.h"

struct kd_file {
	FILE *stream; /* NULL: not begun */
	char *name;   /* NULL: no file is wanted */
	/* The file, with links followed: its name in the directory, so that the program may change
	 * its current directory. */
	char *base;
	int directory;
	const char *variable; /* the environment variable that requested it */
};

/* Checks whether the file can be written. 0, or -errno after a line. */
int kd_file_open(struct kd_file *f, const char *variable, const char *name, uint32_t rank,
		 uint32_t size);
/* Opens the stream. 0, or -errno after a line; then there is no file. */
int kd_file_begin(struct kd_file *f);
/* Closes the file. 0, or -errno after a line: not everything could be written. */
int kd_file_close(struct kd_file *f);
/* The file is not wanted after all: closes and removes it if it has been begun. */
void kd_file_drop(struct kd_file *f);

/* Writes the text as it appears between double quotes in JSON or dot. */
void kd_file_quote(FILE *out, const char *text);

#endif
