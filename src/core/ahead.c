/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/ahead.h"

#include "base/env.h"
#include "core/place.h"
#include "core/value.h"
#include "kdds.h"

#define LEAD_MIN 2u
#define LEAD_MAX 64u
#define STEPS 256 /* along the ready list */

void kd_ahead_ask(struct kd_stack *s, int got, int kept)
{
	if (got) {
		s->given = 1;
	} else if (!kept) {
		return;
	} else if (!s->lead || s->given) {
		s->lead = s->lead ? kd_min(2 * s->lead, LEAD_MAX) : LEAD_MIN;
		s->given = 0;
	}
	if (s->lead)
		kd_fetch_or(&s->flags, KD_AHEAD);
}

static uint64_t bytes_of(struct kdds_closure *c)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);

		bytes += v.rows * v.cols * v.size;
	}
	return bytes;
}

int kd_ahead_enough(const struct kd_view *v)
{
	uint32_t at = v->index->ready_end, most = v->stack->lead;
	uint64_t bytes = 0;
	unsigned n = 0;

	for (unsigned i = 0; at && i < STEPS && n < most && bytes <= kd_env.cache; i++) {
		char *c = kd_position_at(v->stack, at);

		if (c > v->head && !kd_place_stays(v->pool, kd_closure_at(c)) &&
		    kd_place_of(v->pool, kd_closure_at(c)) < 0) {
			bytes += bytes_of(kd_closure_at(c));
			n++;
		}
		at = kd_record_of(v, at)->link;
	}
	return n >= most || bytes > kd_env.cache;
}
