/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copy cache: copies of other processes' data. A copy is identified by the data item and its
 * owner, and records which version it holds. It is kept while there is memory for it
 * (KDDS_CACHE), so that data that has not been written since is not fetched again. Of a copy that
 * cannot be found by its version the bytes may still be the right ones, and so may those of other
 * copies that have parts of the same memory. read.h finds that out.
 *
 * Versions need no bookkeeping: they are the links of the access records. Within one epoch of a
 * frame all readers whose link names the same last writer read the same value, namely the one
 * that this writer leaves. (A closure that has a data item in several parameters has several
 * links; outgoing.c finds the writer. Where links do not order the closures of a frame, each reader
 * reads a version of its own.)
 */
#ifndef KD_COPIES_H
#define KD_COPIES_H

#include "base/base.h"
#include "base/extents.h"
#include "remote/spare.h"

struct kd_data_name {
	uint64_t addr;
	uint64_t rows, cols, ld;
	uint32_t size;
	uint32_t rank; /* a member: base/member.h */
};

/* The epoch of a frame (record.h), and the closure in it that wrote the value; writer 0: none, the
 * value is the one from before the frame's closures. An even writer names a closure that read a
 * value of which no more is known. gen KD_COPY_FROZEN: the data are frozen, and head is their
 * number (core/frozen.h). */
#define KD_COPY_FROZEN UINT64_MAX
struct kd_version {
	uint64_t gen, head;
	uint32_t link_base, writer;
};

/* The memory of which some bytes are a copy: there, and under this key. */
struct kd_origin {
	uint64_t addr, key;
	uint32_t rank; /* a member */
};

/* Somebody who waits for the bytes of a copy. */
struct kd_copy_wait {
	void (*arrived)(struct kd_copy_wait *w);
	struct kd_copy_wait *next;
};

struct kd_copy {
	struct kd_copies *of;
	struct kd_data_name name;
	struct kd_version version;
	void *bytes; /* aligned as the original, to at least 64 and at most KD_ALIGN_MAX */
	uint64_t size;
	uint32_t users; /* 0: may be evicted */
	int cached;     /* in the table */
	int arriving;   /* one of its users reads the bytes; the others wait */
	struct kd_copy_wait *waits;
	int outdated;   /* created with the bytes of an older version */
	/* Of a copy without gaps: the memory of which it is a copy, perhaps by way of other
	 * ranks. The key is that of the last steal message that had it. */
	struct kd_origin origin;
	int read;       /* the bytes have been read from there, and not been written since */
	int found;      /* in extents, with that memory, and with its own if `read' is set */
	struct kd_extent extent, here;
	uint32_t holds;    /* it has so many results that are held */
	int parked;        /* in extents, for kd_copy_around, with the original memory */
	struct kd_extent park;
	/* comparisons in a row that found another version, and reads until the next */
	uint32_t vain, pause;
	struct kd_copy *chain;          /* in the table */
	struct kd_copy *newer, *older;  /* unused copies, by time of last use */
};

/* A result that this rank retains, in a copy: there, from the first byte to the last one. */
struct kd_copy_held {
	struct kd_extent extent; /* first */
	struct kd_copy *copy;
	uint64_t bytes; /* without the gaps between rows */
};

struct kd_copy_counts {
	uint64_t hits, hit_bytes, misses, miss_bytes, evicted;
};

#define KD_COPY_BUCKETS 4096

/* A rank's cache; all zeroes: empty. */
struct kd_copies {
	struct kd_copy *table[KD_COPY_BUCKETS];
	struct kd_copy *newest, *oldest; /* unused */
	struct kd_extents extents;       /* two spaces for each rank, two for the copies' bytes */
	uint64_t unused_bytes;
	struct kd_spare spare;           /* for unused copies */
	struct kd_copy_counts counts;
};

/* The copy of that version, which is in use from then on; NULL: there is none. If it is arriving,
 * its bytes are not there yet. */
