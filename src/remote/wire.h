/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every message between ranks: fixed widths, no holes, little-endian (the processes of a job run
 * the same build, so they have the same byte order). doc/protocol.md describes when each is sent.
 *
 *   REQ    thief -> victim   requests work                       may be lost: the thief asks again
 *   NONE   victim -> thief   there is none                       may be lost
 *   WORK   victim -> thief   closures and their inputs           reliable
 *   BACK   victim -> thief   requests closures that are not begun   may be lost: repeated
 *   DECLINE thief -> victim  it does not begin them: it leaves the job   reliable
 *   DONE   thief -> victim   they are complete; their outputs    reliable
 *   FREE   victim -> thief   the outputs have been fetched       reliable
 *   END    down the tree     the job is over                     reliable
 *   FLAG   up, down the tree  a flag has been raised             reliable
 *   SIGN   reader -> owner   requests the tag of some memory     reliable
 *   SIGNED owner -> reader   the tag                             reliable
 *   ACK                      nothing but the head                may be lost
 */
#ifndef KD_WIRE_H
#define KD_WIRE_H

#include "base/base.h"

enum kd_wire_kind { KD_WIRE_ACK = 1, KD_WIRE_REQ, KD_WIRE_NONE, KD_WIRE_WORK, KD_WIRE_DONE,
		    KD_WIRE_FREE, KD_WIRE_END, KD_WIRE_SIGN, KD_WIRE_SIGNED, KD_WIRE_BACK,
		    KD_WIRE_FLAG, KD_WIRE_DECLINE, KD_WIRE_KINDS };

/* Begins every message. */
struct kd_wire_head {
	uint64_t tag;  /* keyed hash of all that follows: it comes from this job, unaltered */
	uint64_t seq;  /* number of this reliable message between from and to; 0: may be lost */
	uint64_t ack;  /* all reliable messages up to this number have arrived at `from` */
	uint32_t from, to;
	/* of from and to: how often these ranks have died and been started again */
	uint16_t from_incarnation, to_incarnation;
	uint16_t kind;
	uint16_t bytes; /* after the head */
};

#define KD_WANT_MAX 64

/* kind REQ, NONE */
struct kd_wire_req {
	uint32_t request; /* the thief's count */
	uint32_t want;    /* REQ: number of closures, at most KD_WANT_MAX */
	uint32_t wait;    /* REQ: send work later when there is some; NONE: the sender will */
	uint32_t room;    /* REQ: MiB that the data of a steal message may take */
	uint32_t workers; /* REQ: of the thief, and as many for each rank that waits for its work */
	uint32_t idle;    /* REQ: a worker has nothing to run, and no import is ready or arriving */
	uint32_t seen;    /* REQ: generation of the receiver's last WORK here; 0: none has come */
};

/* Memory of the sender that the receiver reads by kd_comm_get. */
struct kd_wire_memory {
	uint64_t addr, key, bytes;
};

/* Proves that bytes are what a rank of this job has: their tag, and the number under which it was
 * made (mac.h). Number 0: there is none. */
struct kd_wire_seal {
	uint64_t number;
	uint8_t tag[16];
};

/* kind WORK: the steal message follows, or is read from memory. */
struct kd_wire_work {
	uint32_t request; /* the one that this answers; 0: for a waiting thief */
	uint32_t slot, generation; /* identify the export */
	uint32_t given; /* it belongs to the thief, and came without a request */
	uint32_t pad[2];
	uint64_t epoch; /* the sender's (flags.h) */
	struct kd_wire_memory message; /* bytes 0: it follows */
	struct kd_wire_seal seal;      /* of the steal message in memory */
};

/* The steal message: this head, the records of the data, pieces of some of these, their inline
 * bytes, the closures. Each part begins at a multiple of 16. */
struct kd_wire_steal {
	uint32_t data, closures;
	uint32_t inline_bytes, closure_bytes;
	uint32_t independent;
	uint32_t pieces;
	uint32_t pad[2];
};

enum {
	KD_WIRE_IN = 1,     /* has an input value */
	KD_WIRE_OUT = 2,    /* its value is returned */
	KD_WIRE_REDUCE = 4, /* starts as the neutral element */
	KD_WIRE_INLINE = 8, /* the input is in the steal message */
	KD_WIRE_RETAINED = 16, /* the thief itself retains the input */
	KD_WIRE_COPIED = 32,   /* the input is a copy, which nobody writes, of memory of another rank */
	KD_WIRE_AWAY = 64,     /* only another rank, the origin, has the input */
	KD_WIRE_PIECES = 128,  /* the input is put together; what is in no piece is not used */
	KD_WIRE_VIEWS = 256,   /* accesses are views of the value: their w and p are the lower and
				  the upper half of the offset of the view in it, in bytes */
};

