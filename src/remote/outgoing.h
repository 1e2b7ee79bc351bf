/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A range of closures on its way to another process. The victim makes a steal message of it, with
 * the inputs or with the places to read them from; the thief unpacks it (incoming.h); the results
 * return in the same way. wire.h has the formats.
 *
 * A data item is identified by its address and shape, so closures of a range that share one also
 * share its copy. Contributions to reductions are kept apart, one copy per access, and the victim
 * merges them in reference order.
 */
#ifndef KD_OUTGOING_H
#define KD_OUTGOING_H

#include "core/segments.h"
#include "core/stack.h"
#include "core/steal.h"
#include "core/value.h"
#include "core/visit.h"
#include "remote/exposed.h"
#include "remote/wire.h"

#define KD_STEAL_CLOSURES 4096 /* at most */
/* More than that many closures with their small inputs can take. */
#define KD_STEAL_BYTES ((uint64_t)1 << 30)
/* A value up to this size travels in the message. The rank that needs a longer one reads it,
 * directly from where it lies if it is contiguous. */
#define KD_STEAL_INLINE 2048

struct kd_net;

/* Where a result goes: the value or, for a reduction, the closure's private copy. */
struct kd_target {
	struct kd_value value;
	struct kdds_closure *closure; /* NULL: not a reduction */
	uint32_t access;
	/* Buffer for the result while it is read, if rows of the value have gaps; if staged, until
	 * kd_results_store. */
	char *bytes;
	int staged;
	int gaps; /* rows are as far apart in what is read as in the value */
};

/* The outgoing steal message, kept by the victim until the thief is done with it. */
struct kd_outgoing {
	struct kd_net *net;
	char *bytes; /* the message */
	size_t size;
	uint32_t closures;
	struct kd_exposed *regions;
	uint32_t nregions;
	char **staged; /* inputs with gaps between their rows, gathered for reading */
	uint32_t nstaged;
	struct kd_target *targets; /* in the order of the results */
	uint32_t ntargets;
};

/* Whether the closure may leave the process. */
int kd_outgoing_allows(struct kd_net *net, const struct kdds_closure *c);
/* Whether c, which kd_place_of has sent to that place, is open to all: that rank only has the data,
 * and enough to do. The data are not here. */
int kd_outgoing_open(struct kd_net *net, const struct kdds_closure *c, int place);

typedef void kd_outgoing_part(void *arg, uint32_t rank, const struct kd_rows *b,
			      const struct kd_value *value, const struct kd_wire_memory *memory);

#define KD_LOAD_VALUES 16

/* The memory that a steal message of some consecutive closures needs: its data, each item
 * once. */
struct kd_load {
	const char *end; /* of the closures; NULL: none yet */
	uint64_t bytes;
	/* Large values that have been counted. If there are more than fit here, some count
	 * twice. */
	struct kd_value values[KD_LOAD_VALUES];
	uint32_t n;
};

/* Adds the closure, or starts again with it if it does not directly follow the others. Returns
 * 0 and adds nothing if the data would exceed room, with a message if the closure alone does, or if
 * the closure has views of one value, and others are there. */
int kd_load_add(struct kd_net *net, struct kd_load *l, const struct kdds_closure *c, uint64_t room);

/* The filter for a thief with that much room: closures that may leave the process, in ranges that
 * fit into the room. */
struct kd_load_filter {
	struct kd_filter filter; /* first */
	struct kd_net *net;
	uint32_t thief;
	struct kd_load load;
	uint64_t room;
	uint64_t now_ns;   /* what is too dear to be moved (weigh.h) stays; 0: nothing is */
	uint64_t until_ns; /* the earliest time from which something that was refused may go */
	int large;         /* a range with many data may go, although such tasks may not gain */
	int too_large;     /* such a range was refused */
	int affords;       /* the range does not pay, but the thief has been idle (balance.h) */
};

void kd_load_filter_init(struct kd_net *net, struct kd_load_filter *f, uint32_t thief,
			 uint64_t room, uint64_t now_ns);

/* What other ranks have. */
struct kd_outgoing_absent {
	/* The rank that retains the data item, and where it has it; this one: it does not. */
	uint32_t (*retains)(struct kd_net *net, const struct kd_value *v,
			    struct kd_wire_memory *memory_p);
	/* Calls part for each block of the bytes wanted of v that a rank retains: in that memory of
	 * its own, where the value is to which it belongs. Removes these from wanted. */
	void (*parts)(struct kd_net *net, const struct kd_value *v, struct kd_segments *wanted,
		      kd_outgoing_part *part, void *arg);
};

/* Makes a steal message of the range for the thief. absent NULL: all data are here. Ends the
 * process if there is no memory. */
void kd_outgoing_make(struct kd_net *net, struct kd_outgoing *p, const struct kd_range *range,
		      uint32_t thief, const struct kd_outgoing_absent *absent);
/* Exposes the message itself for reading. */
void kd_outgoing_expose(struct kd_outgoing *p, uint32_t thief, struct kd_wire_memory *memory_p,
			struct kd_wire_seal *seal_p);
/* The thief has run the closures and reads no input any more: frees all but the targets. */
void kd_outgoing_hide(struct kd_outgoing *p);
void kd_outgoing_free(struct kd_outgoing *p);

/* Gives each target its result: stores inline results, unless they are staged, and calls get for
 * the others. 0, or -EBADMSG. */
int kd_results_apply(struct kd_outgoing *p, const void *bytes, size_t size, uint32_t count,
		     void (*get)(void *arg, struct kd_target *t, const struct kd_wire_memory *from),
		     void *arg);
/* Staged results, which are here now: stores them. The list has passed kd_results_apply. */
void kd_results_store(struct kd_outgoing *p, const void *bytes);
/* Where to read such a result to; call kd_target_arrived when it is there. */
void *kd_target_room(struct kd_target *t);
void kd_target_arrived(struct kd_target *t);
/* An upper bound of the length of the results, with what follows them. The length of
 * values that users pack is not known; with these the bound is the machine's memory. */
uint64_t kd_results_most(const struct kd_outgoing *p);

#endif
