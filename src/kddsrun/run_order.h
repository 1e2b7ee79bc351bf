/* SPDX-License-Identifier: BSD-3-Clause */
/* The payload of JOB: which ranks the agent of a host starts, and how. */
#ifndef KD_RUN_ORDER_H
#define KD_RUN_ORDER_H

#include "boot/boot.h"
#include "boot/control.h"

struct run_order {
	/* the job's size; this host's ranks are first, first + 1, ... or, if it is idle, at most so
	 * many, whose numbers come with START */
	uint32_t size, first, ranks, idle;
	uint32_t one_host;           /* all ranks of the job are on this host, now and later */
	uint32_t heartbeat_ms;       /* 0: none; the link shows when kddsrun ends */
	uint32_t stays;              /* the agent does not end by itself when its ranks have */
	uint32_t leaves;             /* these ranks may leave the job before its end */
	uint32_t bind;               /* give each rank its share of the CPUs */
	const void *secret;          /* KD_BOOT_SECRET_BYTES */
	const char *directory;
	uint32_t arguments, settings;
	char **argument; /* the program and its arguments, NULL-terminated */
	char **setting;  /* NAME=VALUE */
	void *storage;   /* what an unpacked order points into */
};

/* The caller frees the payload. */
void *run_order_pack(const struct run_order *order, size_t *size_p);
/* Returns 0, or -1 if the payload is malformed. The caller frees the order in either case. */
int run_order_unpack(struct run_order *order_p, const struct kd_unpack *u);
void run_order_free(struct run_order *order);

#endif
