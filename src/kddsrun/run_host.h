/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's side of its agents, one per host: started, linked, listened to for signs of life, and lost with the reason
 * that can be found. A near agent is a child that runs this very program, a far one is at the end of ssh, srun or --rsh.
 */
#ifndef KD_RUN_HOST_H
#define KD_RUN_HOST_H

#include "kddsrun/run_link.h"
#include "kddsrun/run_options.h"

struct run_host {
	const struct run_place *place;
	struct run_link link;
	pid_t pid; /* the agent, or the ssh that leads to it; 0: none (any more) */
	int status; /* its wait status */
	struct run_watch errors; /* what ssh says */
	char complaint[512];     /* its last line */
	char leaving[200];       /* why its agent leaves, until told with ssh's last words */
	struct run_timer timer;  /* for its first word; for its last ones; for ssh's last ones */
	int answered;
	int done; /* it says that nothing of the job is left there */
	int lost; /* nothing more will come from it, and that has been told if need be */
	/* The job's: */
	int fenced, shares; /* FENCE has come, and asked for everybody's values */
	uint32_t members; /* its ranks that a fence waits for */
	uint32_t taken;   /* bytes of output whose window is to be given back */
};

struct run_host_events {
	/* A frame, after the agent's first, and not a heartbeat. Not 0: it makes no sense. */
	int (*message)(struct run_host *host, const struct kd_control_header *header, struct kd_unpack *payload);
	void (*answered)(struct run_host *host);
	/* The job cannot go on without it; why. May come several times. */
	void (*failed)(const struct run_host *host, const char *why);
};

extern struct run_host *run_hosts; /* as many as there are places */

/* 0, or -EMFILE after a line on stderr: too few descriptors, and nothing is started. */
int run_hosts_start(const struct run_options *options, const struct run_host_events *events);
/* A child of ours has ended: it may be one of them. */
void run_hosts_child(pid_t pid, int status);
void run_hosts_send(uint16_t type, uint32_t argument);
void run_host_send(struct run_host *host, uint16_t type, uint32_t argument);
/* Kills the processes here that lead to agents: those that have not answered, or (all) all. No more are started. */
void run_hosts_kill(int all);
/* After a pause of this process: nobody has been silent. */
void run_hosts_forgive(void);
/* slurmstepd's line about the end of the job's time or of the job, if it has come; else NULL. */
const char *run_host_cancelled(const struct run_host *host);
/* Whether there is any whose end is to be awaited. */
int run_hosts_left(void);

#endif
