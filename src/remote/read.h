/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote reads. A read is repeated if it fails, or if it returns other bytes than the owner has:
 * a stranger may have answered, or altered the bytes in transit. So the bytes are compared with a
 * tag. The message that names the memory brings the tag, or the reader requests it from the owner
 * while the bytes are in flight:
 *
 *   kd_comm_get ───────────> bytes ──> our tag ──┐
 *   SIGN ──> owner's tag ──> SIGNED ─────────────┴─> equal: arrived; else repeated
 *
 * Long memory is read in parts: while one part arrives, the owner hashes the next and the reader
 * hashes the one before.
 *
 * The same tags tell whether a part has to be read at all. What the reader may have already, such as
 * an older version, it puts where the part belongs. If the tag of that is the owner's, nobody has
 * written the data since, or not with an effect, and nothing is read. Otherwise the part is read as
 * if nothing had been known of it, one round trip later; and when more parts have differed than were
 * the same, the rest is read at once.
 *
 * The net lock protects everything here.
 */
#ifndef KD_READ_H
#define KD_READ_H

#include "remote/wire.h"

struct kd_net;
struct kd_transfer;

struct kd_read {
	struct kd_net *net; /* set by kd_read_start */
	void *whose;    /* for the caller, as is index */
	uint32_t index;
	uint32_t rank;
	/* for observers: the type of the task that the data are for; NULL: not known yet */
	const struct kdds_type *type;
	int results; /* they are results, or a list of them, on the way back */
	void *to;
	struct kd_wire_memory from;
	int checked; /* compared with a tag even if KDDS_VERIFY is 0 */
	struct kd_wire_seal seal; /* came with the memory's name; number 0: there is none */
	/* Puts what this rank may have of a part to its place in `to': of the bytes that begin at
	 * `at', at most `most'. Returns how many of them it has, *had_p being 1, or does not have,
	 * *had_p being 0. NULL: it has nothing. Not called if the read is compared with a seal, or
	 * not compared. */
	uint64_t (*recall)(struct kd_read *r, uint64_t at, uint64_t most, int *had_p);
	void (*arrived)(struct kd_read *r);
	uint32_t same, differed; /* parts that this rank had; that it had in another version */
	uint64_t same_bytes;     /* of the parts that it had */
	uint64_t begun;          /* for the read hook */
	struct kd_transfer *transfer;
};

void kd_read_init(struct kd_net *net);

/* Reads r->from of r->rank to r->to and then calls r->arrived. Ends the process if the read still
 * fails after 20 s. */
void kd_read_start(struct kd_net *net, struct kd_read *r);
/* SIGNED, from a rank. */
void kd_read_signed(struct kd_net *net, uint32_t from, const void *body, size_t bytes);
/* Repeats failed reads that are due. Returns when the next is due. */
uint64_t kd_read_retry(struct kd_net *net, uint64_t now_ns);
/* The rank has died, and the engine has given up what it read from there: drops these reads. */
void kd_read_lost(struct kd_net *net, uint32_t rank);
/* Drops all reads in progress. */
void kd_read_stop(struct kd_net *net);

#endif
