/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* its longjmp refuses another stack */
#include "sim.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "core/worker.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef KD_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_BYTES ((size_t)256 << 10) /* ASan clears more of them slowly */
#define FIBERS 1024
#define CLOCK_NS 20      /* a look at the clock */
#define YIELD_NS 200     /* a yield takes that long, unless the job says otherwise */
#define WAKE_NS 20000    /* until a sleeper runs, at most */
#define SPIN_NS 30
#define NEVER UINT64_MAX
#define RANKS 64
#define PROCESSES (RANKS + 64)
#define CUTS 8
#define ZOMBIE_NS 50000000 /* a rank that is declared dead goes on for that long, at most */

struct sim_fiber {
	ucontext_t context; /* where it begins, and for the sanitizers where it goes on */
	jmp_buf jump;       /* where it goes on */
	int begun;
	char *stack;
	void *(*run)(void *arg);
	void *arg;
	uint32_t rank, process;
	struct kd_worker *worker; /* kd_self_worker, while others run */
	uint64_t wake_ns;         /* when it goes on */
	const uint32_t *word;     /* that it sleeps on; NULL: none */
	struct sim_fiber *joiner; /* waits for its end */
	int done;
	void *fake, *tsan;        /* the sanitizers' */
};

struct sim sim;

static struct sim_fiber *fibers[FIBERS], *self;
static unsigned nfibers;
static uint32_t left; /* processes that have not ended */
/* A process that starts a rank: its main is called. */
static struct start {
	void (*main)(uint32_t rank);
	uint32_t rank, process;
} starts[PROCESSES];
static uint8_t dead[PROCESSES], ended[PROCESSES]; /* by process */
static uint32_t last[RANKS]; /* by rank: the process that is, or was last, that rank */
static struct cut {
	uint32_t one, other; /* processes */
	uint64_t since_ns;
} cuts[CUTS];
static unsigned ncuts;
static uint64_t next_death;
static uint64_t state, seed, limit;

uint64_t sim_draw(uint64_t n)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % n;
}

kd_noreturn void sim_fail(const char *what)
{
	fprintf(stderr, "sim: seed %" PRIu64 ", %u ranks, at %" PRIu64 " ns: %s\n", seed, sim.ranks,
		sim.now_ns, what);
	for (unsigned i = 0; i < nfibers; i++)
		fprintf(stderr, "sim: fiber %u of rank %u %s\n", i, fibers[i]->rank,
			fibers[i]->done ? "has ended" : fibers[i]->wake_ns == NEVER ?
			"sleeps for ever" : "sleeps");
	exit(1);
}

/* Fibers. */

#ifdef ASAN
static const void *outside_bottom; /* the stack of the thread that has called sim_run */
static size_t outside_size;
#endif

#if defined(ASAN) || defined(KD_TSAN)
static void jump(struct sim_fiber *from, struct sim_fiber *to)
{
	swapcontext(&from->context, &to->context);
}
#else
/* swapcontext would save the signal mask: two system calls, the third part of all time. */
static void jump(struct sim_fiber *from, struct sim_fiber *to)
{
	if (_setjmp(from->jump))
		return;
	if (to->begun)
		_longjmp(to->jump, 1);
	to->begun = 1;
	setcontext(&to->context);
}
#endif

/* From one fiber to another; NULL: no fiber. */
static void change(struct sim_fiber *from, struct sim_fiber *to)
{
	static struct sim_fiber outside = {.begun = 1};
#ifdef ASAN
	static void *outside_fake;
	void **fake = from ? &from->fake : &outside_fake;

	__sanitizer_start_switch_fiber(from && from->done ? NULL : fake,
				       to ? to->stack : outside_bottom,
				       to ? STACK_BYTES : outside_size);
#endif
#ifdef KD_TSAN
	static void *outside_tsan;

	if (!from)
		outside_tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(to ? to->tsan : outside_tsan, 0);
#endif
	jump(from ? from : &outside, to ? to : &outside);
#ifdef ASAN
	__sanitizer_finish_switch_fiber(*fake, NULL, NULL);
#endif
}

/* The fiber that goes on first; of several, one by chance. */
static unsigned first(void)
{
	unsigned best = 0, ties = 0;
	uint64_t wake = NEVER;

	for (unsigned i = 0; i < nfibers; i++)
		if (fibers[i]->wake_ns < wake) {
			wake = fibers[i]->wake_ns;
			best = i;
			ties = 1;
		} else if (fibers[i]->wake_ns == wake && !sim_draw(++ties)) {
			best = i;
		}
	if (wake == NEVER)
		sim_fail("nobody can go on");
	return best;
}

/* The calling fiber, or none yet, gives way to the one that goes on first; to none if all ranks
 * have ended. */