struct kd_copy *kd_copy_find(struct kd_copies *copies, const struct kd_data_name *name,
			     const struct kd_version *version);
/* Whose memory some bytes of this rank are a copy of that has been read and not been written; 0: they
 * are not in such a copy. */
int kd_copies_origin(const struct kd_copies *copies, const void *p, uint64_t bytes,
		     struct kd_origin *origin_p);
/* A new copy in use that holds no version, but perhaps the bytes of an older one; NULL: no memory. */
struct kd_copy *kd_copy_create(struct kd_copies *copies, const struct kd_data_name *name,
			       uint64_t size);
/* The copy holds that version from now on. kd_copy_find finds it. Unused older copies of the same
 * data are dropped, and those of parts of it from other epochs. */
void kd_copy_keep(struct kd_copy *c, const struct kd_version *version);
/* Says whose memory it is a copy of; otherwise it counts as one of the data that it is named after. */
void kd_copy_comes_from(struct kd_copy *c, struct kd_origin origin);
/* Whether a copy that is about to be read is to be compared first with what is known. Data that have
 * changed each time are compared less and less often. */
int kd_copy_compare(struct kd_copy *c);
/* Puts what is known of `most' bytes from `at' on into the copy, of whatever version: its own older
 * bytes, or those of copies that overlap it. Returns how many are known, *had_p being 1, or not
 * known, *had_p being 0. */
uint64_t kd_copy_recall(struct kd_copy *c, uint64_t at, uint64_t most, int *had_p);
/* What has come out: whether it was the right version. */
void kd_copy_compared(struct kd_copy *c, int same);
/* The caller begins to read that version into the copy: kd_copy_find finds it from now on, so that
 * it is read once. */
void kd_copy_expect(struct kd_copy *c, const struct kd_version *version);
/* A user of a copy that is arriving waits for its bytes. */
void kd_copy_await(struct kd_copy *c, struct kd_copy_wait *w);
/* They are there: calls those who wait. */
void kd_copy_arrived(struct kd_copy *c);
/* Makes the copy writable: it no longer holds a version. Returns c, or if it has other users
 * another copy with the same bytes; NULL: no memory. */
struct kd_copy *kd_copy_write(struct kd_copy *c);
/* Likewise, when the other users no longer need its bytes: always returns c. */
struct kd_copy *kd_copy_claim(struct kd_copy *c);
/* The copy has a result that its rank retains, until it is let go. */
void kd_copy_hold(struct kd_copy *c, struct kd_copy_held *h, void *at, uint64_t extent,
		  uint64_t bytes);
void kd_copy_let_go(struct kd_copy_held *h);
/* The one at that address, whose copy is in use from then on; NULL: there is none. */
const struct kd_copy_held *kd_copy_held(struct kd_copies *copies, uint64_t addr, uint64_t bytes);
/* A copy into which what closures write to the same memory goes, too, so that inputs that are put
 * together find it in place; data whose rows have gaps are found by their name only. It has no
 * version. One of that name that has been parked, or a new one, in use from then on, and its bytes,
 * aligned as the original modulo KD_ALIGN_MAX; NULL: no memory. */
struct kd_copy *kd_copy_park(struct kd_copies *copies, const struct kd_data_name *name,
			     uint64_t size, void **at_p);
/* Such a copy that has all of the memory that the name means, in use from then on, and where: rows
 * are as far apart as in the original. NULL: there is none that nobody else uses, or another result
 * lies between these rows. */
struct kd_copy *kd_copy_around(struct kd_copies *copies, const struct kd_data_name *name,
			       void **at_p);
void kd_copy_release(struct kd_copy *c);
/* Frees unused copies, the oldest first, while there is no memory for them. Where they are more
 * than KDDS_CACHE bytes because there was memory to spare, not many more than `most' bytes until
 * the host has been looked at again, 0.1 s later, or more copies come. */
void kd_copies_trim(struct kd_copies *copies, uint64_t most);
/* Frees all unused copies. */
void kd_copies_stop(struct kd_copies *copies);

#endif
