/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of other processes' data. A copy is named by whose data it is of, and says which version it holds; as long as the
 * memory lasts it is kept, so that what has been fetched and not been written since is not fetched again.
 *
 * Versions cost nothing to keep track of: they are the links of the access records. Within one life of a frame all readers whose
 * link names the same last writer read the same value; the value that writer leaves is what those see that link to it. (A closure
 * that has a data by several parameters has several links; package.c finds the writer.)
 */
#ifndef KD_GDATA_H
#define KD_GDATA_H

#include "base/base.h"

struct kd_data_name {
	uint64_t addr;
	uint64_t rows, cols, ld;
	uint32_t size;
	uint32_t rank;
};

/* The life of a frame (see index.h) and in it a closure, the last that wrote; 0: none, as it was before the frame's closures. */
struct kd_version {
	uint64_t gen, head;
	uint32_t bias, writer;
};

struct kd_copy {
	struct kd_data_name name;
	struct kd_version version;
	void *bytes; /* aligned as the original, but to 64 at least and KD_ALIGN_MAX at most */
	uint64_t size;
	uint32_t users; /* 0: may be thrown out */
	int cached;     /* in the table */
	struct kd_copy *chain;          /* in the table */
	struct kd_copy *newer, *older;  /* unused ones, by when they were last used */
};

struct kd_gdata_counts {
	uint64_t hits, hit_bytes, misses, miss_bytes, evicted;
};

extern struct kd_gdata_counts kd_gdata_counts;

/* The copy of that version, in use from now on; NULL: there is none. */
struct kd_copy *kd_copy_find(const struct kd_data_name *name, const struct kd_version *version);
/* A fresh one, in use, of no version; NULL: no memory. */
struct kd_copy *kd_copy_create(const struct kd_data_name *name, uint64_t size);
/* The copy holds that version now: keeps it, in place of older ones of the same data, for kd_copy_find. */
void kd_copy_keep(struct kd_copy *c, const struct kd_version *version);
/* Makes sure that the copy may be written: it is no version any more. Returns it, or another one with the same bytes if there
 * are other users; NULL: no memory. */
struct kd_copy *kd_copy_write(struct kd_copy *c);
/* The same, when the other users have no use for its bytes any more. */
struct kd_copy *kd_copy_claim(struct kd_copy *c);
void kd_copy_release(struct kd_copy *c);
/* Frees all. */
void kd_gdata_stop(void);

#endif
