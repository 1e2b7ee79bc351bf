/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kddsrun's poll loop, the same in the launcher and in its agents: watched descriptors, timers,
 * signals, children. There is one thread. A callback may add and remove any watch or timer, its
 * own included.
 */
#ifndef KD_RUN_LOOP_H
#define KD_RUN_LOOP_H

#include <signal.h>
#include <sys/types.h>

#include "base/base.h"

#define container_of(p, type, member) ((type *)(void *)((char *)(p) - offsetof(type, member)))

struct run_watch {
	int fd;
	short events;  /* what to poll for; may change at any time; 0: nothing, not even hang-ups */
	size_t slot;   /* the loop's: 1 + index in its table; 0: not watched */
	void (*ready)(struct run_watch *watch, short events);
};

struct run_timer {
	uint64_t at_ns; /* 0: not set */
	struct run_timer *next;
	int known; /* the loop's: in its list */
	void (*due)(struct run_timer *timer);
};

/*
 * Blocks the signals that the loop delivers. It calls signal with each of them except SIGCHLD,
 * and child with each reaped child. Signals that are ignored stay ignored, except SIGCHLD and
 * SIGCONT. Raises this process's soft limit of descriptors to the hard one.
 */
int run_loop_init(void (*signal)(int number), void (*child)(pid_t pid, int status));
/* In a forked child, before exec: restores signals and limits. */
void run_loop_restore(void);
/* Returns 0 if this process may open that many more descriptors; otherwise how many it would have
 * open, and the limit in *most_p. */
size_t run_loop_lacks(size_t more, size_t *most_p);

int run_watch_add(struct run_watch *watch);
void run_watch_remove(struct run_watch *watch);

void run_timer_set(struct run_timer *timer, uint64_t delay_ns);
void run_timer_stop(struct run_timer *timer);

/* Waits for events and handles them: descriptors first, then children, then timers, so that a
 * process that was delayed reads what has arrived before it checks the clock. */
void run_loop_once(void);
/* Reaps the children that have ended. Returns 0 if there are no children. */
int run_loop_reap(void);

/* Ends the process with a line on stderr if there is no memory. */
void *run_alloc(void *p, size_t size);
char *run_copy(const char *s);

#endif
