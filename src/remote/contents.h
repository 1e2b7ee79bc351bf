/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thief's side of a package (package.h): closures that look as if they had been committed here, each data being a local copy,
 * small ones in an arena, the others among the copies of gdata.h; and the results that go back.
 *
 * Nothing in a package is followed blindly: kd_contents_open looks at every number in it first.
 */
#ifndef KD_CONTENTS_H
#define KD_CONTENTS_H

#include "remote/gdata.h"
#include "remote/package.h"

/* One data. */
struct kd_content {
	struct kd_value value; /* the local copy */
	uint32_t flags;        /* KD_WIRE_ */
	uint64_t bytes;        /* of the input as it travels */
	uint64_t at, key;      /* of the input, in the victim's memory */
	char *arriving;        /* where an input that has to be unpacked is read to */
	struct kd_copy *copy;  /* the cache's; NULL: value.data is in the arena or in own */
	struct kd_version version, written;
	void *own;             /* what was allocated */
	int fetch;             /* the input is to be read */
	int used;              /* by an access of its size */
};

struct kd_contents {
	char *closures;
	size_t closure_bytes;
	uint32_t count, independent;
	struct kd_content *data;
	uint32_t ndata;
	char *arena;
};

/* Unpacks size bytes from a rank. Inputs that came along or are in the cache are in place, others are marked fetch.
 * 0, -EBADMSG: not a package; -ENOMEM. */
int kd_contents_open(struct kd_contents *x, uint32_t from, const void *bytes, size_t size);
/* The input of x->data[i], read to where kd_contents_room said, is there. */
char *kd_contents_room(struct kd_contents *x, uint32_t i);
void kd_contents_arrived(struct kd_contents *x, uint32_t i);
/* The closures have been run: copies that they have only read are given up, to the cache. */
void kd_contents_release(struct kd_contents *x);
void kd_contents_free(struct kd_contents *x);

/* The results, values that are not inline exposed. */
struct kd_results {
	char *bytes;
	size_t size;
	uint32_t count;
	struct kd_exposed *regions;
	uint32_t nregions;
	uint64_t large, fresh; /* bytes of values that are exposed; of these, not written over what earlier results left here */
};

void kd_results_make(struct kd_results *r, struct kd_contents *x);
void kd_results_free(struct kd_results *r);

#endif
