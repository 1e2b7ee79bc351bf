/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A range of closures on its way to another process: the victim makes a package of it, with the inputs or where to read them;
 * the thief unpacks it into closures that look as if they had been committed there, each data being a local copy; and the
 * results go back in a second one. wire.h has the formats.
 *
 * A data is recognised by its address and shape, so closures of a range that share one share the copy too. Contributions to
 * reductions are kept apart, one copy per access, for the victim to merge in reference order.
 */
#ifndef KD_PACKAGE_H
#define KD_PACKAGE_H

#include "comm.h"
#include "gdata.h"
#include "stack.h"
#include "value.h"
#include "wire.h"

#define KD_PACKAGE_CLOSURES 4096 /* at most */
#define KD_PACKAGE_BYTES ((uint64_t)1 << 30) /* more than a package of so many closures and their small inputs can have */

/* Bytes that the data of one package may have, or its results; 0, as it is but in tests: what the machine has. */
extern uint64_t kd_package_memory;

/* Where a result is to go: the value, or for a reduction the closure's private copy. */
struct kd_target {
	struct kd_value value;
	struct kdds_closure *closure; /* NULL: not a reduction */
	uint32_t access;
	char *bytes; /* the result while it travels, if that is not the value's place */
	uint64_t size; /* of bytes */
};

/* The victim's side of a package: what it holds until the thief is done. */
struct kd_parcel {
	char *bytes; /* the package */
	size_t size;
	struct kd_comm_region *regions;
	uint32_t nregions;
	char **staged; /* values gathered for reading */
	uint32_t nstaged;
	struct kd_target *targets; /* in the order of the results */
	uint32_t ntargets;
};

/* Whether the closure may leave the process. */
int kd_package_allows(const struct kdds_closure *c);

/* Makes a package of the range. rests (NULL: none does) tells whether a data is what the thief's own results left with
 * it. Dies without memory. */
void kd_parcel_make(struct kd_parcel *p, const struct kd_range *range, int (*rests)(const void *data));
/* Lets the package itself be read. */
void kd_parcel_expose(struct kd_parcel *p, struct kd_wire_memory *memory_p);
/* The thief has run the closures: it reads no input any more. What is left are the targets. */
void kd_parcel_hide(struct kd_parcel *p);
void kd_parcel_free(struct kd_parcel *p);

/* The thief's side: one data. */
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
	struct kd_comm_region *regions;
	uint32_t nregions;
};

void kd_results_make(struct kd_results *r, struct kd_contents *x);
void kd_results_free(struct kd_results *r);

/* The victim's side again. Gives each target its result: `inline` ones are applied, *get is called for the others, with the
 * place to read to. 0, or -EBADMSG. */
int kd_results_apply(struct kd_parcel *p, const void *bytes, size_t size, uint32_t count,
		     void (*get)(void *arg, void *to, const struct kd_wire_memory *from), void *arg);
/* The longest that the results can be; of those that users pack it is not known. */
uint64_t kd_results_most(const struct kd_parcel *p);
/* All that was to be read is there. */
void kd_results_finish(struct kd_parcel *p);

#endif
