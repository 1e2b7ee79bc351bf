/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

void kd_watch_range(struct kd_stack *s, struct kdds_frame *f, char *c, const char *end)
{
	for (; c < end; c += kd_closure_at(c)->bytes) {
		kd_span_pass(s, f, c, ((struct kd_span_closure *)kd_span_at(s, c))->length);
		if (kd_unlikely(kd_observe.dot))
			kd_dot_pass(s, f, c);
	}
}

void kd_watch_turn(struct kd_worker *w, enum kd_phase phase)
{
	uint64_t now = kd_clock_ticks();

	if (phase == w->phase)
		return;
	kd_store_relaxed(&w->phases[w->phase], w->phases[w->phase] + (now - w->phase_since));
	if (w->phase == KD_PHASE_RUN)
		w->idle_begun = now;
	else if (phase == KD_PHASE_RUN)
		kd_trace_add(w->ring, KD_EVENT_IDLE, w->idle_begun, now, 0, 0, 0);
	w->phase = phase;
	w->phase_since = now;
}
