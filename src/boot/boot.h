/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How this process came to be part of a job: who it is, who the others are, what they have published. One small interface over
 * the launchers (boot_kddsrun.c: kddsrun's control socket; boot_pmi.c: the PMI-1 wire protocol of mpiexec.hydra and
 * srun --mpi=pmi2; boot_pmix.c: PMIx, found at run time). Without a launcher the process is a job of one.
 *
 * Calls are made by one thread at a time (start, stop: main; the others: under the net lock). Every wait is bounded.
 */
#ifndef KD_BOOT_H
#define KD_BOOT_H

#include "boot/boot_launcher.h"

/* Finds the launcher and fills kd_boot. 0, or -errno after a line on stderr. */
int kd_boot_start(void);

/* Publishes a value under a short name; the others can get it once everybody has passed a fence. 0 or -errno, after a line. */
int kd_boot_put(const char *key, const void *value, size_t size);
/* share, the same on every rank: most of what has been put will be wanted by most, so a launcher that can hands it out now. */
int kd_boot_fence(int share);
/* Copies what a rank has published, at most *size_p bytes, and sets *size_p. -ENOENT: no such value; -EMSGSIZE; or another
 * -errno after a line on stderr. May ask the launcher. */
int kd_boot_get(uint32_t rank, const char *key, void *value, size_t *size_p);

/* A name of this host that no other has: two processes that have the same can share memory, and a clock. */
void kd_boot_host(char *id, size_t size);

/* fd is readable. 0: go on. -errno: the launcher is gone or wants this process to end (a line has been written unless it was
 * the launcher's wish). */
int kd_boot_event(void);

/* The job has ended well: the launcher need not be alarmed when this process exits. */
void kd_boot_stop(void);

#endif
