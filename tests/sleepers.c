/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that when results from another rank arrive that a parked stack is waiting for, and all
 * workers sleep, the worker that is woken is one that can continue the stack, not one that waits in
 * a body. Run it under kddsrun with two ranks of three workers each. The shortest time of several
 * tries counts: if no worker is woken, one of them sleeps out its 256 ms.
 */
#include <kdds.h>
#include <stdio.h>
#include <time.h>

#define TRIES 20
#define MOST_NS 100000000

static int waiters[3]; /* of one try: the workers that wait in a body */
static long long least = -1;

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pass(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

KDDS_TASK(elsewhere, WRITE(long long, end), VALUE(long, ms))
{
	pass(ms);
	**end = now_ns();
}

KDDS_TASK(follow, READ(long long, end), VALUE(int, worker))
{
	long long ns = now_ns() - **end;

	/* The two workers that would be woken before this one wait in bodies. */
	if (worker == 2 && __atomic_load_n(&waiters[0], __ATOMIC_RELAXED) &&
	    __atomic_load_n(&waiters[1], __ATOMIC_RELAXED) && (least < 0 || ns < least))
		least = ns;
}

/* Until a thief of the other rank has taken the child. */
#define GIVEN_MS 80

KDDS_TASK(stay, VALUE(int, dummy))
{
	KDDS_DATA(long long, end);

	(void)dummy;
	__atomic_store_n(&waiters[kdds_worker()], 1, __ATOMIC_RELAXED);
	kdds_spawn_with(KDDS_PRIORITY_HIGH, elsewhere, end, 600); /* a closure: not called here */
	pass(GIVEN_MS);
	kdds_sync();
}

KDDS_TASK(set_aside, VALUE(int, dummy))
{
	KDDS_DATA(long long, end);

	(void)dummy;
	kdds_spawn_with(KDDS_PRIORITY_HIGH, elsewhere, end, 150);
	kdds_spawn_with(KDDS_LOCAL, follow, end, kdds_worker());
	pass(GIVEN_MS);
}

int main(void)
{
	if (kdds_init())
		return 1;
	for (int i = 0; i < TRIES && (least < 0 || least > MOST_NS); i++) {
		waiters[0] = waiters[1] = waiters[2] = 0;
		kdds_spawn_with(KDDS_LOCAL, stay, 0);
		kdds_spawn_with(KDDS_LOCAL, stay, 0);
		kdds_spawn_with(KDDS_LOCAL, set_aside, 0);
		kdds_sync();
	}
	if (kdds_finalize())
		return 1;
	if (least < 0)
		printf("sleepers: no try had the two that wait in bodies before the third, "
		       "nothing proven\n");
	else
		printf("sleepers: %.1f ms from the result to who has waited for it\n",
		       (double)least * 1e-6);
	return least > MOST_NS;
}
