/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "core/worker.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "core/watch.h"

struct kd_watch kd_watch;
__thread struct kd_worker *kd_self_worker __attribute__((tls_model("initial-exec")));

struct kd_stack *kd_worker_stack(struct kd_worker *w)
{
	struct kd_stack *s = w->free;

	if (s) {
		w->free = s->link;
		return s;
	}
	s = kd_stack_create(w);
	s->gone = w->pool->gone;
	s->next = w->stacks;
	if (!w->pool->membarrier) { /* owners always fence */
		s->flags = KD_SHARED;
		s->ack = 1;
	}
	kd_store_release(&w->stacks, s);
	return s;
}

void kd_worker_release(struct kd_worker *w, struct kd_stack *s)
{
	s->link = w->free;
	w->free = s;
}

#define C_RESERVE_BYTES 65536

void kd_worker_measure(struct kd_worker *w)
{
	w->c_stack = kd_os_c_stack(&w->c_size);
	w->c_reserve = kd_min(w->c_size / 8, (size_t)C_RESERVE_BYTES);
}

#define SIGNAL_BYTES 16384 /* for a handler, and the kernel's frame in addition */

/* Handlers of the program that use one of their own, or none, stay as they are. */
void kd_worker_signals(struct kd_worker *w)
{
	long frame = sysconf(_SC_MINSIGSTKSZ);
	stack_t s = {.ss_size = SIGNAL_BYTES + (frame > 0 ? (size_t)frame : 0)}, before;

	if (sigaltstack(NULL, &before) || !(before.ss_flags & SS_DISABLE))
		return;
	s.ss_sp = w->signals = malloc(s.ss_size);
	if (s.ss_sp)
		sigaltstack(&s, NULL);
}

void kd_worker_no_signals(struct kd_worker *w)
{
	stack_t none = {.ss_flags = SS_DISABLE};

	if (!w->signals)
		return;
	sigaltstack(&none, NULL);
	free(w->signals);
	w->signals = NULL;
}

#define CALL_BYTES (512u << 10) /* of the C stack, for bodies that are called by other bodies */

void kd_worker_set_floor(struct kd_worker *w, struct kd_stack *s)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), low = (uintptr_t)w->c_stack;
	size_t size = w->c_size;

	w->calls.floor = (char *)(here - kd_min(CALL_BYTES, (here - low) / 4));
	if (kd_watch.tasks || here - low >= size || here - low < size / 4)
		s->floor = KD_FLOOR_PUSH; /* observers see each task; or the C stack is not known */
	else
		s->floor = kd_watch.calls ? (char *)((uintptr_t)&w->calls + KD_FLOOR_COUNTS) :
					    w->calls.floor;
}

void kd_worker_full(struct kd_worker *w)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	kd_worker_measure(w); /* main's may have grown meanwhile */
	if (here - (uintptr_t)w->c_stack < w->c_reserve)
		kd_die("the C stack of worker %d is full of bodies that wait in kdds_sync for one "
		       "another: set a larger limit (ulimit -s KIB), or let a further task read "
		       "what the children write instead of waiting", w->id);
}
