/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end of a launcher: it provides the functions of boot.h to boot.c, and fills kd_boot. */
#ifndef KD_BOOT_LAUNCHER_H
#define KD_BOOT_LAUNCHER_H

#include "base/base.h"

#define KD_BOOT_VALUE_BYTES 256 /* a published value is at most this long */
#define KD_BOOT_SECRET_BYTES 32

struct kd_boot {
	uint32_t rank, size;
	uint32_t local_rank, local_size; /* among the job's processes on this host */
	/* -1, or readable when kd_boot_event has something to handle. */
	int fd;
	uint8_t secret[KD_BOOT_SECRET_BYTES]; /* the job's, the same on every rank */
	/* Set by the caller before kd_boot_start: what all ranks must agree on. kddsrun compares
	 * it. */
	uint64_t build;
};

extern struct kd_boot kd_boot;

struct kd_boot_launcher {
	const char *name;
	/* Whether this launcher has started this process: determined from the environment, cheaply
	 * and without messages. */
	int (*present)(void);
	/* Sets kd_boot.rank and .size, and .local_rank, .local_size, .fd and .secret if it knows
	 * them. boot.c sets local_size to 0 and the secret to zeroes before, and determines what is
	 * still unset. */
	int (*start)(void);
	int (*put)(const char *key, const void *value, size_t size);
	int (*fence)(int share);
	int (*get)(uint32_t rank, const char *key, void *value, size_t *size_p);
	int (*event)(void); /* NULL: it has no fd */
	void (*stop)(void);
};

extern const struct kd_boot_launcher kd_boot_kddsrun, kd_boot_pmi, kd_boot_pmix;

#endif
