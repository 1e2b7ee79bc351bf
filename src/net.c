/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "net.h"

#include <errno.h>
#include <stdlib.h>

#include "atomic.h"
#include "boot.h"
#include "comm.h"
#include "env.h"
#include "gdata.h"
#include "image.h"
#include "import.h"
#include "kdds.h"
#include "log.h"
#include "mac.h"
#include "observe.h"
#include "os.h"
#include "peer.h"
#include "rest.h"
#include "rsteal.h"
#include "topo.h"

#define SLEEP_NS 1000000000u
#define PATIENCE_S 30u  /* with a rank that cannot be reached: a switch takes that long to start */
#define OTHER_FILES 320 /* of the program, the library, strangers; a rank has two at most */

struct kd_net kd_net = {.size = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_t thread;
static int leaving, stop; /* the launcher's descriptor is not ours any more; the thread is to end */
/*
 * While idle workers poll, the thread leaves messages to them: it sleeps on, blind, lest each message wake it in vain. The last
 * poller that finds work, or falls asleep, wakes it. Dekker: it is blind, then looks for pollers; they go, then look at blind.
 */
static uint32_t pollers, blind;
static uint64_t sleeps_until; /* the thread does, at most; under the lock */

/* What there is to do besides messages. Returns when there will be more. */
static uint64_t work(uint64_t now)
{
	uint64_t due = kd_rsteal_tick(now);

	if (kd_load(&kd_net.hungry))
		due = kd_min(due, kd_import_ask(now));
	return kd_min(due, kd_peer_tick(now));
}

static void *serve(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "kdds net");
	kd_os_be_prompt();
	pthread_mutex_lock(&kd_net.lock);
	while (!stop) {
		int events = kd_comm_progress();
		uint64_t now = kd_os_now_ns(), due = work(now);

		if (events || due <= now)
			continue;
		sleeps_until = kd_min(due, now + SLEEP_NS);
		kd_store(&blind, 1);
		if (!kd_load(&pollers))
			kd_store(&blind, 0);
		if (kd_comm_wait(&kd_net.lock, leaving ? -1 : kd_boot.fd, sleeps_until - now, !kd_load_relaxed(&blind)) && !leaving &&
		    kd_boot_event())
			_Exit(1); /* all has been said */
		kd_store(&blind, 0);
		sleeps_until = 0;
	}
	pthread_mutex_unlock(&kd_net.lock);
	return NULL;
}

/* Whoever waits for that rank would do so for ever. */
static void unreached(uint32_t rank, const char *address, const char *why)
{
	kd_die("rank %u has not reached rank %u at %s for %u s: %s; open these ports between the "
	       "hosts (KDDS_PORTS), or choose another network (KDDS_ADDRESS)",
	       kd_net.rank, rank, address, PATIENCE_S, why);
}

static int publish_card(void)
{
	static const struct kd_comm_events events = {kd_peer_receive, unreached};
	struct kd_card card = {.build = kd_boot.build, .cpus = kd_topo_mask()};
	size_t size = sizeof(card.address);
	struct kd_comm_config config = {.provider = kd_env.provider,
					.listen = kd_env.address,
					.ports = kd_env.ports,
					.local = kd_boot.local_size == kd_boot.size,
					.rank = kd_net.rank,
					.size = kd_net.size,
					.secret = kd_boot.secret,
					.patience_ns = PATIENCE_S * 1000000000ull,
					.events = &events};
	int error = kd_comm_open(&config, card.address, &size);

	return error ? error : kd_boot_put(KD_CARD, &card, KD_CARD_BYTES + size);
}

static int get_card(uint32_t rank, struct kd_card *card)
{
	size_t size = sizeof(*card);
	int error = kd_boot_get(rank, KD_CARD, card, &size);

	if (!error && size < KD_CARD_BYTES)
		error = -ENOENT;
	if (error == -ENOENT || error == -EMSGSIZE)
		kd_error("the launcher has lost what rank %u has published", rank);
	return error;
}

/* All ranks must run the same build: they name their functions to each other. */
static int compare_builds(void)
{
	struct kd_card root;
	int error = get_card(0, &root);

	if (error || root.build == kd_boot.build)
		return error;
	kd_error("rank %u runs another build of the program or of libkdds than rank 0: install the same files on every host",
		 kd_net.rank);
	return -EINVAL;
}

