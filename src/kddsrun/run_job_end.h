/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the job: how ranks end, and what that means for the others and for the exit status.
 * The first reason is reported and decides the status. */
#ifndef KD_RUN_JOB_END_H
#define KD_RUN_JOB_END_H

#include "kddsrun/run_job_state.h"

/* Ends the job with this status, unless it is ending already. */
void run_job_end(int status);
/* The same with status 1, after a line. */
void run_job_fail(const char *format, ...) kd_printf(1, 2);
/* The same with a line about a rank. */
void run_job_fail_rank(const struct run_job_rank *r, int status, const char *format, ...)
	kd_printf(3, 4);
/* Whether the job can go on without that rank or host. */
int run_job_rank_dispensable(const struct run_job_rank *r);
int run_job_host_dispensable(const struct run_host *h);
/* It goes on without the host, or ends. */
void run_job_host_failed(struct run_host *h, const char *why);
/* A wait status as a shell has it: 128 and the signal, or what the process has exited with. */
int run_job_shell_status(int status);
/* Whether a signal has ended the rank, or a program that a shell has started for it. */
int run_job_rank_killed(const struct run_job_rank *r);
/* The same by a signal that says that the process was at fault. */
int run_job_rank_crashed(const struct run_job_rank *r);
/* A rank has been killed: if the job can go on without it, tells all hosts, and returns 1. */
int run_job_lose_rank(struct run_job_rank *r);
/* Prints a line about the successor of a rank that was lost, after the line about the loss. */
void run_job_say_next(struct run_job_rank *r, const char *format, ...) kd_printf(2, 3);
/* AGAIN: a rank runs tasks of that one again. Not 0: the frame is malformed. */
int run_job_again(uint32_t rank, struct kd_unpack *u);
/* Prints the line about a rank that waits for an explanation, if there is one. */
void run_job_say_unsaid(void);
/* A wait status in words. */
const char *run_job_status_text(int status, char *text, size_t size);
/* Ends the job if ranks have exited in a way that the others cannot survive. */
void run_job_check(void);
/* kddsrun got a signal that asks it to end. */
void run_job_interrupt(int number);
/* Ends the job after this time. */
void run_job_limit_time(uint64_t limit_ns);
/* Writes what is left. A reader may take its time, unless the job was ended. */
void run_job_flush(void);
/* Whether the job has ended because a rank was killed or a host was lost. */
int run_job_lost(void);
/* Returns the exit status, or ends the process by the signal that ended the job. */
int run_job_conclude(void);

#endif
