/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end of a launcher: it provides the functions of boot.h to boot.c, and fills struct
 * kd_boot. */
#ifndef KD_BOOT_LAUNCHER_H
#define KD_BOOT_LAUNCHER_H

#include "base/base.h"

#define KD_BOOT_VALUE_BYTES 256 /* a published value is at most this long */
#define KD_BOOT_SECRET_BYTES 32

struct kd_boot_control; /* boot_kddsrun.c */
struct kd_boot_launcher;

/* What the launcher tells a rank of the others, unrequested. */
enum kd_boot_kind {
	KD_BOOT_LOST,   /* the rank has died */
	KD_BOOT_ABSENT, /* no process has that number, since before this one joined */
	KD_BOOT_JOINED, /* a process has joined the running job under that number */
	KD_BOOT_OVER,   /* all tasks are complete */
	KD_BOOT_DEPART, /* this one is to leave the job */
};

struct kd_boot_change {
	enum kd_boot_kind kind;
	uint32_t rank;
	/* JOINED: the incarnation (base/member.h), and what the rank has published first */
	uint32_t incarnation;
	size_t size;
	char card[KD_BOOT_VALUE_BYTES];
};

/* A rank, as its launcher sees it. All zeroes before the first kd_boot_start. */
struct kd_boot {
	uint32_t rank, size;
	uint32_t incarnation; /* base/member.h */
	uint32_t local_rank, local_size; /* among the job's processes on this host */
	int one_host; /* all processes of the job are on this host, now and later */
	/* -1, or readable when kd_boot_event has something to handle. */
	int fd;
	uint8_t secret[KD_BOOT_SECRET_BYTES]; /* the job's, the same on every rank */

	/* The launcher tells of ranks that die, and does not end the job; see kd_boot_changed. */
	int tells;
	struct kd_boot_change *changes;
	uint32_t nchanges, taken; /* the first so many have been taken */

	/* Set by the caller before kd_boot_start. */
	uint64_t build; /* what all ranks must agree on; kddsrun compares it */
	/* How long PMI waits for the launcher to answer, and in a fence for the other ranks. 0: as
	 * long as is sensible. Tests shorten them. */
	int pmi_answer_ms, pmi_fence_ms;

	/* From start to stop. NULL: a job of one rank. */
	const struct kd_boot_launcher *launcher;
	/* The launcher's. Its start makes it, or finds there what the caller has brought along with
	 * a launcher of its own. */
	void *state;
	/* kddsrun's socket. It outlives kd_boot_stop, so that another kd_boot_start finds the same
	 * rank: this object lives as long as the process. */
	struct kd_boot_control *control;
};

struct kd_boot_launcher {
	const char *name;
	/* Whether this launcher has started this process: determined from the environment, cheaply
	 * and without messages. Not asked of a launcher that the caller brings along. */
	int (*present)(const struct kd_boot *b);
	/* Sets rank and size, and local_rank, local_size, one_host, fd and secret if it knows them.
	 * boot.c sets local_size to 0, one_host and fd to -1 and the secret to zeroes before, and
	 * determines what is still unset. After an error there is nothing to cancel. */
	int (*start)(struct kd_boot *b);
	int (*put)(struct kd_boot *b, const char *key, const void *value, size_t size);
	int (*fence)(struct kd_boot *b, int share);
	int (*get)(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p);
	int (*event)(struct kd_boot *b); /* NULL: it has no fd */
	/* Says goodbye and frees what start has made. */
	void (*stop)(struct kd_boot *b);
	/* Only frees it: the job has not ended well. */
	void (*cancel)(struct kd_boot *b);
	/* See boot.h; NULL: the launcher does not want to know. */
	void (*again)(struct kd_boot *b, uint32_t rank, uint32_t tasks, const char *names);
	void (*over)(struct kd_boot *b);
	void (*depart)(struct kd_boot *b);
	void (*suspect)(struct kd_boot *b, uint32_t rank, uint32_t incarnation, const char *why);
};

extern const struct kd_boot_launcher kd_boot_kddsrun, kd_boot_pmi, kd_boot_pmix;

#endif
