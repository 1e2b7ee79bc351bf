/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that watches over an agent on another host. Where kddsrun is not the parent, another
 * process must outlive an agent that is killed, and kill the descendants that it adopts then. A
 * signal that a batch system sends to all processes must not end this one first.
 */
#ifndef KD_RUN_WATCHER_H
#define KD_RUN_WATCHER_H

#include <sys/types.h>

#include "base/base.h"

kd_noreturn void run_watcher_main(pid_t child);

#endif
