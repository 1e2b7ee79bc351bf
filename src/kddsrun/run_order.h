/* SPDX-License-Identifier: BSD-3-Clause */
/* The payload of JOB: what kddsrun asks of one host's agent. */
#ifndef KD_RUN_ORDER_H
#define KD_RUN_ORDER_H

#include "boot/boot.h"
#include "boot/control.h"

struct run_order {
	uint32_t size, first, ranks; /* the job's size; this host's ranks are first, first + 1, ... */
	uint32_t heartbeat_ms;       /* 0: kddsrun's end shows in the link */
	uint32_t bind;               /* give each rank its share of the CPUs */
	const void *secret;          /* KD_BOOT_SECRET_BYTES */
	const char *directory;
	uint32_t arguments, settings;
	char **argument; /* the program and what follows it, NULL behind them */
	char **setting;  /* NAME=VALUE */
	void *storage;   /* what an unpacked order points into */
};

/* The caller's to free. */
void *run_order_pack(const struct run_order *order, size_t *size_p);
/* 0, or -1: it makes no sense. The order is to be freed in either case. */
int run_order_unpack(struct run_order *order_p, const struct kd_unpack *u);
void run_order_free(struct run_order *order);

#endif