static void give_way(void)
{
	struct sim_fiber *from = self;
	unsigned i;

	if (!left) {
		self = NULL;
		change(from, NULL);
		return;
	}
	i = first();
	sim.now_ns = kd_max(sim.now_ns, fibers[i]->wake_ns);
	if (sim.now_ns > limit)
		sim_fail("the job takes too long");
	sim.hash = (sim.hash ^ i ^ sim.now_ns << 10) * 0x9e3779b97f4a7c15u;
	if (fibers[i] == from)
		return;
	sim.switches++;
	if (from)
		from->worker = kd_self_worker;
	self = fibers[i];
	kd_self_worker = self->worker;
	change(from, self);
}

static void begin(void)
{
#ifdef ASAN
	__sanitizer_finish_switch_fiber(NULL, outside_size ? NULL : &outside_bottom,
					outside_size ? NULL : &outside_size);
#endif
	self->run(self->arg);
	self->done = 1;
	self->wake_ns = NEVER;
	if (self->joiner)
		sim_wake(self->joiner, sim.now_ns);
	give_way();
	abort();
}

static struct sim_fiber *create(uint32_t process, void *(*run)(void *arg), void *arg)
{
	struct sim_fiber *f = calloc(1, sizeof(*f));

	if (!f || nfibers == FIBERS)
		sim_fail("too many fibers");
	f->stack = kd_os_reserve(STACK_BYTES);
	f->run = run;
	f->arg = arg;
	f->rank = starts[process].rank;
	f->process = process;
	f->wake_ns = sim.now_ns + sim_draw(WAKE_NS);
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&f->context, begin, 0);
#ifdef KD_TSAN
	f->tsan = __tsan_create_fiber(0);
#endif
	fibers[nfibers++] = f;
	return f;
}

void sim_begin(uint64_t seed_, uint32_t ranks, const struct sim_faults *faults)
{
	state = seed = seed_;
	sim = (struct sim){.ranks = ranks, .now_ns = 1000000000};
	if (faults)
		sim.faults = *faults;
	if (!sim.faults.yield_ns)
		sim.faults.yield_ns = YIELD_NS;
	if (ranks > RANKS || sim.faults.starts > PROCESSES - RANKS)
		sim_fail("too many ranks");
	memset(dead, 0, sizeof(dead));
	memset(ended, 0, sizeof(ended));
	ncuts = 0;
	next_death = sim.faults.die_at ? sim.faults.die_at : 1 + sim_draw(2 * sim.faults.death_events + 1);
	sim_end();
}

void sim_end(void)
{
	sim_comm_reset();
	sim_boot_reset();
}

/* A process that has left the job before its end ends. */
static void leave(uint32_t process)
{
	dead[process] = 1;
	sim.left++;
	sim_boot_lose(process);
}

static void *start(void *arg)
{
	const struct start *s = arg;

	s->main(s->rank);
	if (sim_boot_departs(s->process))
		leave(s->process);
	ended[s->process] = 1;
	left--;
	return NULL;
}

static struct sim_fiber *create_process(uint32_t rank, void (*main)(uint32_t rank))
{
	uint32_t process = sim.processes++;

	starts[process] = (struct start){main, rank, process};
	last[rank] = process;
	left++;
	return create(process, start, &starts[process]);
}

/* Nothing of the process runs from here on. Does not return if it is the caller's. */
void sim_end_process(uint32_t process)
{
	sim_comm_kill(process);
	if (!ended[process])
		left--;
	ended[process] = 1;
	for (unsigned i = 0; i < nfibers; i++)
		if (fibers[i]->process == process) {
			fibers[i]->done = 1;
			fibers[i]->wake_ns = NEVER;
			fibers[i]->word = NULL;
		}
	if (self && self->process == process)
		give_way();
}

static void *end_zombie(void *arg)
{
	(void)arg;
	sim_work(sim_draw(ZOMBIE_NS));
	sim_end_process(self->process);
	return NULL;
}

/* The rank has no process, and gets one. */
static void start_again(uint32_t rank)
{
	struct sim_fiber *f;

	if (sim.processes - sim.ranks >= sim.faults.starts || sim_boot_is_over())
		return;
	f = create_process(rank, starts[rank].main);
	f->wake_ns += sim_draw(sim.faults.start_ns + 1);
}

/* An absent rank, or one that was not started again when it died. */
static void start_absent(void)
{
	uint32_t rank = (uint32_t)sim_draw(sim.ranks);

	for (uint32_t i = 0; i < sim.ranks && !dead[last[rank]]; i++)
		rank = (rank + 1) % sim.ranks;
	if (dead[last[rank]])
		start_again(rank);
}

static int may_die(uint32_t rank)
{
	return rank && !dead[last[rank]] && !ended[last[rank]];
}

static void cut_off(uint32_t process)
{
	uint32_t rank = (uint32_t)sim_draw(sim.ranks);

	if (ncuts < CUTS && last[rank] != process)
		cuts[ncuts++] = (struct cut){process, last[rank], sim.now_ns};
}

uint64_t sim_cut_since(uint32_t a, uint32_t b)
{
	for (unsigned i = 0; i < ncuts; i++)
		if ((cuts[i].one == a && cuts[i].other == b) ||
		    (cuts[i].one == b && cuts[i].other == a))
			return cuts[i].since_ns;
	return UINT64_MAX;
}

