/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole job in one thread of one process, after the simulations of FoundationDB and TigerBeetle.
 * The code of the library runs as it is; what depends on time is replaced:
 *
 *   sim.c       in place of src/base/os_thread.c: threads are fibers, and a virtual clock jumps
 *               from one event to the next
 *   sim_comm.c  a communication engine: messages and reads arrive late, and are lost, doubled or
 *               altered by chance
 *   sim_boot.c  a launcher
 *
 * Ranks other than 0 may die: at a given event, that is when a message or a read is sent or
 * arrives, or by chance. The launcher says so to each of the others, sooner or later. Some that are
 * declared dead go on for a while. Some are started again, and some for the first time in the
 * running job: a rank is a process after the other. Of two that can no longer reach each other the
 * launcher kills one.
 *
 * Every choice follows from the seed: one seed, one run, as long as data have the same addresses. A
 * fiber gives way to others where a thread yields, sleeps or computes (sim_work), never elsewhere.
 */
#ifndef KD_TESTS_SIM_H
#define KD_TESTS_SIM_H

#include "boot/boot_launcher.h"
#include "comm/comm_engine.h"

struct sim_faults {
	unsigned lost, doubled; /* per cent of the messages */
	unsigned altered;       /* per cent of the reads */
	unsigned failed;        /* per cent of the reads */
	unsigned prompt;        /* per cent of the reads end at once, as those of the kernel */
	unsigned refused;       /* per cent of the sends get -EAGAIN */
	uint64_t delay_ns;      /* a message takes up to that much longer than it need */
	uint64_t read_ns;       /* a read takes up to that much longer than it need */
	unsigned deaths;        /* so many ranks die, at most */
	uint64_t death_events;  /* there is one after up to twice as many events */
	uint64_t die_at;        /* or the first one at this event; 0: at any */
	uint32_t victim;        /* the rank that dies first; 0: any */
	unsigned leaves;        /* per cent of the deaths: the rank is told to leave instead */
	void (*leave)(uint32_t process); /* how */
	unsigned cuts;          /* per cent of the deaths: the rank and another one are cut off
				   from each other instead */
	unsigned absent;        /* so many ranks, the last ones, are not there at first */
	unsigned starts;        /* so many of these, or that have died, are started later, at most */
	uint64_t start_ns;      /* up to that much later */
	uint64_t yield_ns;      /* a yield takes that long, and up to five times as long; 0: 200 */
};

struct sim {
	uint64_t now_ns;
	uint64_t switches; /* from fiber to fiber */
	uint64_t hash;     /* of all that has happened: equal if two runs are */
	uint32_t ranks;
	uint64_t events; /* messages and reads, sent and arrived */
	unsigned deaths; /* ranks that have died, or have been declared dead */
	uint32_t processes; /* so far: the first of each rank, there or not, then those started later */
	unsigned joined; /* of these, those that have joined the job */
	unsigned left;   /* processes that have left the job before its end */
	struct sim_faults faults;
};

extern struct sim sim;

/* A job of that many ranks begins, at the time 0. */
void sim_begin(uint64_t seed, uint32_t ranks, const struct sim_faults *faults);
/* Runs main(rank) for each rank until all have returned. Ends the process with a line that has the
 * seed if none can go on, or after limit_ns. */
void sim_run(void (*main)(uint32_t rank), uint64_t limit_ns);

/* Frees what the job has left; sim_begin does so, too. */
void sim_end(void);

/* Ends the process with a line that has the seed. */
kd_noreturn void sim_fail(const char *what);

/* Called by fibers. */
uint32_t sim_rank(void);
/* The number of the process: the rank's, if it is the first. */
uint32_t sim_process(void);
/* The task computes for that long. */
void sim_work(uint64_t ns);
/* Sleeps until then, or until sim_wake. */
void sim_sleep(uint64_t until_ns);
/* A fiber, for sim_wake. */
struct sim_fiber *sim_self(void);
/* The fiber goes on at that time, if it would go on later otherwise. */
void sim_wake(struct sim_fiber *f, uint64_t at_ns);
/* An event: a rank may die, perhaps the caller's. */
void sim_event(void);
/* The process has been declared dead. */
int sim_dead(uint32_t process);
uint32_t sim_rank_of(uint32_t process);
/* Since when the two can no longer reach each other; UINT64_MAX: they can. */
uint64_t sim_cut_since(uint32_t a, uint32_t b);
/* The process is declared dead, unless it has been, or has ended. */
void sim_kill(uint32_t process);
/* The process ends at once; the caller may be part of it. */
void sim_end_process(uint32_t process);
/* A number below n, by chance. */
uint64_t sim_draw(uint64_t n);

extern const struct kd_comm_engine sim_comm;
extern const struct kd_boot_launcher sim_boot;
/* The process has died: it sends and answers nothing. */
void sim_comm_kill(uint32_t process);
/* The launcher tells all others that the process is dead. */
void sim_boot_lose(uint32_t process);
/* All ranks have joined the job. */
int sim_boot_joined(void);
/* The process has said that it leaves before the end of the job, and has not reached that. */
int sim_boot_departs(uint32_t process);
/* All tasks are complete: no rank is started again. */
int sim_boot_is_over(void);
/* When the launcher next has something to tell the process; UINT64_MAX: never so far. Wakes one
 * that sleeps until then. */
uint64_t sim_boot_due(uint32_t process);
void sim_comm_tell(uint32_t process, uint64_t at_ns);
/* Frees what the last job has left. */
void sim_comm_reset(void);
void sim_boot_reset(void);

#endif
