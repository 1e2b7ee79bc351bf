/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent forwards the ranks' output to kddsrun, and kddsrun's input to rank 0. */
#ifndef KD_RUN_AGENT_IO_H
#define KD_RUN_AGENT_IO_H

#include "kddsrun/run_rank.h"

/* The callback of an outlet. */
void run_outlet_ready(struct run_watch *watch, short events);
/* More bytes may be in flight. */
void run_outlets_grant(uint32_t bytes);
/* Forwards what is left in the pipe, within a limit, and closes it. */
void run_outlet_finish(struct run_outlet *o);
/* The same of both outlets of a rank that has ended and is about to be started again. */
void run_outlets_finish(struct run_rank *r);
/* The pipe to the stdin of rank 0, if rank 0 is on this host. */
void run_inlet_open(int fd);
/* INPUT from kddsrun. -1: it is malformed. */
int run_inlet_handle(struct kd_unpack *u);

#endif
