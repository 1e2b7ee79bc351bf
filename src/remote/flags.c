/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/flags.h"

#include <string.h>

#include "base/atomic.h"
#include "core/module.h"
#include "kdds.h"
#include "remote/net.h"
#include "remote/peer.h"

static struct kd_wire_flag flag_message(const struct kd_net *net, const struct kdds_flag *f)
{
	return (struct kd_wire_flag){.flag = kd_module_name(f), .epoch = net->epoch};
}

/* Rank 0: it is raised, everywhere. */
static void announce(struct kd_net *net, const struct kdds_flag *f)
{
	struct kd_wire_flag body = flag_message(net, f);

	kd_peer_send_down(net, KD_WIRE_FLAG, &body, sizeof(body));
}

static void ask_root(struct kd_net *net, const struct kdds_flag *f)
{
	struct kd_wire_flag body = flag_message(net, f);
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_FLAG, sizeof(body));

	memcpy(m + 1, &body, sizeof(body));
	kd_peer_send(net, 0, m, 0);
}

/* Raises it on this rank. Returns 0 if it was, or has no name: the tasks that use it stay here, and
 * its memory may be gone before main lowers another flag. */
static int raise_here(struct kd_net *net, struct kdds_flag *f)
{
	if (f->raised)
		return 0;
	kd_store_relaxed(&f->raised, 1);
	if (!kd_module_name(f))
		return 0;
	f->next = net->raised;
	net->raised = f;
	return 1;
}

static void lower_here(struct kd_net *net, struct kdds_flag *f)
{
	struct kdds_flag **p = &net->raised;

	while (*p && *p != f)
		p = &(*p)->next;
	if (*p)
		*p = f->next;
	kd_store_relaxed(&f->raised, 0);
}

void kd_flags_raise(struct kd_remote *r, struct kdds_flag *f)
{
	struct kd_net *net = kd_net_of(r);

	pthread_mutex_lock(&net->lock);
	if (raise_here(net, f) && !net->over) {
		if (net->rank)
			ask_root(net, f);
		else
			announce(net, f);
	}
	pthread_mutex_unlock(&net->lock);
	kd_net_nudge(net);
}

void kd_flags_lower(struct kd_remote *r, struct kdds_flag *f)
{
	struct kd_net *net = kd_net_of(r);
	int announces;

	pthread_mutex_lock(&net->lock);
	lower_here(net, f);
	f->lowered = ++net->epoch;
	announces = net->announces = net->raised != NULL;
	pthread_mutex_unlock(&net->lock);
	if (announces)
		kd_net_nudge(net);
}

void kd_flags_tick(struct kd_net *net)
{
	kd_net_assert_locked(net);
	if (!net->announces || net->over)
		return;
	net->announces = 0;
	for (const struct kdds_flag *f = net->raised; f; f = f->next)
		announce(net, f);
}

void kd_flags_advance(struct kd_net *net, uint64_t epoch)
{
	kd_net_assert_locked(net);
	if (epoch <= net->epoch)
		return;
	net->epoch = epoch;
	while (net->raised)
		lower_here(net, net->raised);
}

/* The flag with that name. A name may lead anywhere in a module. NULL: there is none. */
static struct kdds_flag *find(uint64_t name)
{
	struct kdds_flag *f = (void *)(uintptr_t)kd_module_at(name, sizeof(*f), 0);

	if (!f || (uintptr_t)f % _Alignof(struct kdds_flag) || f->magic != KD_FLAG_MAGIC)
		return NULL;
	return f;
}

void kd_flags_message(struct kd_net *net, const void *body, size_t bytes)
{
	struct kd_wire_flag m;
	struct kdds_flag *f;

	kd_net_assert_locked(net);
	if (bytes < sizeof(m) || net->over)
		return;
	memcpy(&m, body, sizeof(m));
	f = find(m.flag);
	if (!net->rank) {
		if (f && m.epoch >= f->lowered && raise_here(net, f))
			announce(net, f);
		return;
	}
	kd_peer_send_down(net, KD_WIRE_FLAG, &m, sizeof(m));
	kd_flags_advance(net, m.epoch);
	if (f && m.epoch == net->epoch)
		raise_here(net, f);
}
