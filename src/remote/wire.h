/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every message between ranks: fixed widths, little-endian (the processes of a job run the same build, so the same byte
 * order), no holes. doc/protocol.md tells who sends what when.
 *
 *   REQ    thief -> victim   give me work                        may be lost: the thief asks again
 *   NONE   victim -> thief   I have none                         may be lost
 *   WORK   victim -> thief   a package of closures and inputs    reliable
 *   DONE   thief -> victim   they are complete; the outputs      reliable
 *   FREE   victim -> thief   I have fetched the outputs          reliable
 *   END    down the tree     the job is over                     reliable
 *   SIGN   reader -> owner   the tag of what I have read         reliable
 *   SIGNED owner -> reader   it                                  reliable
 *   ACK                      nothing but its head                may be lost
 */
#ifndef KD_WIRE_H
#define KD_WIRE_H

#include "base/base.h"

enum kd_wire_kind { KD_WIRE_ACK = 1, KD_WIRE_REQ, KD_WIRE_NONE, KD_WIRE_WORK, KD_WIRE_DONE,
		    KD_WIRE_FREE, KD_WIRE_END, KD_WIRE_SIGN, KD_WIRE_SIGNED, KD_WIRE_KINDS };

/* Begins every message. */
struct kd_wire_head {
	uint64_t tag;  /* keyed hash of all that follows: it comes from this job, unaltered */
	uint64_t seq;  /* number of the reliable messages between from and to; 0: may be lost */
	uint64_t ack;  /* all reliable ones up to this have arrived here */
	uint32_t from, to;
	uint32_t incarnation; /* of from: how often the rank has been started */
	uint16_t kind;
	uint16_t bytes; /* behind the head */
};

#define KD_WANT_MAX 64

/* kind REQ, NONE */
struct kd_wire_req {
	uint32_t request; /* the thief's count */
	uint32_t want;    /* REQ: closures, at most; KD_WANT_MAX */
	uint32_t wait;    /* REQ: send work when there is some; NONE: I shall */
	uint32_t room;    /* REQ: MiB that the data of a package may have */
};

/* Memory of the sender to be read by kd_comm_get. */
struct kd_wire_memory {
	uint64_t addr, key, bytes;
};

/* Proves that bytes are what a rank of this job has: their tag, and the number it was made under
 * (mac.h). */
struct kd_wire_seal {
	uint64_t number;
	uint8_t tag[16];
};

/* kind WORK: the package follows, or lies in memory. */
struct kd_wire_work {
	uint32_t request; /* that this answers; 0: a waiting thief's */
	uint32_t slot, generation; /* names the export */
	uint32_t pad;
	struct kd_wire_memory package; /* bytes 0: it follows */
	struct kd_wire_seal seal;      /* of the package in memory */
};

/* The package: this, the data's records, their inline bytes, the closures. Each part begins at a multiple of 16. */
struct kd_wire_package {
	uint32_t data, closures;
	uint32_t inline_bytes, closure_bytes;
	uint32_t independent;
	uint32_t pad[3];
};

enum {
	KD_WIRE_IN = 1,     /* has an input value */
	KD_WIRE_OUT = 2,    /* its value is to be returned */
	KD_WIRE_REDUCE = 4, /* begins as the neutral element */
	KD_WIRE_INLINE = 8, /* the input is in the package */
	KD_WIRE_RESTS = 16, /* the input is what the thief's own results left with it, and of use to nobody else */
};

/* One data that the closures use. Its value travels without the gaps between rows. */
struct kd_wire_data {
	uint64_t addr;           /* in the victim: with rows, cols, ld and size, its name */
	uint64_t rows, cols, ld; /* rows 0: a single element */
	uint64_t version[3];     /* of the input; see gdata.h */
	uint64_t pack;           /* image name of the struct kdds_pack it travels by; 0: none */
	uint64_t bytes;          /* of the input as it travels */
	uint64_t at, key;        /* where that is: an offset in the package's inline bytes, or the victim's memory */
	uint32_t size;           /* of an element */
	uint32_t flags;
	uint32_t written;        /* OUT: replaces the last 32 bits of the version; 0: what is left is none */
	uint32_t pad[3];
};

/* A closure travels as it is, but for these three: type is a name (image.h), each access's data the number of the data's
 * record, each shape's pack nothing. */

/* kind DONE: the results follow in the order of the records that have OUT: struct kd_wire_result, its inline bytes, padded to
 * 16 each. When they do not fit they lie in memory. */
struct kd_wire_done {
	uint32_t slot, generation; /* the export's */
	uint32_t import;           /* the sender's slot, for FREE */
	uint32_t outputs;
	struct kd_wire_memory results; /* bytes 0: they follow */
	struct kd_wire_seal seal;      /* of these, not of the values they name */
	uint32_t lengths;          /* 0, or the number of closures: behind the results, 64 bits for each, its length in ns (span.h) */
	uint32_t home;             /* read the results at once: the sender keeps enough of them already */
};

struct kd_wire_result {
	struct kd_wire_memory memory; /* memory.bytes 0: inline */
	uint64_t inline_bytes;
};

/* kind FREE */
struct kd_wire_free {
	uint32_t import;
	uint32_t generation; /* the export's, as a check */
};

/* kind SIGN: the tag of this memory of yours, under this number of mine */
struct kd_wire_sign {
	uint64_t number;
	struct kd_wire_memory memory;
};

/* kind SIGNED */
struct kd_wire_signed {
	struct kd_wire_seal seal;
	uint32_t known; /* 0: there is no such memory */
	uint32_t pad;
};

_Static_assert(sizeof(struct kd_wire_head) == 40, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_work) == 64, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_done) == 72, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_sign) == 32, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_signed) == 32, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_package) % 16 == 0, "parts of a package are aligned");
_Static_assert(sizeof(struct kd_wire_data) % 16 == 0, "parts of a package are aligned");

#endif
