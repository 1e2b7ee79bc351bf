/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's descendants, all of them: a subreaper is the parent of those whose own parents have ended. */
#ifndef KD_RUN_TREE_H
#define KD_RUN_TREE_H

#include <sys/types.h>

/* From now on orphans among the descendants come to this process. */
void run_tree_adopt(void);
/* Sends the signal to every descendant; returns how many there were. New ones may be born meanwhile: ask again. */
int run_tree_signal(int signal);
/* Removes the files of libfabric's shm provider that a descendant, which is gone, may have left. */
void run_tree_tidy(pid_t pid);
/* In a child that was just forked: a signal when the parent dies. -1: it is dead already. */
int run_tree_die_with(pid_t parent, int signal);

#endif
