/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kddsrun's one poll loop, the same in the launcher and in its agents: descriptors to watch, timers, signals, children. One
 * thread; callbacks may add and remove anything, themselves included.
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
	size_t slot;   /* the loop's: 1 + its place in the table; 0: not watched */
	void (*ready)(struct run_watch *watch, short events);
};

struct run_timer {
	uint64_t at_ns; /* 0: not set */
	struct run_timer *next;
	int known; /* the loop's: it is in the list */
	void (*due)(struct run_timer *timer);
};

/* Blocks the signals that the loop delivers; signal is called with each, SIGCHLD excepted; child with each reaped child.
 * Signals that are ignored stay so, SIGCHLD and SIGCONT excepted. Allows this process as many
 * descriptors as it may have. */
int run_loop_init(void (*signal)(int number), void (*child)(pid_t pid, int status));
/* In a forked child, before exec: signals and limits as they were. */
void run_loop_restore(void);
/* 0: this process may open so many more descriptors. Else how many it would have, and the limit. */
size_t run_loop_lacks(size_t more, size_t *most_p);

int run_watch_add(struct run_watch *watch);
void run_watch_remove(struct run_watch *watch);

void run_timer_set(struct run_timer *timer, uint64_t delay_ns);
void run_timer_stop(struct run_timer *timer);

/* Sleeps until something is to be done, and does it: descriptors first, then children, then timers, so that a process that was
 * held up hears what has come before it looks at the clock. */
void run_loop_once(void);
/* Reaps what has ended, now. 0: there are no children. */
int run_loop_reap(void);

/* Memory or death: the launcher without memory is of no use to anybody. */
void *run_alloc(void *p, size_t size);
char *run_copy(const char *s);

#endif
