/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How this process joins a job: its rank, the size of the job, and what the other ranks have
 * published. One small interface to the launchers (boot_kddsrun.c: kddsrun's control socket;
 * boot_pmi.c: the PMI-1 wire protocol of mpiexec.hydra and srun --mpi=pmi2; boot_pmix.c: PMIx,
 * found at run time). Without a launcher the process is a job of one rank.
 *
 * struct kd_boot is one rank. The library has one; a simulation of a whole job can have one for
 * each rank, all in one process, and bring their launcher along.
 *
 * Calls for one object are made by one thread at a time (start, stop: main; the others: under the
 * net lock). Every wait is bounded.
 */
#ifndef KD_BOOT_H
#define KD_BOOT_H

#include "boot/boot_launcher.h"

/* Joins the job and fills *b. launcher NULL: the environment says which launcher, if any, has
 * started this process. What has been joined is not joined again until kd_boot_stop: kdds_init can
 * be called again after another part of it has failed. 0, or -errno after a line on stderr. */
int kd_boot_start(struct kd_boot *b, const struct kd_boot_launcher *launcher);

/* Publishes a value under a short name. The other ranks can get it once all have passed the next
 * fence. 0, or -errno after a line. */
int kd_boot_put(struct kd_boot *b, const char *key, const void *value, size_t size);
/* Returns when every rank has called it; 0, or -errno after a line. share, the same on every rank:
 * most ranks will want most of what has been put, so a launcher that can distributes it now. */
int kd_boot_fence(struct kd_boot *b, int share);
/* Copies what a rank has published, at most *size_p bytes, and sets *size_p. -ENOENT: there is no
 * such value; -EMSGSIZE: it is longer; or another -errno after a line on stderr. May ask the
 * launcher. */
int kd_boot_get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p);

/* Writes a name that no other host has. Two processes with the same name can share memory and a
 * clock. */
void kd_boot_host(char *id, size_t size);

/* Called when b->fd is readable. 0: go on. -errno: the launcher is gone or wants this process to
 * end (after a line, unless the launcher wants it). */
int kd_boot_event(struct kd_boot *b);

/* Takes the next change that the launcher has told, by kd_boot_event or while it was asked for
 * something else. 0: there is none. */
int kd_boot_changed(struct kd_boot *b, struct kd_boot_change *change_p);
/* Whether another rank has come or gone. */
static inline int kd_boot_of_others(const struct kd_boot_change *change)
{
	return change->kind != KD_BOOT_OVER && change->kind != KD_BOOT_DEPART;
}
/* Tells the launcher that this rank runs so many tasks of the dead rank again. */
void kd_boot_again(struct kd_boot *b, uint32_t rank, uint32_t tasks, const char *names);
/* Rank 0 tells the launcher that all tasks are complete: no rank is started again, and those that
 * have been are told, since rank 0 may not know of them. */
void kd_boot_over(struct kd_boot *b);
/* Tells the launcher that this rank leaves the job before its end: the process exits with status 0
 * soon, which is no failure. */
void kd_boot_depart(struct kd_boot *b);
/* Tells the launcher that this rank cannot reach another one, of that incarnation, and why. The
 * launcher kills one of the two. Any thread, also while another one is in kd_boot_fence. */
void kd_boot_suspect(struct kd_boot *b, uint32_t rank, uint32_t incarnation, const char *why);
/* For launchers: something has changed. */
void kd_boot_add_change(struct kd_boot *b, const struct kd_boot_change *change);

/* Says goodbye to the launcher: the job has ended well, and the exit of this process is not a
 * failure. */
void kd_boot_stop(struct kd_boot *b);
/* The same without a goodbye, after kd_boot_depart. */
void kd_boot_cancel(struct kd_boot *b);

#endif
