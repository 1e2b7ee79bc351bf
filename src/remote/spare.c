/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/spare.h"

#include "base/env.h"
#include "base/os.h"
#include "core/topo.h"

#define RESERVE_SHARE 10   /* of the memory: available to others all the same */
#define LOOK_NS 100000000u /* between two looks: they read files, 30 us each */

int kd_spare_holds(struct kd_spare *s, uint64_t bytes)
{
	uint64_t now;

	if (bytes <= kd_env.cache)
		return 1;
	if (!s || !s->grows)
		return 0;
	now = kd_os_now_ns();
	if (now >= s->look_ns) {
		s->look_ns = now + LOOK_NS;
		s->is_there = kd_topo_available() > kd_topo_memory() / RESERVE_SHARE;
	}
	return s->is_there;
}
