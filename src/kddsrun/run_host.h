/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's side of its agents, one per host: starts them, holds the link to each, checks
 * heartbeats, and finds the reason when one is lost. A near agent is a child that runs this
 * program; a remote one is started through ssh, srun or --rsh.
 */
#ifndef KD_RUN_HOST_H
#define KD_RUN_HOST_H

#include "kddsrun/run_link.h"
#include "kddsrun/run_options.h"

/* doc/protocol.md has the drawing. */
enum run_host_state {
	RUN_HOST_WAITING,  /* its agent has not been started */
	RUN_HOST_STARTING, /* the agent has been started and has not answered */
	RUN_HOST_SERVING,  /* the agent has answered (AGENT) */
	RUN_HOST_DONE,     /* DONE has come: nothing of the job is left there */
	RUN_HOST_LOST      /* nothing more will come from it; reported if that is an error */
};

struct run_host {
	enum run_host_state state; /* run_host_enter changes it */
	const struct run_place *place;
	struct run_link link;
	pid_t pid; /* the agent, or the ssh in front of it; 0: none, or it has ended */
	int status; /* its wait status */
	struct run_watch errors; /* ssh's stderr */
	char complaint[512];     /* its last line */
	char leaving[200];       /* why its agent leaves; reported together with ssh's last line */
	/* for the agent to answer; later for its last messages or ssh's last lines */
	struct run_timer timer;
	int idle; /* its agent starts no rank before it is told to: START */
	/* The job's: */
	int fenced, shares; /* FENCE has come; it asks for the values of all ranks */
	uint32_t running; /* ranks of it that have not exited */
	uint32_t members; /* of these, the ones that a fence waits for */
	uint32_t taken;   /* bytes of output to be granted again */
	int released;     /* its agent has been told to end, since none is left */
	int departs;      /* it is to be given back: no more ranks are started there */
	int unreached;    /* ranks there were killed: those of another host could not reach them */
	int given_up;     /* the job goes on without it; what its ranks still say does not count */
};

struct run_host_events {
	/* A frame other than the agent's first and heartbeats. Returns nonzero if it is
	 * malformed. */
	int (*message)(struct run_host *host, const struct kd_control_header *header,
		       struct kd_unpack *payload);
	void (*answered)(struct run_host *host);
	/* Whether the job can continue without this host. */
	int (*dispensable)(const struct run_host *host);
	/* It has to; why is a line. May be called several times. */
	void (*failed)(struct run_host *host, const char *why);
};

extern struct run_host **run_hosts; /* more may be added */
extern size_t run_hosts_count;

/* The only transitions. */
void run_host_enter(struct run_host *host, enum run_host_state next);

/* Starts the agents of the places that the job begins with. 0, or -EMFILE after a line on stderr:
 * too few descriptors, and nothing is started. */
int run_hosts_start(const struct run_options *options, const struct run_host_events *events);
/* Whether there are too few descriptors for so many more hosts; then writes the line. */
int run_hosts_lack_files(size_t hosts, char *why, size_t size);
/* Starts an agent in a running job, idle. The place must live as long as the job. */
struct run_host *run_hosts_add(const struct run_place *place);
/* A child of this process has ended, which may be an agent or an ssh. */
void run_hosts_child(pid_t pid, int status);
void run_hosts_send(uint16_t type, uint32_t argument);
void run_hosts_send_frame(uint16_t type, uint32_t rank, const void *payload, size_t size);
void run_host_send(struct run_host *host, uint16_t type, uint32_t argument);
/* Kills the local agents and the ssh of remote ones: those that have not answered or, with all,
 * every one. No more are started. */
void run_hosts_kill(int all);
/* A serving host that does not do what it must; why completes "host NAME: ". */
void run_host_give_up(struct run_host *host, const char *format, ...) kd_printf(2, 3);
/* After this process was stopped: restarts the heartbeat clocks. */
void run_hosts_forgive(void);
/* slurmstepd's line about the end of the job or of its time; NULL if none has come. */
const char *run_host_cancelled(const struct run_host *host);
/* Whether any of them has still to end. */
int run_hosts_left(void);

#endif