/* Launchers bind their processes or do not. Where neighbours on one host have the same CPUs, each takes its share. */
static int divide_cpus(void)
{
	uint32_t neighbour = kd_boot.local_rank ? kd_boot.rank - 1 : kd_boot.rank + 1;
	struct kd_card theirs;
	int error;

	if (kd_boot.local_size < 2 || neighbour >= kd_boot.size)
		return 0;
	error = get_card(neighbour, &theirs);
	if (!error && theirs.cpus == kd_topo_mask())
		kd_topo_divide((int)kd_boot.local_rank, (int)kd_boot.local_size);
	return error;
}

static int join_job(void)
{
	int error = kd_peer_start(kd_net.rank, kd_net.size, kd_boot.secret);

	if (!error)
		error = kd_mac_start(kd_net.rank, kd_boot.secret);
	kd_os_allow_files(2 * kd_net.size + OTHER_FILES);
	if (!error)
		error = publish_card();
	if (!error)
		error = kd_boot_fence(1);
	if (!error)
		error = compare_builds();
	if (!error)
		error = divide_cpus();
	return error;
}

int kd_net_start(void)
{
	int error = kd_image_init();

	if (error)
		return error;
	kd_boot.build = kd_image_build() ^ KD_LAYOUT;
	error = kd_boot_start();
	if (error)
		return error;
	kd_net.rank = kd_boot.rank;
	kd_net.size = kd_boot.size;
	if (kd_net.size == 1)
		return 0;
	error = join_job();
	if (error)
		return error;
	kd_net.worker = (struct kd_worker){.id = -1, .place = -1, .random = (kd_net.rank + 1) * 2654435769u};
	leaving = stop = 0;
	kd_rsteal_start();
	kd_net.on = 1;
	return 0;
}

int kd_net_run(void)
{
	int error = kd_net.on ? pthread_create(&thread, NULL, serve, NULL) : 0;

	if (error)
		kd_error("cannot start the communication thread: %s; raise the limit (ulimit -u)", kd_errno_text(error));
	return -error;
}

void kd_net_end(void)
{
	if (!kd_net.on)
		return;
	pthread_mutex_lock(&kd_net.lock);
	if (!kd_net.rank)
		kd_rsteal_end();
	leaving = 1;
	kd_peer_leave();
	pthread_mutex_unlock(&kd_net.lock);
	kd_comm_wake();
}

void kd_net_stop(void)
{
	if (kd_net.on) {
		/* The thread goes on: END is still to be passed on, and acknowledged. Pollers have ended, some without a word. */
		kd_store(&pollers, 0);
		kd_comm_wake();
		kd_observe_publish();
		if (kd_boot_fence(0))
			_Exit(1);
		kd_observe_gather();
		pthread_mutex_lock(&kd_net.lock);
		stop = 1;
		pthread_mutex_unlock(&kd_net.lock);
		kd_comm_wake();
		pthread_join(thread, NULL);
		kd_rsteal_stop();
		kd_gdata_stop();
		kd_peer_stop();
		kd_comm_close();
		kd_mac_stop();
		kd_net.on = 0;
	}
	kd_boot_stop();
	kd_image_fini();
	kd_net.rank = 0;
	kd_net.size = 1;
}

/* What others than the thread do of its work. It sleeps; if there is something to do before it wakes up, it must know. */
static void tick(uint64_t now)
{
	if (work(now) < sleeps_until)
		kd_comm_wake();
}

void kd_net_help(struct kd_worker *w, int ask)
{
	uint64_t now;

	if (!w->polls && kd_pool.count <= kd_pool.cpus) {
		w->polls = 1;
		kd_fetch_add(&pollers, 1);
	}
	if (pthread_mutex_trylock(&kd_net.lock))
		return;
	kd_comm_progress();
	now = kd_os_now_ns();
	kd_rest_recall(now);
	if (ask)
		kd_import_ask(now);
	tick(now);
	pthread_mutex_unlock(&kd_net.lock);
}

void kd_net_leave(struct kd_worker *w)
{
	w->polls = 0;
	if (kd_fetch_add(&pollers, -1) == 1 && kd_load(&blind))
		kd_comm_wake();
}

void kd_net_poke(void)
{
	if (pthread_mutex_trylock(&kd_net.lock)) {
		kd_comm_wake(); /* whoever has it may have looked already */
		return;
	}
	tick(kd_os_now_ns());
	pthread_mutex_unlock(&kd_net.lock);
}

void kd_net_hunger(int change)
{
	kd_fetch_add(&kd_net.hungry, (uint32_t)change);
	if (change > 0)
		kd_net_poke();
}
