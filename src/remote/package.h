/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A range of closures on its way to another process: the victim makes a package of it, with the inputs or where to read them;
 * the thief unpacks it (contents.h); and the results go back in a second one. wire.h has the formats.
 *
 * A data is recognised by its address and shape, so closures of a range that share one share the copy too. Contributions to
 * reductions are kept apart, one copy per access, for the victim to merge in reference order.
 */
#ifndef KD_PACKAGE_H
#define KD_PACKAGE_H

#include "core/stack.h"
#include "core/steal.h"
#include "core/value.h"
#include "remote/exposed.h"
#include "remote/wire.h"

#define KD_PACKAGE_CLOSURES 4096 /* at most */
#define KD_PACKAGE_BYTES ((uint64_t)1 << 30) /* more than a package of so many closures and their small inputs can have */
/* A value up to this size rides in the message; a longer one is read by who needs it, straight from where it lies if it is
 * contiguous. */
#define KD_PACKAGE_INLINE 2048

/* Bytes that the data of one package may have, those on their way and the room for them, or its
 * results: what the machine has. */
uint64_t kd_package_room(void);
/* In tests, instead of that; 0: as it is. */
extern uint64_t kd_package_memory;

/* Where a result is to go: the value, or for a reduction the closure's private copy. */
struct kd_target {
	struct kd_value value;
	struct kdds_closure *closure; /* NULL: not a reduction */
	uint32_t access;
	char *bytes; /* the result while it travels, if the value's place has gaps */
};

/* A value gathered for reading. */
struct kd_staged {
	struct kd_value value;
	char *bytes;
};

/* What the victim holds of a package until the thief is done. */
struct kd_parcel {
	char *bytes; /* the package */
	size_t size;
	uint32_t closures;
	struct kd_exposed *regions;
	uint32_t nregions;
	struct kd_staged *staged;
	uint32_t nstaged;
	struct kd_target *targets; /* in the order of the results */
	uint32_t ntargets;
};

/* Whether the closure may leave the process. */
int kd_package_allows(const struct kdds_closure *c);

#define KD_LOAD_VALUES 16

/* What a package of some closures, one behind the other, weighs: its data, each once. */
struct kd_load {
	const char *end; /* of the closures; NULL: none yet */
	uint64_t bytes;
	/* Large ones that have been counted. If there are more, some are counted twice. */
	struct kd_value values[KD_LOAD_VALUES];
	uint32_t n;
};

/* Adds the closure, or begins anew with it if it does not lie behind the others. 0, and nothing is
 * added: that would be more than room; it says so if the closure alone is. */
int kd_load_add(struct kd_load *l, const struct kdds_closure *c, uint64_t room);

/* Which closures a thief with so much room may have: those that may leave the process, each range within
 * that room. */
struct kd_load_filter {
	struct kd_filter filter; /* first */
	struct kd_load load;
	uint64_t room;
};

void kd_load_filter_init(struct kd_load_filter *f, uint64_t room);

/* Makes a package of the range. rests (NULL: none does) tells whether a data is what the thief's own results left with
 * it. Dies without memory. */
void kd_parcel_make(struct kd_parcel *p, const struct kd_range *range, int (*rests)(const struct kd_value *v));
/* The data has changed since: gathers it again, if it has been. */
void kd_parcel_gather(struct kd_parcel *p, const void *data);
/* Lets the package itself be read. */
void kd_parcel_expose(struct kd_parcel *p, struct kd_wire_memory *memory_p,
		      struct kd_wire_seal *seal_p);
/* The thief has run the closures: it reads no input any more. What is left are the targets. */
void kd_parcel_hide(struct kd_parcel *p);
void kd_parcel_free(struct kd_parcel *p);

/* Gives each target its result: `inline` ones are applied, *get is called for the others. 0, or -EBADMSG. */
int kd_results_apply(struct kd_parcel *p, const void *bytes, size_t size, uint32_t count,
		     void (*get)(void *arg, struct kd_target *t, const struct kd_wire_memory *from), void *arg);
/* Such a result, read to where kd_target_room said, is there. */
void *kd_target_room(struct kd_target *t);
void kd_target_arrived(struct kd_target *t);
/* The longest that the results can be, with the closures' lengths; of those that users pack it is not known. */
uint64_t kd_results_most(const struct kd_parcel *p);

#endif
