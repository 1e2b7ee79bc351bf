/* SPDX-License-Identifier: BSD-3-Clause */
/* What each launcher's back end gives to boot.c: the functions of boot.h; and what it finds out. */
#ifndef KD_BOOT_LAUNCHER_H
#define KD_BOOT_LAUNCHER_H

#include "base/base.h"

#define KD_BOOT_VALUE_BYTES 256 /* a published value is at most this long */
#define KD_BOOT_SECRET_BYTES 32

struct kd_boot {
	uint32_t rank, size;
	uint32_t local_rank, local_size; /* among the job's processes on this host */
	int fd;                          /* -1, or: when it is readable kd_boot_event has something to look at */
	uint8_t secret[KD_BOOT_SECRET_BYTES]; /* the job's, the same on every rank */
	uint64_t build; /* set by the caller before kd_boot_start: what all ranks must agree on; kddsrun compares it */
};

extern struct kd_boot kd_boot;

struct kd_boot_launcher {
	const char *name;
	/* Whether this process was started by it, to be told from the environment, cheaply and in silence. */
	int (*present)(void);
	/* Sets kd_boot's rank and size, and local_rank, local_size, fd, secret as far as it knows them (boot.c sets local_size to 0
	 * and the secret to zeroes before, and finds out by itself what is not set). */
	int (*start)(void);
	int (*put)(const char *key, const void *value, size_t size);
	int (*fence)(int share);
	int (*get)(uint32_t rank, const char *key, void *value, size_t *size_p);
	int (*event)(void); /* NULL: it has no fd */
	void (*stop)(void);
};

extern const struct kd_boot_launcher kd_boot_kddsrun, kd_boot_pmi, kd_boot_pmix;

#endif
