/* SPDX-License-Identifier: BSD-3-Clause */
/* All descendants of this process. As a subreaper, it becomes the parent of those whose own
 * parents have ended. */
#ifndef KD_RUN_TREE_H
#define KD_RUN_TREE_H

#include <sys/types.h>

/* Makes this process the subreaper of its descendants. */
void run_tree_adopt(void);
/* Sends the signal to every descendant; returns how many there were. New ones may be forked
 * meanwhile: call again. */
int run_tree_signal(int signal);
/* Removes the files of libfabric's shm provider that a descendant may have left, if it is
 * gone. */
void run_tree_tidy(pid_t pid);
/* In a newly forked child: requests a signal for when the parent dies. -1: it is dead already. */
int run_tree_die_with(pid_t parent, int signal);

#endif
