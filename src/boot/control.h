/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between kddsrun, its agents and the ranks, over byte streams: frames of a header of
 * 12 bytes and a payload, little-endian. A rank is connected to the process that forked it by the
 * socket that KDDS_CONTROL_FD names:
 *
 *   rank to launcher                                launcher to rank
 *   HELLO  magic, protocol, version, build, pid     WELCOME  protocol, rank, size, local rank,
 *                                                            local size, one host (0, 1),
 *                                                            incarnation, secret
 *   PUT    key, value
 *   FENCE  share (0, 1)                             FENCED   every rank has sent FENCE; with share
 *                                                            after the VALUEs of all
 *   GET    key; header's rank: whose                VALUE    status (0, ENOENT), key, value;
 *                                                            header's rank: whose
 *   AGAIN  number and names of tasks that it runs
 *          again; header's rank: for which
 *   OVER   rank 0: all tasks are complete           OVER     the same, to ranks that have joined
 *                                                            the running job
 *   DEPART it leaves the job before its end, and    DEPART   leave the job
 *          exits soon, without BYE
 *   SUSPECT  a rank that it cannot reach, the
 *          incarnation of that, why
 *   BYE                                             ABORT    end now
 *                                                   LOST     a rank has died, and the job goes on;
 *                                                            header's rank: which
 *                                                   MEMBER   header's rank: incarnation, 1, its
 *                                                            first value: it has joined the
 *                                                            running job; 0, nothing: there is no
 *                                                            process of that number
 *
 * HELLO comes first; after BYE another HELLO may come. Between kddsrun and an agent the same
 * messages travel, with the rank that they concern in the header, and those from KD_CONTROL_AGENT
 * on in addition (run_job.c, run_agent.c).
 *
 * No function here trusts the other side: an unpacker that reads beyond the end returns zeroes and
 * stays `bad'.
 */
#ifndef KD_CONTROL_H
#define KD_CONTROL_H

#include "base/base.h"

#define KD_CONTROL_ENV "KDDS_CONTROL_FD" /* "descriptor:inode of the socket" */
#define KD_CONTROL_MAGIC 0x7364646bu     /* "kdds" */
#define KD_CONTROL_PROTOCOL 8            /* raise it with every change of this file */
#define KD_CONTROL_HEADER_BYTES 12
#define KD_CONTROL_KEY_BYTES 64    /* the longest key, with its NUL */
#define KD_CONTROL_RANK_BYTES 1024 /* the longest frame from or to a rank */

enum kd_control_type {
	KD_CONTROL_HELLO = 1,
	KD_CONTROL_WELCOME,
	KD_CONTROL_PUT,
	KD_CONTROL_FENCE,
	KD_CONTROL_FENCED,
	KD_CONTROL_GET,
	KD_CONTROL_VALUE,
	KD_CONTROL_BYE,
	KD_CONTROL_ABORT,
	KD_CONTROL_LOST,
	KD_CONTROL_AGAIN,
	KD_CONTROL_MEMBER,
	KD_CONTROL_OVER,
	KD_CONTROL_DEPART,
	KD_CONTROL_SUSPECT,
	/* kddsrun and agent only */
	KD_CONTROL_AGENT = 32,   /* agent: magic, protocol, version, pid, host name */
	KD_CONTROL_JOB,          /* kddsrun: all that an agent needs to start its ranks */
	KD_CONTROL_STARTED,      /* agent: a rank runs; pid */
	KD_CONTROL_FAILED,       /* agent: the ranks cannot be started; why */
	KD_CONTROL_EXIT,         /* agent: a rank has ended; wait status */
	KD_CONTROL_COMPLAINT,    /* agent: a rank broke this protocol; how */
	KD_CONTROL_INPUT,        /* kddsrun: standard input for a rank; empty: its end */
	KD_CONTROL_INPUT_TAKEN,  /* agent: the rank has taken so many bytes of it */
	KD_CONTROL_OUTPUT,       /* agent: stream (1, 2), bytes; no bytes: its end */
	KD_CONTROL_OUTPUT_TAKEN, /* kddsrun: so many bytes of it have been written */
	KD_CONTROL_BEAT,         /* either: heartbeat */
	KD_CONTROL_SIGNAL,       /* kddsrun: send this signal to every rank */
	KD_CONTROL_END,          /* kddsrun: end every rank, asking first or (1) at once */
	KD_CONTROL_DONE,         /* agent: nothing of the job is left on this host */
	KD_CONTROL_LEAVING,      /* agent: it ends its ranks and itself, unrequested; why */
	KD_CONTROL_START,        /* kddsrun: start a rank in the running job; incarnation */
	KD_CONTROL_READY,        /* agent: that rank waits to join (in its first fence) */
	KD_CONTROL_DROP,         /* kddsrun: it may not: kill it */
	KD_CONTROL_DEPARTS,      /* agent: its host is to be given back: it starts no more ranks */
};

struct kd_control_header {
	uint32_t size; /* of the payload */
	uint32_t rank;
	uint16_t type;
};

struct kd_pack {
	uint8_t *at, *end;
	int bad; /* it did not fit */
};

struct kd_unpack {
	const uint8_t *at, *end;
	int bad; /* something was missing */
};

void kd_pack_uint(struct kd_pack *p, uint64_t value, size_t bytes);
void kd_pack_bytes(struct kd_pack *p, const void *bytes, size_t size);
/* Preceded by its length. */
void kd_pack_block(struct kd_pack *p, const void *bytes, size_t size);
void kd_pack_string(struct kd_pack *p, const char *s);

uint64_t kd_unpack_uint(struct kd_unpack *u, size_t bytes);
void kd_unpack_bytes(struct kd_unpack *u, void *bytes, size_t size);
const void *kd_unpack_block(struct kd_unpack *u, size_t *size_p);
/* The string in place; never NULL. */
const char *kd_unpack_string(struct kd_unpack *u);
/* Nothing was missing, and nothing is left over. */
int kd_unpack_complete(const struct kd_unpack *u);

void kd_control_pack_header(struct kd_pack *p, uint32_t size, uint16_t type, uint32_t rank);
void kd_control_unpack_header(struct kd_unpack *u, struct kd_control_header *header_p);

/* A key: 1 to KD_CONTROL_KEY_BYTES - 1 printable characters, no blank. */
int kd_control_key_valid(const char *key);

#endif
