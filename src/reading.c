/* SPDX-License-Identifier: BSD-3-Clause */
#include "reading.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "env.h"
#include "log.h"
#include "net.h"
#include "os.h"
#include "peer.h"
#include "rsteal.h"

#define RETRY_NS 10000000u /* after a read that failed; doubled each time. The owner may be dead: the launcher, which knows, is */
#define TRIES 11           /* given 20 s to say so before we do */

static struct kd_reading *failed;
static struct kd_reading *asking, **last = &asking; /* in the order of their numbers */

static void try_later(struct kd_reading *g, int error)
{
	if (g->tries == TRIES && error == -EBADMSG)
		kd_die("rank %u has read %llu bytes from rank %u, %d times, and they were not what "
		       "rank %u has: somebody alters them on the network, or memory is bad",
		       kd_net.rank, (unsigned long long)g->from.bytes, g->rank, TRIES + 1, g->rank);
	if (g->tries == TRIES)
		kd_die("rank %u cannot read %llu bytes from rank %u: %s", kd_net.rank, (unsigned long long)g->from.bytes, g->rank,
		       kd_errno_text(-error));
	g->due_ns = kd_os_now_ns() + ((uint64_t)RETRY_NS << g->tries++);
	g->later = failed;
	failed = g;
}

/* Takes it off the list. */
static void stop_asking(struct kd_reading *g)
{
	struct kd_reading **link = &asking;

	if (!g->waits)
		return;
	while (*link != g)
		link = &(*link)->later;
	*link = g->later;
	if (!g->later)
		last = link;
	g->waits = 0;
}

static void ask(struct kd_reading *g)
{
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_SIGN, sizeof(struct kd_wire_sign));

	g->job.nonce = kd_mac_draw();
	g->asked.number = g->job.nonce.number;
	*(struct kd_wire_sign *)(m + 1) = (struct kd_wire_sign){g->asked.number, g->from};
	kd_peer_send(g->rank, m, 0);
	g->later = NULL;
	*last = g;
	last = &g->later;
	g->waits = 1;
}

static void compare(struct kd_reading *g)
{
	const uint8_t *tag = g->seal.number ? g->seal.tag : g->asked.tag;

	if (!g->done || g->waits)
		return;
	if (g->known && !memcmp(g->job.tag, tag, KD_MAC_BYTES)) {
		g->arrived(g);
		return;
	}
	kd_rsteal_counts.altered++;
	try_later(g, -EBADMSG);
}

static void tagged(struct kd_mac_job *j)
{
	struct kd_reading *g = (struct kd_reading *)((char *)j - offsetof(struct kd_reading, job));

	g->done = 1;
	compare(g);
}

static void get_done(struct kd_comm_get *get, int error)
{
	struct kd_reading *g = (struct kd_reading *)((char *)get - offsetof(struct kd_reading, get));

	if (error) {
		stop_asking(g);
		try_later(g, error);
		return;
	}
	kd_rsteal_counts.fetched_bytes += g->from.bytes;
	if (!g->seal.number && !kd_env.verify) {
		g->arrived(g);
		return;
	}
	g->job.p = g->to;
	g->job.bytes = g->from.bytes;
	g->job.done = tagged;
	kd_mac_begin(&g->job);
}

void kd_reading_signed(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_signed m;
	struct kd_reading *g = asking;

	if (bytes < sizeof(m))
		return;
	memcpy(&m, body, sizeof(m));
	while (g && (g->rank != from || g->asked.number != m.seal.number))
		g = g->later;
	if (!g)
		return; /* of a read that has failed */
	stop_asking(g);
	g->asked = m.seal;
	g->known = m.known != 0;
	compare(g);
}

void kd_reading_start(struct kd_reading *g)
{
	int error;

	g->done = 0;
	if (g->seal.number) {
		g->job.nonce = (struct kd_mac_nonce){g->rank, g->seal.number};
		g->known = 1;
	} else if (kd_env.verify) {
		ask(g);
	}
	g->get.done = get_done;
	error = kd_comm_get(g->rank, g->to, g->from.addr, g->from.key, g->from.bytes, &g->get);
	if (error) {
		stop_asking(g);
		try_later(g, error);
	}
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
	failed = asking = NULL;
	last = &asking;
}
