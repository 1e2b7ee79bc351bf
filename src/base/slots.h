/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that is replaced by newer ones, of which the last two are kept. It is either the old one
 * or the new one, whatever ends the process or the machine:
 *
 *   NAME.kdds1, NAME.kdds2   the two, in any order: their contents say which is newer
 *   NAME.kdds.tmp            the next one, while it is written; locked by its writer
 *
 * The next one is written, synchronised, and renamed to the older one's name. A chain of renames
 * (NAME to NAME.old) would need two steps, between which a process can be killed.
 */
#ifndef KD_SLOTS_H
#define KD_SLOTS_H

#include "base/base.h"

#define KD_SLOTS 2

struct kd_slots {
	int directory;
	char *base; /* NAME without its directory */
	char *path[KD_SLOTS + 1]; /* for messages; the last one is the temporary file's */
};

/* 0 or -errno; the directory must exist. */
int kd_slots_open(struct kd_slots *s, const char *name);
void kd_slots_close(struct kd_slots *s);

/* Opens a slot for reading. A descriptor or -errno; -EINVAL: it is no regular file. */
int kd_slots_read(const struct kd_slots *s, int slot);

/* Opens the temporary file, empty and locked. A descriptor, or -errno: -EBUSY if another process
 * still writes it after some seconds, -EACCES if it is another user's. */
int kd_slots_write(const struct kd_slots *s);
/* Makes the temporary file, synchronised, the slot's, and closes it. If it cannot, there is no
 * temporary file any more, and the slots are as they were. 0 or -errno. */
int kd_slots_commit(const struct kd_slots *s, int fd, int slot);
/* Removes the temporary file and closes it. */
void kd_slots_drop(const struct kd_slots *s, int fd);

/* Removes a temporary file that a killed process has left. */
void kd_slots_clean(const struct kd_slots *s);
/* Removes all files. 0 or -errno; those that are missing are no error. */
int kd_slots_remove(const struct kd_slots *s);

#endif
