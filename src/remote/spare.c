/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/spare.h"

#include "base/env.h"
#include "base/os.h"
#include "core/topo.h"

#define RESERVE_SHARE 10   /* of the memory: available to others all the same */
#define LOOK_NS 100000000u /* between two looks, unless much has come: they read files */

int kd_spare_holds(struct kd_spare *s, uint64_t bytes)
{
	uint64_t now, available, reserve;

	if (bytes <= kd_env.cache)
		return 1;
	if (!s->ranks)
		return 0;
	now = kd_os_now_ns();
	if (now >= s->look_ns || (bytes > s->most && !s->is_short)) {
		available = kd_topo_available();
		reserve = kd_topo_memory() / RESERVE_SHARE;
		s->look_ns = now + LOOK_NS;
		s->is_short = available <= reserve;
		/* others on this host grow at the same time */
		s->most = s->is_short ? 0 : bytes + (available - reserve) / (4 * s->ranks);
	}
	return bytes <= s->most;
}
