/* SPDX-License-Identifier: BSD-3-Clause */
#include "reading.h"

#include <stddef.h>

#include "log.h"
#include "net.h"
#include "os.h"
#include "rsteal.h"

#define RETRY_NS 10000000u /* after a read that failed; doubled each time. The owner may be dead: the launcher, which knows, is */
#define TRIES 11           /* given 20 s to say so before we do */

static struct kd_reading *failed;

static void try_later(struct kd_reading *g, int error)
{
	if (g->tries == TRIES)
		kd_die("rank %u cannot read %llu bytes from rank %u: %s", kd_net.rank, (unsigned long long)g->from.bytes, g->rank,
		       kd_errno_text(-error));
	g->due_ns = kd_os_now_ns() + ((uint64_t)RETRY_NS << g->tries++);
	g->later = failed;
	failed = g;
}

static void get_done(struct kd_comm_get *get, int error)
{
	struct kd_reading *g = (struct kd_reading *)((char *)get - offsetof(struct kd_reading, get));

	if (error) {
		try_later(g, error);
		return;
	}
	kd_rsteal_counts.fetched_bytes += g->from.bytes;
	g->arrived(g);
}

void kd_reading_start(struct kd_reading *g)
{
	int error;

	g->get.done = get_done;
	error = kd_comm_get(g->rank, g->to, g->from.addr, g->from.key, g->from.bytes, &g->get);
	if (error)
		try_later(g, error);
}

uint64_t kd_reading_retry(uint64_t now)
{
	struct kd_reading *g = failed;
	uint64_t due = UINT64_MAX;

	failed = NULL;
	while (g) {
		struct kd_reading *next = g->later;

		if (now >= g->due_ns) {
			kd_reading_start(g);
		} else {
			g->later = failed;
			failed = g;
		}
		g = next;
	}
	for (g = failed; g; g = g->later)
		due = kd_min(due, g->due_ns);
	return due;
}

void kd_reading_stop(void)
{
	failed = NULL;
}
