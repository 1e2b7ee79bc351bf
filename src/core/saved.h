/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of data items as a file:
 *
 *   0        struct kd_saved_head: sizes, and a hash of all that comes before the values
 *            a struct kd_saved_item for each item: its type and shape
 *            a hash for each block of KD_SAVED_BLOCK bytes of the values
 *   data_at  the values, one after another, without gaps
 *
 * The values are a stream of bytes. A few threads take the blocks in turn: they hash a block and
 * write it, from the memory of the program if its bytes lie together, or else from a buffer. The
 * disk works meanwhile. What comes before the values is written last.
 */
#ifndef KD_SAVED_H
#define KD_SAVED_H

#include "core/value.h"
#include "kdds/saved.h"

#define KD_SAVED_BLOCK ((uint64_t)1 << 20)

struct kd_saved_item {
	uint64_t type; /* enum kd_saved_type */
	uint64_t size, rows, cols;
	uint64_t bytes;  /* of its value */
	uint64_t packed; /* by functions of the program; the value has no fixed size */
};

struct kd_saved_head {
	char magic[8];
	uint32_t version, block_bytes;
	uint64_t sequence; /* the number of the checkpoint */
	uint64_t items, bytes;
	uint64_t data_at;
	uint64_t hash; /* of the file before data_at, with 0 here */
};

/* A data item of the program. */
struct kd_saved_value {
	struct kd_value v;
	enum kd_saved_type type;
	const char *name; /* for messages */
};

/* A file that has been opened for reading. */
struct kd_saved {
	int fd;
	struct kd_saved_head head;
	struct kd_saved_item *item;
	uint64_t *hash; /* of the blocks */
	void *meta;
};

/* Writes the values. 0 or -errno. */
int kd_saved_write(int fd, uint64_t sequence, const struct kd_saved_value *values, size_t n);

/* Reads all but the values. 0; or -errno and, in *why_p, what is wrong with the file. */
int kd_saved_open(struct kd_saved *s, int fd, const char **why_p);
/* Frees what kd_saved_open has allocated and closes fd. */
void kd_saved_close(struct kd_saved *s);
/* Whether the values in the file are those that were written. 0; -EBADMSG: no; or -errno. */
int kd_saved_check(const struct kd_saved *s);
/* Whether the file has the values of these data items: the number of the first one that differs, or
 * that one of the two lacks; -1 if none does. */
long kd_saved_differs(const struct kd_saved *s, const struct kd_saved_value *values, size_t n);
/* Replaces the values by those in the file. If it returns an error, they are undefined. */
int kd_saved_read(const struct kd_saved *s, const struct kd_saved_value *values, size_t n);

#endif