void sim_kill(uint32_t process)
{
	uint32_t rank = starts[process].rank;

	if (dead[process] || ended[process])
		return;
	dead[process] = 1;
	sim.deaths++;
	sim.hash = (sim.hash ^ rank) * 0x9e3779b97f4a7c15u;
	sim_boot_lose(process);
	start_again(rank);
	if (sim_draw(4))
		sim_end_process(process);
	else
		create(process, end_zombie, NULL);
}

static void kill_one(void)
{
	uint32_t rank = 1 + (uint32_t)sim_draw(sim.ranks - 1), process;

	if (sim.faults.victim && !sim.deaths)
		rank = sim.faults.victim;
	for (uint32_t i = 0; i < sim.ranks && !may_die(rank); i++)
		rank = (rank + 1) % sim.ranks;
	if (!may_die(rank))
		return;
	process = last[rank];
	if (sim_draw(100) < sim.faults.leaves) {
		sim.faults.leave(process);
		return;
	}
	if (sim.faults.cuts && sim_draw(100) < sim.faults.cuts)
		cut_off(process);
	else
		sim_kill(process);
}

void sim_event(void)
{
	sim.events++;
	if (sim.events < next_death || !sim_boot_joined() ||
	    (sim.deaths >= sim.faults.deaths && !sim.faults.absent))
		return;
	next_death = sim.events + 1 + sim_draw(2 * sim.faults.death_events + 1);
	if (sim.faults.absent && sim_draw(2))
		start_absent();
	else if (sim.deaths < sim.faults.deaths)
		kill_one();
}

int sim_dead(uint32_t process)
{
	return dead[process];
}

uint32_t sim_rank_of(uint32_t process)
{
	return starts[process].rank;
}

void sim_run(void (*main)(uint32_t rank), uint64_t limit_ns)
{
	limit = limit_ns;
	left = 0;
	for (uint32_t r = 0; r < sim.ranks; r++)
		if (r < sim.ranks - sim.faults.absent) {
			create_process(r, main);
		} else {
			starts[sim.processes] = (struct start){main, r, sim.processes};
			last[r] = sim.processes++;
			dead[r] = ended[r] = 1;
		}
	give_way();
	kd_self_worker = NULL;
	for (; nfibers; nfibers--) {
		struct sim_fiber *f = fibers[nfibers - 1];

		if (!f->done && !dead[f->process])
			sim_fail("a thread of the library is left");
#ifdef KD_TSAN
		__tsan_destroy_fiber(f->tsan);
#endif
		kd_os_release(f->stack, STACK_BYTES);
		free(f);
	}
}

struct sim_fiber *sim_self(void)
{
	return self;
}

uint32_t sim_rank(void)
{
	return self->rank;
}

uint32_t sim_process(void)
{
	return self->process;
}

void sim_sleep(uint64_t until)
{
	self->wake_ns = until;
	give_way();
}

void sim_wake(struct sim_fiber *f, uint64_t at)
{
	if (!f->done)
		f->wake_ns = kd_min(f->wake_ns, at);
}

void sim_work(uint64_t ns)
{
	sim_sleep(sim.now_ns + ns);
}

/* In place of os_thread.c. */

int kd_os_thread_start(pthread_t *t, const char *name, void *(*run)(void *arg), void *arg)
{
	(void)name;
	*t = (pthread_t)(uintptr_t)create(self->process, run, arg);
	return 0;
}

void kd_os_thread_join(pthread_t t)
{
	struct sim_fiber *f = (struct sim_fiber *)(uintptr_t)t;

	f->joiner = self;
	while (!f->done)
		sim_sleep(NEVER);
}

char *kd_os_c_stack(size_t *size_p)
{
	*size_p = STACK_BYTES;
	return self->stack;
}

kd_noreturn void kd_os_exit(int status)
{
	if (status)
		sim_fail("a rank has ended with an error");
	if (sim_boot_departs(self->process))
		leave(self->process);
	sim_end_process(self->process);
	abort();
}

void kd_os_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	if (kd_load(word) != expected)
		return;
	self->word = word;
	sim_sleep(sim.now_ns + timeout_ns);
	self->word = NULL;
}

void kd_os_wake(uint32_t *word, int n)
{
	for (unsigned i = 0; i < nfibers && n > 0; i++)
		if (fibers[i]->word == word) {
			fibers[i]->word = NULL;
			sim_wake(fibers[i], sim.now_ns + sim_draw(WAKE_NS));
			n--;
		}
}

void kd_os_yield(void)
{
	sim_work(sim.faults.yield_ns + sim_draw(4 * sim.faults.yield_ns));
}

void kd_os_spin(unsigned n)
{
	sim_work(n * (uint64_t)SPIN_NS);
}

void kd_os_be_prompt(void) {}

uint64_t kd_os_now_ns(void)
{
	return sim.now_ns += CLOCK_NS;
}

uint64_t kd_os_random(void)
{
	return sim_draw(UINT64_MAX);
}