/* A data item that the closures use. Its value travels without the gaps between rows. */
struct kd_wire_data {
	uint64_t addr;           /* at the victim; names it with rows, cols, ld and size */
	uint64_t rows, cols, ld; /* rows 0: a single element */
	uint64_t version[3];     /* of the input; see copies.h */
	uint64_t pack;           /* module name of its struct kdds_pack (module.h); 0: none */
	uint64_t bytes;          /* length of the input as it travels */
	uint64_t at, key;        /* of the input: offset in the inline bytes, or victim's memory;
				    RETAINED: the thief's; PIECES: the first one's number, and how
				    many there are */
	uint32_t size;           /* of an element */
	uint32_t flags;
	uint32_t written;        /* OUT: last 32 bits of the output's version; 0: it has none */
	/* COPIED, AWAY: the original, and the key under which its owner let the victim read it */
	uint32_t origin_rank; /* a member: base/member.h */
	uint64_t origin, origin_key;
	uint64_t pad;
};

/* A piece of an input, in memory of the rank, a member: rows of bytes, whose distance there and in
 * the input, as it travels, are strides. The rank may be the thief itself. A short one of the
 * victim is inside the message: memory.addr bytes behind the first inline one. */
struct kd_wire_piece {
	uint64_t to, to_stride;
	uint64_t from_stride;
	uint64_t rows, bytes;   /* bytes of a row */
	struct kd_wire_memory memory; /* from the first byte to the last one */
	uint32_t rank;
	uint32_t inside;
	uint32_t pad[2];
};

/* A closure travels as it lies in memory, with three replacements: a name (module.h) for its
 * type, the number of a data record for the address in each access, and null for the pack
 * functions of each shape. */

/* kind DONE: the results follow, in the order of the records that have OUT: each is a struct
 * kd_wire_result and its inline bytes, padded to 16. Results that do not fit are read from
 * memory. */
struct kd_wire_done {
	uint32_t slot, generation; /* the export's */
	uint32_t import;           /* the sender's slot, for FREE */
	uint32_t outputs;
	struct kd_wire_memory results; /* bytes 0: they follow */
	struct kd_wire_seal seal;      /* of the results, not of the values they name */
	uint32_t lengths;          /* 0, or the number of closures: then 64 bits for each follow the
				      results, its length in ns (span.h) */
	uint32_t home;             /* read the results at once: the sender retains enough already */
	uint32_t failed;           /* tasks have failed: 32 bits for each closure follow the lengths
				      (fail.h), and then a struct kdds_failure */
	uint32_t fetch_us;         /* from WORK to the last input's arrival; 0: none was read */
	uint64_t run_ns;           /* from the first closure's begin to the last one's end */
	uint64_t held_ns;          /* the same from the last input's arrival on */
};

struct kd_wire_result {
	struct kd_wire_memory memory; /* memory.bytes 0: inline */
	uint64_t inline_bytes;
	uint64_t gaps; /* 1: its rows are as far apart in memory as at the victim */
};

/* kind BACK, DECLINE */
struct kd_wire_back {
	uint32_t slot, generation; /* the export's */
};

/* kind FREE */
struct kd_wire_free {
	uint32_t import;
	uint32_t generation; /* the export's, as a check */
};

/* kind FLAG: from rank 0, the flag is raised; to rank 0, a task has raised it */
struct kd_wire_flag {
	uint64_t flag;  /* module name of its struct kdds_flag */
	uint64_t epoch; /* the sender's (flags.h) */
};

/* kind SIGN: requests the tag of memory of the receiver, under a number of the sender */
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
_Static_assert(sizeof(struct kd_wire_work) == 80, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_done) == 96, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_flag) == 16, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_sign) == 32, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_signed) == 32, "messages have no holes");
_Static_assert(sizeof(struct kd_wire_steal) % 16 == 0, "parts of a steal message are aligned");
_Static_assert(sizeof(struct kd_wire_piece) % 16 == 0, "parts of a steal message are aligned");
_Static_assert(sizeof(struct kd_wire_data) % 16 == 0, "parts of a steal message are aligned");

#endif
