/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/comm/comm_tcp.c and src/comm/comm_ofi.c, between processes on this host: messages
 * of every length arrive whole, once and aligned, and those of several senders are not mixed up. A
 * get of any length and alignment returns the right bytes and touches no others, or fails. Nothing
 * is lost when a sender is told to try again. No wake-up is lost, and neither is anything that one
 * thread handles while another sleeps. When peers are killed in the middle of messages and gets,
 * the survivor still works and can close. A failure to open is explained in one line and leaves
 * nothing open. Two engines in one process do not disturb each other.
 *
 * Each case is a process of its own, the hub, with rank 0; its peers are its children. Waits are
 * bounded only by the case's alarm.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "child.h"
#include "comm/comm.h"
#include "comm/direct.h"

#define CASE_SECONDS 120
#define FOREVER_NS 1000000000000u
#define PEERS_MAX 16

static const char *case_name;
static int case_number;

#define check(c) (c ? (void)0 : failed(#c, __LINE__))

static void failed(const char *what, int line)
{
	fprintf(stderr, "%s: %s does not hold at line %d\n", case_name, what, line);
	_exit(1);
}

static uint32_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(x >> 32);
}

static void tell(int fd, const void *p, size_t n)
{
	check(write(fd, p, n) == (ssize_t)n);
}

/* The end of the stream ends this process: the hub has failed and reported it. */
static void hear(int fd, void *p, size_t n)
{
	for (ssize_t got; n; p = (char *)p + got, n -= (size_t)got)
		if ((got = read(fd, p, n)) <= 0)
			_exit(1);
}

/* The hub's view of its peers, which begin at 1. In a peer, [0] is the hub. */
static struct {
	pid_t pid;
	int fd;
} peers[PEERS_MAX];
static size_t address_size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *provider;
static int direct;     /* reads are the kernel's */
static unsigned ended; /* gets outside of progress, of which will_progress has heard */
static struct kd_comm *comm; /* the engine of this process */
static const uint8_t secret[32] = "the ranks of this test know it";

static int will_progress(void *arg)
{
	(void)arg;
	ended++;
	return 1;
}

static void start_engine(uint32_t rank, void (*message)(void *, const void *, size_t),
			 char address[KD_COMM_ADDRESS_BYTES])
{
	static struct kd_comm_events events;
	const char *listen = getenv("CHECK_COMM_ADDRESS");
	struct kd_comm_config config = {.provider = provider,
					.listen = listen,
					.local = !listen,
					.rank = rank,
					.size = 1000,
					.direct = direct,
					.secret = secret,
					.patience_ns = FOREVER_NS,
					.events = &events};

	events.message = message;
	events.will_progress = will_progress;
	memset(address, 0, KD_COMM_ADDRESS_BYTES);
	check(!kd_comm_open(&config, &comm, address, &address_size));
}

/* A child that runs f(rank) with an engine open and the lock held. */
static void spawn(uint32_t rank, void (*f)(uint32_t rank),
		  void (*message)(void *, const void *, size_t))
{
	char address[KD_COMM_ADDRESS_BYTES], hub[KD_COMM_ADDRESS_BYTES];
	int fds[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	peers[rank].pid = fork();
	check(peers[rank].pid >= 0);
	peers[rank].fd = fds[0];
	if (peers[rank].pid) {
		close(fds[1]);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CASE_SECONDS);
	for (uint32_t i = 1; i <= rank; i++)
		close(peers[i].fd);
	peers[0].fd = fds[1];
	pthread_mutex_lock(&lock);
	start_engine(rank, message, address);
	tell(fds[1], address, sizeof(address));
	hear(fds[1], hub, sizeof(hub));
	check(!kd_comm_connect(comm, 0, hub, address_size));
	f(rank);
	kd_comm_close(comm);
	_exit(0);
}

static uint32_t impostor; /* the hub is told of this peer what another process has as a cookie */

/* The hub's side, called when all children have been started. */
static void gather(uint32_t n, void (*message)(void *, const void *, size_t))
{
	char address[KD_COMM_ADDRESS_BYTES], theirs[KD_COMM_ADDRESS_BYTES];

	pthread_mutex_lock(&lock);
	start_engine(0, message, address);
	for (uint32_t i = 1; i <= n; i++) {
		hear(peers[i].fd, theirs, sizeof(theirs));
		if (i == impostor)
			theirs[address_size - 1] ^= 1;
		check(!kd_comm_connect(comm, i, theirs, address_size));
		tell(peers[i].fd, address, sizeof(address));
	}
}

/* Sleeps unless there was something to do. Returns whether fd, the other side's socket, is
 * readable. */
static int step(int fd)
{
	return kd_comm_progress(comm) ? 0 : kd_comm_wait(comm, &lock, fd, FOREVER_NS);
}

static void send_patiently(uint32_t rank, const void *message, size_t len)
{
	int error;

	while ((error = kd_comm_send(comm, rank, message, len)) == -EAGAIN)
		step(-1);
	check(!error);
}

/* The end of a peer: it serves until the hub tells it to stop. */
static void serve(void)
{
	char stop;

	while (!step(peers[0].fd))
		;
	hear(peers[0].fd, &stop, 1);
}

static void dismiss(uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++) {
		int status;

		tell(peers[i].fd, "", 1);
		check(waitpid(peers[i].pid, &status, 0) == peers[i].pid);
		check(!status);
		close(peers[i].fd);
	}
}

static void no_message(void *arg, const void *message, size_t len)
{
	(void)arg;
	(void)message;
	(void)len;
	check(!"no message is expected");
}

/* Messages */

#define SENDERS 3

static uint8_t arrived[SENDERS + 1][KD_COMM_MESSAGE_BYTES + 1];
static unsigned arrived_n;

static void fill(uint8_t *p, uint32_t rank, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = i ? (uint8_t)mix(((uint64_t)rank << 40) + (len << 20) + i) : (uint8_t)rank;
}

static void sized_message(void *arg, const void *message, size_t len)
{
	static uint8_t expected[KD_COMM_MESSAGE_BYTES];
	uint32_t rank = len ? *(const uint8_t *)message : 0;

	(void)arg;
	check((uintptr_t)message % 8 == 0);
	check(len <= KD_COMM_MESSAGE_BYTES && rank <= SENDERS);
	fill(expected, rank, len);
	check(!len || !memcmp(message, expected, len));
	arrived[rank][len]++;
	arrived_n++;
}

static void send_sizes(uint32_t rank)
{
	static uint8_t message[KD_COMM_MESSAGE_BYTES];

	for (size_t i = 0; i <= KD_COMM_MESSAGE_BYTES; i++) {
		/* short and long ones alternate */
		size_t len = i * 4099 % (KD_COMM_MESSAGE_BYTES + 1);

		fill(message, rank, len);
		send_patiently(0, message, len);
	}
	check(kd_comm_send(comm, 0, message, KD_COMM_MESSAGE_BYTES + 1) == -EMSGSIZE);
	check(kd_comm_send(comm, 7, message, 1) == -ENOTCONN);
	serve();
}

static void messages(void)
{
	for (uint32_t i = 1; i <= SENDERS; i++)
		spawn(i, send_sizes, no_message);
	gather(SENDERS, sized_message);
	while (arrived_n < SENDERS * (KD_COMM_MESSAGE_BYTES + 1))
		step(-1);
	check(arrived[0][0] == SENDERS);
	for (uint32_t i = 1; i <= SENDERS; i++)
		for (size_t len = 1; len <= KD_COMM_MESSAGE_BYTES; len++)
			check(arrived[i][len] == 1);
	dismiss(SENDERS);
	kd_comm_close(comm);
}

/* Gets */

#define REGION_BYTES ((70u << 20) + 12345)
#define MARGIN 64

struct fetch {
	struct kd_comm_get get;
	int ended, error;
	size_t offset, len;
	uint8_t *local;
};

static void fetched(struct kd_comm_get *get, int error)
{
	struct fetch *f = (struct fetch *)get;

	check(!f->ended);
	f->ended = 1;
	f->error = error;
}

/* The bytes of a region, as a function of the offset. */
static uint8_t *make_region(uint32_t seed)
{
	uint8_t *p = malloc(REGION_BYTES);

	check(p != NULL);
	for (size_t i = 0; i < REGION_BYTES; i += 4) {
		uint32_t x = mix(((uint64_t)seed << 40) + i);

		memcpy(p + i, &x, REGION_BYTES - i < 4 ? REGION_BYTES - i : 4);
	}
	return p;
}

static struct kd_comm_region theirs; /* the hub's copy of the peer's region */

static void start_fetch(struct fetch *f, uint32_t rank, size_t offset, size_t len, size_t misalign)
{
	f->get.done = fetched;
	f->ended = 0;
	f->offset = offset;
	f->len = len;
	f->local = malloc(len + 2 * MARGIN + 64);
	check(f->local != NULL);
	memset(f->local, 0xa5, len + 2 * MARGIN + 64);
	f->local += misalign;
	check(!kd_comm_get(comm, rank, f->local + MARGIN, theirs.addr + offset, theirs.key, len,
			   &f->get));
}

static void check_fetch(struct fetch *f, const uint8_t *original, size_t misalign)
{
	check(f->ended && !f->error);
	check(!memcmp(f->local + MARGIN, original + f->offset, f->len));
	for (size_t i = 0; i < MARGIN; i++)
		check(f->local[i] == 0xa5 && f->local[MARGIN + f->len + i] == 0xa5);
	free(f->local - misalign);
}

static void expose_region(uint32_t rank)
{
	uint8_t *p = make_region(rank);
	struct kd_comm_region region, other;
	uint64_t where[2];

	check(!kd_comm_expose(comm, p, REGION_BYTES, &region));
	check(!kd_comm_expose(comm, p, 1, &other)); /* the same memory may be exposed twice */
	check(other.key != region.key);
	kd_comm_hide(comm, &other);
	where[0] = region.addr;
	where[1] = region.key;
	tell(peers[0].fd, where, sizeof(where));
	serve();
	kd_comm_hide(comm, &region);
	free(p);
}

static void hear_region(uint32_t rank)
{
	uint64_t where[2];

	hear(peers[rank].fd, where, sizeof(where));
	theirs.addr = where[0];
	theirs.key = where[1];
}

static void gets(void)
{
	static const size_t lengths[] = {
		0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 65535, 65536,
		262143, 262144, 524287, 524288, 524289, 1000003, 1 << 20, (1 << 20) + 1, 5 << 20,
		16 << 20, 64 << 20, (64 << 20) + 1, 70 << 20, REGION_BYTES,
	};
	uint8_t *original;

	spawn(1, expose_region, no_message);
	gather(1, no_message);
	original = make_region(1);
	hear_region(1);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (size_t odd = 0; odd < 2; odd++) {
			size_t misalign = odd * (i % 16), room = REGION_BYTES - lengths[i];
			struct fetch f;

			start_fetch(&f, 1, odd ? (room < 12345 ? room : 12345) | (room & 1) : 0,
				    lengths[i], misalign);
			check(!f.ended); /* never from within kd_comm_get */
			while (!f.ended)
				step(-1);
			check_fetch(&f, original, misalign);
		}
	free(original);
	dismiss(1);
	kd_comm_close(comm);
}

#define MANY 400

static void many_gets(void)
{
	static struct fetch fetches[MANY];
	uint8_t *original;

	spawn(1, expose_region, no_message);
	gather(1, no_message);
	original = make_region(1);
	hear_region(1);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			uint32_t x = mix((uint64_t)round * MANY + i);
			size_t len = x % 7 ? mix(x) % 3000 : mix(x) % 700000,
			       room = REGION_BYTES - len;

			start_fetch(&fetches[i], 1, mix(x + 1) % room, len, x % 16);
		}
		for (uint32_t i = 0; i < MANY; i++) {
			while (!fetches[i].ended)
				step(-1);
			check_fetch(&fetches[i], original, mix((uint64_t)round * MANY + i) % 16);
		}
	}
	free(original);
	dismiss(1);
	kd_comm_close(comm);
}

/* Whether a get of what peer `rank' exposes ends with the right bytes. */
static void fetch_right(uint32_t rank, size_t len)
{
	uint8_t *original = make_region(rank);
	struct fetch f;

	start_fetch(&f, rank, 17, len, 3);
	while (!f.ended)
		step(-1);
	check_fetch(&f, original, 3);
	free(original);
}

/* Ranks on one host: a peer that has stopped is read as before, memory that it does not have is
 * not, and one that is not the process it should be is read over the network. */
static void one_host(void)
{
	struct kd_comm_region right;
	struct fetch f;

	if (strcmp(provider, "tcp"))
		return;
	for (uint32_t i = 1; i <= 2; i++)
		spawn(i, expose_region, no_message);
	impostor = 2;
	gather(2, no_message);
	check(kd_comm_direct(comm, 1) == direct && !kd_comm_direct(comm, 2));
	check(!kd_comm_direct(comm, 3));
	hear_region(2);
	fetch_right(2, 9 << 20);
	hear_region(1);
	right = theirs;
	if (direct) {
		check(!kill(peers[1].pid, SIGSTOP));
		check(waitpid(peers[1].pid, NULL, WUNTRACED) == peers[1].pid);
	}
	fetch_right(1, 9 << 20);
	kd_comm_progress(comm); /* which bounds what is copied until the next */
	ended = 0;
	fetch_right(1, 5);
	check(ended == (unsigned)direct);
	if (direct) {
		theirs.addr = 4096;
		start_fetch(&f, 1, 0, 100, 0);
		while (!f.ended)
			step(-1);
		check(f.error == -EACCES);
		free(f.local);
		theirs = right;
		fetch_right(1, 5);
		check(!kill(peers[1].pid, SIGCONT));
	}
	dismiss(2);
	start_fetch(&f, 1, 0, 100, 0);
	check(!kd_comm_direct(comm, 1));
	kd_comm_close(comm);
	check(f.ended && f.error);
	free(f.local);
}

static void send_back(void *arg, const void *message, size_t len)
{
	(void)arg;
	check(kd_comm_send(comm, 0, message, len) <= 0);
}

/* A get from memory that is not exposed fails and takes the connection with it. The next connection
 * comes up by itself. */

static unsigned echoes;

static void echo(void *arg, const void *message, size_t len)
{
	(void)arg;
	(void)message;
	check(len == 5);
	echoes++;
}

static void wrong_gets(void)
{
	struct fetch f;

	spawn(1, expose_region, send_back);
	gather(1, echo);
	hear_region(1);
	for (unsigned i = 0; i < 6; i++) {
		struct kd_comm_region right = theirs;

		if (i % 2)
			theirs.key++;
		start_fetch(&f, 1, i % 2 ? 0 : REGION_BYTES - 5, 10, 0);
		while (!f.ended)
			step(-1);
		check(f.error < 0);
		free(f.local);
		theirs = right;
		while (echoes == i) { /* some may be lost with the connection */
			check(kd_comm_send(comm, 1, "hello", 5) <= 0);
			step(-1);
		}
		echoes = i + 1;
	}
	dismiss(1);
	kd_comm_close(comm);
}

/* Callbacks may request more: the end of each get starts the next get and sends a message, and each
 * message is answered. */

#define CHAIN 300

static struct fetch chain;
static uint8_t chain_local[3001];
static unsigned chain_n, chain_answers;

static void chain_done(struct kd_comm_get *get, int error)
{
	uint32_t message = chain_n;

	check(!error);
	if (++chain_n < CHAIN)
		check(!kd_comm_get(comm, 1, chain_local, theirs.addr + chain_n, theirs.key,
				   1 + chain_n * 10, get));
	/* or -EAGAIN, in which case it is lost */
	check(kd_comm_send(comm, 1, &message, sizeof(message)) != -ENOTCONN);
}

static void chain_answer(void *arg, const void *message, size_t len)
{
	(void)arg;
	(void)message;
	check(len == 4);
	chain_answers++;
}

static void callbacks(void)
{
	spawn(1, expose_region, send_back);
	gather(1, chain_answer);
	hear_region(1);
	chain.get.done = chain_done;
	check(!kd_comm_get(comm, 1, chain_local, theirs.addr, theirs.key, 1, &chain.get));
	while (chain_n < CHAIN || !chain_answers) {
		/* all gets may have ended before there was a connection */
		if (chain_n == CHAIN)
			check(kd_comm_send(comm, 1, &chain_n, sizeof(chain_n)) <= 0);
		step(-1);
	}
	dismiss(1);
	kd_comm_close(comm);
}

/* Flooding: the hub does not receive until both senders have been told to wait. */

#define FLOODERS 2
#define FLOOD 20000u /* more than the kernel buffers for two connections */

static uint8_t flood_seen[FLOODERS + 1][20000];
static unsigned flood_n;

static void flood_message(void *arg, const void *message, size_t len)
{
	const uint32_t *m = message;

	(void)arg;
	check(len >= 8 && m[0] >= 1 && m[0] <= FLOODERS && m[1] < FLOOD);
	check(len == 8 + mix(m[1]) % 2000);
	check(!flood_seen[m[0]][m[1]]++);
	flood_n++;
}

static void flood(uint32_t rank)
{
	static uint32_t message[600];
	int told = 0;
	char go;

	/* The hub receives until it is connected, that is, until the first message has arrived. */
	message[0] = rank;
	for (message[1] = 0; message[1] < FLOOD; message[1]++) {
		size_t len = 8 + mix(message[1]) % 2000;
		int error;

		while ((error = kd_comm_send(comm, 0, message, len)) == -EAGAIN) {
			if (message[1] && !told++)
				tell(peers[0].fd, "", 1);
			kd_comm_progress(comm);
		}
		check(!error);
		if (!message[1]) {
			while (!step(peers[0].fd))
				;
			hear(peers[0].fd, &go, 1);
		}
	}
	check(told);
	serve();
}

static void flooding(void)
{
	char c;

	for (uint32_t i = 1; i <= FLOODERS; i++)
		spawn(i, flood, no_message);
	gather(FLOODERS, flood_message);
	while (flood_n < FLOODERS)
		step(-1);
	for (uint32_t i = 1; i <= FLOODERS; i++)
		tell(peers[i].fd, "", 1);
	for (uint32_t i = 1; i <= FLOODERS; i++)
		hear(peers[i].fd, &c, 1);
	check(flood_n == FLOODERS);
	while (flood_n < FLOODERS * FLOOD)
		step(-1);
	dismiss(FLOODERS);
	kd_comm_close(comm);
}

/* Wakes */

static uint32_t asked, answered;

static void *waker(void *arg)
{
	for (uint32_t i = 1; i <= 20000; i++) {
		__atomic_store_n(&asked, i, __ATOMIC_RELEASE);
		kd_comm_wake(comm);
		while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) != i)
			if (mix(i) % 2)
				sched_yield();
	}
	return arg;
}

static void wakes(void)
{
	char address[KD_COMM_ADDRESS_BYTES];
	pthread_t thread;
	int fds[2];

	pthread_mutex_lock(&lock);
	start_engine(0, no_message, address);
	check(!pipe(fds));
	kd_comm_wake(comm);
	kd_comm_wake(comm);
	check(!kd_comm_wait(comm, &lock, fds[0], FOREVER_NS)); /* a wake-up before the wait */
	check(!kd_comm_wait(comm, &lock, fds[0], 1000000));
	check(!kd_comm_wait(comm, &lock, -1, 0));
	tell(fds[1], "", 1);
	for (int both = 0; both < 2; both++) {
		if (both)
			kd_comm_wake(comm);
		while (!kd_comm_wait(comm, &lock, fds[0], FOREVER_NS))
			;
	}
	check(!kd_comm_wait(comm, &lock, -1, 1));
	check(!pthread_create(&thread, NULL, waker, NULL));
	for (uint32_t i = 1; i <= 20000; i++) {
		while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE) != i)
			kd_comm_wait(comm, &lock, -1, FOREVER_NS);
		__atomic_store_n(&answered, i, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
	pthread_mutex_unlock(&lock);
	kd_comm_close(comm);
}

/*
 * One thread sleeps while another polls for a while and leaves. The sleeper finishes whatever the
 * poller leaves undone, in particular a connection that is half established. The peer is a new one
 * each time; either side sends the first message.
 */

#define TRIALS (SANITIZED ? 60u : 200u)
#define CALLS 3

static uint32_t trial;   /* the trial in which the poller helps */
static uint32_t owed;    /* messages owed to the peer of this trial */
static uint32_t answers; /* messages from it */

static void pay(void)
{
	while (owed && !kd_comm_send(comm, trial, &trial, sizeof(trial)))
		owed--;
}

static void call_message(void *arg, const void *message, size_t len)
{
	(void)arg;
	check(len == 4 && *(const uint32_t *)message == trial);
	if (++answers <= CALLS)
		owed++;
}

/* How often the poller polls in that trial. */
static uint32_t visits(uint32_t i)
{
	return mix(i) % 4 ? mix(i + TRIALS) % 300 : mix(i + TRIALS) % 3;
}

static void *poller(void *arg)
{
	for (uint32_t i = 1; i <= TRIALS; i++) {
		while (__atomic_load_n(&trial, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		for (uint32_t n = visits(i); n; n--) {
			pthread_mutex_lock(&lock);
			if (trial == i) {
				pay();
				kd_comm_progress(comm);
				/* what has arrived is owed from now on; the sleeper may not have
				 * seen it */
				pay();
			}
			pthread_mutex_unlock(&lock);
		}
	}
	return arg;
}

static unsigned calls;

static void call_answer(void *arg, const void *message, size_t len)
{
	(void)arg;
	(void)message;
	check(len == 4);
	calls++;
}

static void caller(uint32_t rank)
{
	char address[KD_COMM_ADDRESS_BYTES], hub[KD_COMM_ADDRESS_BYTES];

	(void)rank;
	hear(peers[0].fd, hub, sizeof(hub));
	for (uint32_t i = 1; i <= TRIALS; i++) {
		char go;

		kd_comm_close(comm);
		start_engine(i, call_answer, address);
		check(!kd_comm_connect(comm, 0, hub, address_size));
		tell(peers[0].fd, address, sizeof(address));
		hear(peers[0].fd, &go, 1);
		for (calls = 0; i % 2 && !calls;) /* the hub begins */
			step(-1);
		for (unsigned n = 0; n < CALLS; n++) {
			unsigned seen = calls;

			send_patiently(0, &i, sizeof(i));
			while (calls == seen)
				step(-1);
		}
		tell(peers[0].fd, "", 1);
		hear(peers[0].fd, &go, 1);
	}
	serve();
}

static void sleeper(void)
{
	char address[KD_COMM_ADDRESS_BYTES], c;
	pthread_t thread;

	spawn(1, caller, no_message);
	/* Like gather, except that ranks are trials here. */
	pthread_mutex_lock(&lock);
	start_engine(0, call_message, address);
	hear(peers[1].fd, (char[KD_COMM_ADDRESS_BYTES]){0}, KD_COMM_ADDRESS_BYTES);
	tell(peers[1].fd, address, sizeof(address));
	tell(peers[1].fd, address, sizeof(address));
	check(!pthread_create(&thread, NULL, poller, NULL));
	for (uint32_t i = 1; i <= TRIALS; i++) {
		hear(peers[1].fd, address, sizeof(address));
		check(!kd_comm_connect(comm, i, address, address_size));
		owed = i % 2;
		answers = 0;
		__atomic_store_n(&trial, i, __ATOMIC_RELEASE);
		tell(peers[1].fd, "", 1);
		if (visits(i)) /* the poller tries first and is refused */
			kd_comm_wait(comm, &lock, peers[1].fd, FOREVER_NS);
		do {
			kd_comm_progress(comm);
			pay(); /* after progress, which may have made it possible */
			check(answers <= CALLS);
		} while (!kd_comm_wait(comm, &lock, peers[1].fd, FOREVER_NS));
		hear(peers[1].fd, &c, 1);
		check(answers == CALLS && !owed);
		tell(peers[1].fd, "", 1);
	}
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&lock);
	dismiss(1);
	kd_comm_close(comm);
}

/*
 * Killed peers; the last one lives. Each may have at most CREDITS messages that the hub has not
 * acknowledged. Every user of comm.h needs such a limit: when a connection ends, rxm 1.17 reads on
 * until nothing arrives any more, from anybody.
 */

#define VICTIMS 8
#define CREDITS 64

static uint32_t victim_n[VICTIMS + 2], victim_acknowledged[VICTIMS + 2];

static void victim_message(void *arg, const void *message, size_t len)
{
	uint32_t rank = *(const uint32_t *)message;

	(void)arg;
	check(len >= 12 && rank >= 1 && rank <= VICTIMS + 1);
	victim_n[rank]++;
}

static void acknowledge(void)
{
	for (uint32_t i = 1; i <= VICTIMS; i++)
		if (victim_n[i] - victim_acknowledged[i] >= CREDITS / 4 &&
		    !kd_comm_send(comm, i, &victim_n[i], 4))
			victim_acknowledged[i] = victim_n[i];
}

static uint32_t acknowledged;

static void acknowledgement(void *arg, const void *message, size_t len)
{
	(void)arg;
	if (len == 4)
		acknowledged = *(const uint32_t *)message;
}

/* Sends as much as it may until it is killed. */
static void victim(uint32_t rank)
{
	static uint32_t message[KD_COMM_MESSAGE_BYTES / 4];
	uint8_t *p = make_region(rank);
	struct kd_comm_region region;
	uint64_t where[2];

	check(!kd_comm_expose(comm, p, REGION_BYTES, &region));
	where[0] = region.addr;
	where[1] = region.key;
	tell(peers[0].fd, where, sizeof(where));
	message[0] = rank;
	for (uint32_t sent = 0;; step(-1))
		while (sent - acknowledged < CREDITS &&
		       !kd_comm_send(comm, 0, message,
				     12 + mix(sent) % (KD_COMM_MESSAGE_BYTES - 12)))
			sent++;
}

/* Must return 0 or an error, without blocking for long. */
static void pester(uint32_t rank, uint32_t n)
{
	static uint32_t message[KD_COMM_MESSAGE_BYTES / 4];

	check(kd_comm_send(comm, rank, message, 5 + mix(n) % (KD_COMM_MESSAGE_BYTES - 5)) <= 0);
	acknowledge();
	kd_comm_progress(comm);
}

static void killed(void)
{
	static struct fetch fetches[VICTIMS + 2][4];
	static uint32_t message[KD_COMM_MESSAGE_BYTES / 4];
	uint8_t *original;
	unsigned ended = 0, broken = 0;

	for (uint32_t i = 1; i <= VICTIMS; i++)
		spawn(i, victim, acknowledgement);
	spawn(VICTIMS + 1, expose_region, send_back);
	gather(VICTIMS + 1, victim_message);
	for (uint32_t i = 1; i <= VICTIMS; i++) {
		hear_region(i);
		for (int k = 0; k < 4; k++)
			start_fetch(&fetches[i][k], i, 0, 60 << 20, 0);
		for (uint32_t n = 0, seen = victim_n[i]; victim_n[i] - seen < 200; n++)
			pester(i, n);
		kill(peers[i].pid, SIGKILL);
		check(waitpid(peers[i].pid, NULL, 0) == peers[i].pid);
		for (uint32_t n = 0; n < 2000; n++)
			pester(i, n);
	}
	/* The survivor is served as before. */
	hear_region(VICTIMS + 1);
	original = make_region(VICTIMS + 1);
	start_fetch(&fetches[VICTIMS + 1][0], VICTIMS + 1, 4711, 20 << 20, 3);
	message[0] = VICTIMS + 1;
	for (unsigned i = 1; i <= 500; i++) {
		send_patiently(VICTIMS + 1, message, 12 + mix(i) % (KD_COMM_MESSAGE_BYTES - 12));
		while (victim_n[VICTIMS + 1] < i)
			step(-1);
	}
	while (!fetches[VICTIMS + 1][0].ended)
		step(-1);
	check_fetch(&fetches[VICTIMS + 1][0], original, 3);
	free(original);
	tell(peers[VICTIMS + 1].fd, "", 1);
	check(waitpid(peers[VICTIMS + 1].pid, NULL, 0) == peers[VICTIMS + 1].pid);
	/* Gets under way have failed. Those in a queue may stay there until we close. */
	kd_comm_close(comm);
	for (uint32_t i = 1; i <= VICTIMS; i++)
		for (int k = 0; k < 4; k++) {
			ended += (unsigned)fetches[i][k].ended;
			broken += !!fetches[i][k].error;
			free(fetches[i][k].local);
		}
	check(ended == 4 * VICTIMS); /* each ended once: see fetched */
	check(broken > 0 || direct); /* a copy may be complete before */
}

/* A peer that has stopped: what has been requested from it ends when the engine closes. */
static void interrupted(void)
{
	static struct fetch f;

	spawn(1, expose_region, no_message);
	gather(1, no_message);
	hear_region(1);
	start_fetch(&f, 1, 0, 1, 0); /* there is a connection */
	while (!f.ended)
		step(-1);
	free(f.local);
	kill(peers[1].pid, SIGSTOP);
	start_fetch(&f, 1, 0, REGION_BYTES, 0);
	kd_comm_progress(comm);
	check(!f.ended);
	kd_comm_close(comm);
	check(f.ended && f.error);
	free(f.local);
	kill(peers[1].pid, SIGKILL);
	check(waitpid(peers[1].pid, NULL, 0) == peers[1].pid);
}

/* Changes an address to a port on which nobody listens, and nobody else can while this process
 * lives. A port that is merely free may become another test's, or a connection's own. */
static void silence(char address[KD_COMM_ADDRESS_BYTES])
{
	struct sockaddr *at = (struct sockaddr *)address;
	socklen_t len = (socklen_t)address_size;
	int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	((struct sockaddr_in *)at)->sin_port = 0; /* where IPv6 has it too */
	check(fd >= 0 && !bind(fd, at, len) && !getsockname(fd, at, &len));
}

static void absent(void)
{
	char address[KD_COMM_ADDRESS_BYTES], gone[KD_COMM_ADDRESS_BYTES];
	struct fetch f;
	uint8_t byte;

	pthread_mutex_lock(&lock);
	start_engine(0, no_message, address);
	memcpy(gone, address, sizeof(gone));
	silence(gone);
	check(kd_comm_connect(comm, 3, gone, address_size - 1) == -EINVAL);
	check(!kd_comm_connect(comm, 3, gone, address_size));
	check(kd_comm_connect(comm, 3, gone, address_size) == -EISCONN);
	memset(&f, 0, sizeof(f));
	f.get.done = fetched;
	check(!kd_comm_get(comm, 3, &byte, 0, 1, 1, &f.get));
	check(kd_comm_get(comm, 4, &byte, 0, 1, 1, &f.get) == -ENOTCONN);
	for (int i = 0; i < 100; i++) {
		check(kd_comm_send(comm, 3, "hello", 5) == -EAGAIN);
		kd_comm_progress(comm);
		/* returns when it is time to try again */
		kd_comm_wait(comm, &lock, -1, FOREVER_NS);
	}
	check(!f.ended);
	kd_comm_close(comm);
	check(f.ended && f.error == -ECANCELED);
}

static char unreached_why[300];

static void unreached(void *arg, uint32_t rank, const char *address, const char *why)
{
	(void)arg;
	snprintf(unreached_why, sizeof(unreached_why), "%u %s %s", rank, address, why);
}

/* Only TCP reports the reason. */
static void given_up(void)
{
	static const struct kd_comm_events events = {.message = no_message, .unreached = unreached};
	struct kd_comm_config config = {.local = 1,
					.size = 2,
					.secret = secret,
					.patience_ns = 300000000,
					.events = &events};
	char address[KD_COMM_ADDRESS_BYTES], gone[KD_COMM_ADDRESS_BYTES], expected[300];
	struct timespec begin, end;

	if (strcmp(provider, "tcp"))
		return;
	pthread_mutex_lock(&lock);
	check(!kd_comm_open(&config, &comm, address, &address_size));
	memcpy(gone, address, sizeof(gone));
	silence(gone);
	check(!kd_comm_connect(comm, 1, gone, address_size));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (!*unreached_why) {
		check(kd_comm_send(comm, 1, "hello", 5) == -EAGAIN);
		step(-1);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	check((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec >= 300000000);
	snprintf(expected, sizeof(expected), "1 127.0.0.1:%u Connection refused",
		 ntohs(((struct sockaddr_in *)gone)->sin_port));
	check(!strcmp(unreached_why, expected));
	kd_comm_close(comm);
}

/* In a process of its own, which has a copy of our engine but none of its own yet. */
static void taken_port(void *range)
{
	static const struct kd_comm_events events = {.message = no_message};
	struct kd_comm_config config = {
		.ports = range, .local = 1, .size = 2, .secret = secret, .events = &events};
	char address[KD_COMM_ADDRESS_BYTES];
	size_t size;

	_exit(kd_comm_open(&config, &comm, address, &size) != -EADDRINUSE);
}

/* Takes the ports of a range until none is left. */
static void ports(void)
{
	static const struct kd_comm_events events = {.message = no_message};
	struct kd_comm_config config = {.local = 1, .size = 2, .secret = secret, .events = &events};
	char address[KD_COMM_ADDRESS_BYTES], range[32];
	struct child c;
	unsigned port;

	if (strcmp(provider, "tcp"))
		return;
	pthread_mutex_lock(&lock);
	check(!kd_comm_open(&config, &comm, address, &address_size));
	kd_comm_close(comm);
	port = ntohs(((struct sockaddr_in *)address)->sin_port);
	snprintf(range, sizeof(range), "%u-%u", port - 3, port);
	config.ports = range;
	check(!kd_comm_open(&config, &comm, address, &address_size));
	check(ntohs(((struct sockaddr_in *)address)->sin_port) - (port - 3) < 4);
	snprintf(range, sizeof(range), "%u", ntohs(((struct sockaddr_in *)address)->sin_port));
	child_run(&c, taken_port, range, CASE_SECONDS);
	check(!c.status && one_line(c.err, "no port of KDDS_PORTS=") && strstr(c.err, range));
	kd_comm_close(comm);
}

/* Without descriptors neither side can establish a connection. Once descriptors are available
 * again, both can. */

static void call_first(uint32_t rank)
{
	char go;

	hear(peers[0].fd, &go, 1);
	send_patiently(0, &rank, sizeof(rank));
	serve();
}

static unsigned full_messages;

static void full_message(void *arg, const void *message, size_t len)
{
	(void)arg;
	(void)message;
	full_messages += len == 4;
}

static void full(void)
{
	struct rlimit limit, none;
	uint32_t hello = 0;
	int fd;

	if (strcmp(provider, "tcp"))
		return;
	spawn(1, call_first, no_message);
	spawn(2, call_first, no_message);
	gather(2, full_message);
	fd = dup(0);
	check(fd >= 0 && !close(fd) && !getrlimit(RLIMIT_NOFILE, &limit));
	none = (struct rlimit){(rlim_t)fd, limit.rlim_max};
	check(!setrlimit(RLIMIT_NOFILE, &none));
	tell(peers[2].fd, "", 1);
	for (int i = 0; i < 30; i++) {
		check(kd_comm_send(comm, 1, &hello, sizeof(hello)) == -EAGAIN);
		kd_comm_progress(comm);
		kd_comm_wait(comm, &lock, -1, 10000000);
	}
	check(!full_messages);
	check(!setrlimit(RLIMIT_NOFILE, &limit));
	tell(peers[1].fd, "", 1);
	while (full_messages < 2)
		step(-1);
	dismiss(2);
	kd_comm_close(comm);
}

/*
 * Two engines in this process, each the other's peer: first one thread sees to both in turn, later
 * a thread to each, under a lock of its own. Neither knows the memory or the messages of the other.
 */

#define TWIN_MESSAGES 500u
#define TWIN_BYTES ((3u << 20) + 5)

static struct twin {
	pthread_mutex_t lock;
	struct kd_comm *comm;
	uint32_t rank, sent, arrived;
	uint8_t seen[KD_COMM_MESSAGE_BYTES + 1], *memory;
	struct kd_comm_region region;
	struct fetch fetch;
} twins[2];
static unsigned twins_ready;

static size_t twin_bytes(uint32_t i)
{
	return 1 + (size_t)i * 4099 % KD_COMM_MESSAGE_BYTES;
}

static void twin_message(void *arg, const void *message, size_t len)
{
	uint8_t expected[KD_COMM_MESSAGE_BYTES];
	struct twin *t = arg;

	check(len && len <= KD_COMM_MESSAGE_BYTES && !t->seen[len]++);
	fill(expected, 1 - t->rank, len);
	check(!memcmp(message, expected, len));
	t->arrived++;
}

static void twins_open(void)
{
	static const struct kd_comm_events events = {.message = twin_message};
	char addresses[2][KD_COMM_ADDRESS_BYTES];

	for (uint32_t i = 0; i < 2; i++) {
		struct twin *t = &twins[i];
		struct kd_comm_config config = {.provider = provider,
						.local = 1,
						.rank = i,
						.size = 2,
						.secret = secret,
						.direct = direct,
						.patience_ns = FOREVER_NS,
						.events = &events,
						.arg = t};

		check(!pthread_mutex_init(&t->lock, NULL));
		t->rank = i;
		check(!kd_comm_open(&config, &t->comm, addresses[i], &address_size));
		check(!strcmp(kd_comm_name(t->comm), provider));
		t->memory = malloc(TWIN_BYTES);
		check(t->memory != NULL);
		fill(t->memory, i, TWIN_BYTES);
		check(!kd_comm_expose(t->comm, t->memory, TWIN_BYTES, &t->region));
	}
	for (uint32_t i = 0; i < 2; i++)
		check(!kd_comm_connect(twins[i].comm, 1 - i, addresses[1 - i], address_size));
}

/* Reads the other's memory by a key. */
static void twin_fetch(struct twin *t, uint64_t key)
{
	struct twin *other = &twins[1 - t->rank];

	t->fetch = (struct fetch){.get.done = fetched, .local = calloc(1, TWIN_BYTES)};
	check(t->fetch.local != NULL);
	check(!kd_comm_get(t->comm, other->rank, t->fetch.local, other->region.addr, key,
			   TWIN_BYTES, &t->fetch.get));
}

/* Does what can be done. Returns whether it was anything. */
static int twin_step(struct twin *t)
{
	uint8_t message[KD_COMM_MESSAGE_BYTES];
	int n = kd_comm_progress(t->comm);

	for (; t->sent < TWIN_MESSAGES; t->sent++, n++) {
		fill(message, t->rank, twin_bytes(t->sent));
		if (kd_comm_send(t->comm, 1 - t->rank, message, twin_bytes(t->sent)))
			break;
	}
	return n;
}

static int twin_done(const struct twin *t)
{
	return t->sent == TWIN_MESSAGES && t->arrived == TWIN_MESSAGES && t->fetch.ended;
}

static void twin_check(struct twin *t)
{
	check(!t->fetch.error);
	check(!memcmp(t->fetch.local, twins[1 - t->rank].memory, TWIN_BYTES));
	free(t->fetch.local);
}

/* One after the other, while the other one still reads its memory. */
static void twins_close(void)
{
	struct fetch *f = &twins[1].fetch;

	twin_fetch(&twins[1], twins[0].region.key);
	kd_comm_hide(twins[0].comm, &twins[0].region);
	kd_comm_close(twins[0].comm);
	check(!kd_comm_wait(twins[1].comm, &twins[1].lock, -1, 0));
	kd_comm_hide(twins[1].comm, &twins[1].region);
	kd_comm_close(twins[1].comm);
	check(f->ended);
	for (uint32_t i = 0; i < 2; i++)
		free(twins[i].memory);
	free(f->local);
}

static void two_engines(void)
{
	struct fetch *f = &twins[0].fetch;

	twins_open();
	for (uint32_t i = 0; i < 2; i++) {
		pthread_mutex_lock(&twins[i].lock);
		twin_fetch(&twins[i], twins[1 - i].region.key);
	}
	while (!twin_done(&twins[0]) || !twin_done(&twins[1]))
		for (uint32_t i = 0; i < 2; i++)
			twin_step(&twins[i]);
	for (uint32_t i = 0; i < 2; i++)
		twin_check(&twins[i]);
	twin_fetch(&twins[0], twins[0].region.key); /* which only the reader knows */
	while (!f->ended)
		for (uint32_t i = 0; i < 2; i++)
			twin_step(&twins[i]);
	check(f->error < 0);
	free(f->local);
	twins_close();
}

static void *twin_thread(void *arg)
{
	struct twin *t = arg;
	int ready = 0;

	pthread_mutex_lock(&t->lock);
	twin_fetch(t, twins[1 - t->rank].region.key);
	while (__atomic_load_n(&twins_ready, __ATOMIC_ACQUIRE) < 2) {
		if (!ready && twin_done(t)) {
			ready = 1;
			__atomic_fetch_add(&twins_ready, 1, __ATOMIC_RELEASE);
			kd_comm_wake(twins[1 - t->rank].comm);
		} else if (!twin_step(t)) {
			kd_comm_wait(t->comm, &t->lock, -1,
				     t->sent < TWIN_MESSAGES ? 1000000 : FOREVER_NS);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Has them leave progress to others, and watch again: what has arrived meanwhile wakes them. */
static void *twin_watcher(void *arg)
{
	for (uint64_t i = 0; __atomic_load_n(&twins_ready, __ATOMIC_ACQUIRE) < 2; i++) {
		kd_comm_watch(twins[i % 2].comm, 0);
		sched_yield();
		kd_comm_watch(twins[i % 2].comm, 1);
		if (!(mix(i) % 64))
			kd_comm_watch(twins[i % 2].comm, 1);
	}
	return arg;
}

static void *watch_again(void *arg)
{
	sched_yield();
	kd_comm_watch(twins[0].comm, 1);
	return arg;
}

/* What has been begun and left to others is done by the sleeper when it watches again, although
 * nothing arrives. */
static void begun(void)
{
	struct twin *t = &twins[0];
	pthread_t thread;

	if (!direct)
		return;
	twins_open();
	pthread_mutex_lock(&t->lock);
	for (int i = 0; i < 100; i++) {
		kd_comm_watch(t->comm, 0);
		twin_fetch(t, twins[1].region.key);
		kd_comm_progress(t->comm);
		check(!t->fetch.ended);
		check(!pthread_create(&thread, NULL, watch_again, NULL));
		while (!t->fetch.ended) {
			kd_comm_wait(t->comm, &t->lock, -1, FOREVER_NS);
			kd_comm_progress(t->comm);
		}
		check(!pthread_join(thread, NULL));
		twin_check(t);
	}
	pthread_mutex_lock(&twins[1].lock);
	twins_close();
}

static void two_threads(void)
{
	pthread_t threads[2], watcher;

	twins_open();
	for (uint32_t i = 0; i < 2; i++)
		check(!pthread_create(&threads[i], NULL, twin_thread, &twins[i]));
	check(!pthread_create(&watcher, NULL, twin_watcher, NULL));
	for (uint32_t i = 0; i < 2; i++)
		check(!pthread_join(threads[i], NULL));
	check(!pthread_join(watcher, NULL));
	for (uint32_t i = 0; i < 2; i++) {
		twin_check(&twins[i]);
		pthread_mutex_lock(&twins[i].lock);
	}
	twins_close();
}

/* A rank dies, or is thought to, and is started again. Its predecessor goes on for a while. */

struct incarnation {
	struct kd_comm *comm;
	struct kd_comm_region region;
	char address[KD_COMM_ADDRESS_BYTES];
	char memory[16];
	unsigned heard[3]; /* messages, by sender */
};

#define ZOMBIE_NS 100000000 /* for which the predecessor tries to be heard */

static struct incarnation home, before, after; /* rank 0; twice rank 1 */

static void note_sender(void *arg, const void *message, size_t len)
{
	struct incarnation *x = arg;

	check(len == 1 && *(const char *)message < 3);
	x->heard[(unsigned)*(const char *)message]++;
}

/* 0: the provider cannot forget ranks. */
static int incarnation_open(struct incarnation *x, uint32_t rank, uint32_t incarnation)
{
	static const struct kd_comm_events events = {.message = note_sender};
	struct kd_comm_config config = {.provider = provider, .local = 1, .rank = rank, .size = 2,
					.incarnation = incarnation, .secret = secret,
					.forgets = 1, .patience_ns = FOREVER_NS,
					.events = &events, .arg = x};
	int error = kd_comm_open(&config, &x->comm, x->address, &address_size);

	if (error == -EOPNOTSUPP)
		return 0;
	check(!error);
	memset(x->memory, (int)(1 + rank + incarnation), sizeof(x->memory));
	check(!kd_comm_expose(x->comm, x->memory, sizeof(x->memory), &x->region));
	return 1;
}

static void incarnation_close(struct incarnation *x)
{
	kd_comm_hide(x->comm, &x->region);
	kd_comm_close(x->comm);
}

/* x sends, if it can, and all make progress. */
static void incarnation_say(struct incarnation *x, uint32_t to, char sender)
{
	kd_comm_send(x->comm, to, &sender, 1);
	kd_comm_progress(home.comm);
	kd_comm_progress(before.comm);
	if (after.comm)
		kd_comm_progress(after.comm);
}

/* home reads memory of rank 1: whether it gets what x has. */
static int incarnation_read(const struct incarnation *x)
{
	char local[sizeof(x->memory)] = "";
	struct fetch f = {.get.done = fetched};

	if (kd_comm_get(home.comm, 1, local, x->region.addr, x->region.key, sizeof(local), &f.get))
		return 0;
	while (!f.ended)
		incarnation_say(&before, 0, 1);
	return !f.error && !memcmp(local, x->memory, sizeof(local));
}

static void started_again(void)
{
	int proves = !strcmp(provider, "tcp"); /* who is at the other end */
	struct timespec begin, now;
	unsigned heard;

	if (!incarnation_open(&home, 0, 0))
		return;
	pthread_mutex_lock(&lock);
	incarnation_open(&before, 1, 0);
	check(!kd_comm_connect(home.comm, 1, before.address, address_size));
	check(!kd_comm_connect(before.comm, 0, home.address, address_size));
	while (!before.heard[0])
		incarnation_say(&home, 1, 0);
	while (!home.heard[1])
		incarnation_say(&before, 0, 1);
	check(incarnation_read(&before));
	kd_comm_forget(home.comm, 1);
	check(!incarnation_read(&before));
	incarnation_open(&after, 1, 1);
	check(!kd_comm_connect(after.comm, 0, home.address, address_size));
	for (int i = 0; i < 100; i++)
		incarnation_say(&after, 0, 2);
	check(!proves || !home.heard[2]); /* home does not know it yet */
	/* Where the predecessor listens, nobody is the successor. */
	if (proves) {
		check(!kd_comm_renew(home.comm, 1, 1, before.address, address_size));
		heard = before.heard[0];
		for (int i = 0; i < 100; i++)
			incarnation_say(&home, 1, 0);
		check(before.heard[0] == heard);
		kd_comm_forget(home.comm, 1);
	}
	check(!kd_comm_renew(home.comm, 1, 1, after.address, address_size));
	heard = home.heard[1];
	while (!after.heard[0])
		incarnation_say(&home, 1, 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		incarnation_say(&home, 1, 0);
		incarnation_say(&before, 0, 1);
		incarnation_say(&after, 0, 2);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!home.heard[2] || (now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec -
				   begin.tv_nsec < ZOMBIE_NS);
	check(!proves || home.heard[1] == heard);
	check(!incarnation_read(&before));
	for (int i = 0; i < 1000 && !incarnation_read(&after); i++)
		poll(NULL, 0, 1); /* the read before has failed by ending the connection */
	check(incarnation_read(&after));
	incarnation_close(&home);
	incarnation_close(&before);
	incarnation_close(&after);
}

/* Engines that cannot be opened */

static void open_badly(const char *name, const char *listen, int error)
{
	static const struct kd_comm_events events = {.message = no_message};
	char address[KD_COMM_ADDRESS_BYTES];
	size_t size;
	struct kd_comm_config config = {
		.provider = name, .listen = listen, .size = 2, .secret = secret, .events = &events};

	_exit(kd_comm_open(&config, &comm, address, &size) != error);
}

static void bad_provider(void *arg)
{
	(void)arg;
	open_badly("nonsense", NULL, -ENOENT);
}

static void bad_listen(void *arg)
{
	(void)arg;
	open_badly(NULL, "192.0.2.254", -EADDRNOTAVAIL);
}

static void local_provider(void *arg)
{
	open_badly(arg, NULL, -EINVAL);
}

/* Ranks on other hosts would wait for this one forever. */
static void bad_loopback(void *arg)
{
	(void)arg;
	open_badly(NULL, "127.0.0.1", -EADDRNOTAVAIL);
}

static void bad_name(void *arg)
{
	(void)arg;
	open_badly(NULL, "no such host", -EADDRNOTAVAIL);
}

static void bad_ports(void *ports)
{
	static const struct kd_comm_events events = {.message = no_message};
	struct kd_comm_config config = {
		.ports = ports, .local = 1, .size = 2, .secret = secret, .events = &events};
	char address[KD_COMM_ADDRESS_BYTES];
	size_t size;

	_exit(kd_comm_open(&config, &comm, address, &size) != -EINVAL);
}

static void mistakes(void)
{
	struct child c;

	if (strcmp(provider, "tcp")) {
		child_run(&c, bad_provider, NULL, CASE_SECONDS);
		check(!c.status && one_line(c.err, "nonsense") && strstr(c.err, "tcp;ofi_rxm"));
	}
	child_run(&c, bad_ports, "40000-", CASE_SECONDS);
	check(!c.status && one_line(c.err, "KDDS_PORTS=40000-: expected"));
	child_run(&c, bad_ports, "0", CASE_SECONDS);
	check(!c.status && one_line(c.err, "KDDS_PORTS=0: expected"));
	child_run(&c, bad_ports, "40000-70000", CASE_SECONDS);
	check(!c.status && one_line(c.err, "KDDS_PORTS=40000-70000: expected"));
	child_run(&c, bad_listen, NULL, CASE_SECONDS);
	check(!c.status && one_line(c.err, "KDDS_ADDRESS=192.0.2.254"));
	child_run(&c, local_provider, "loop:1", CASE_SECONDS);
	check(!c.status && one_line(c.err, "the loop provider reaches ranks on one host only"));
	child_run(&c, local_provider, "shm", CASE_SECONDS);
	check(!c.status && one_line(c.err, "the shm provider reaches ranks on one host only"));
	child_run(&c, bad_loopback, NULL, CASE_SECONDS);
	check(!c.status && one_line(c.err, "KDDS_ADDRESS=127.0.0.1"));
	child_run(&c, bad_name, NULL, CASE_SECONDS);
	check(!c.status && one_line(c.err, "KDDS_ADDRESS=no such host"));
}

/* With too few descriptors an engine cannot be opened, and leaves none open. */

static int open_files(int end)
{
	int n = 0;

	for (int fd = 0; fd < end; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void open_with_few(void *arg)
{
	static const struct kd_comm_events events = {.message = no_message};
	struct kd_comm_config config = {
		.provider = provider, .local = 1, .size = 2, .secret = secret, .events = &events};
	char address[KD_COMM_ADDRESS_BYTES];
	int first = dup(0), before, error, failures = 0;
	struct rlimit limit;

	(void)arg;
	check(first >= 0 && !close(first) && !getrlimit(RLIMIT_NOFILE, &limit));
	before = open_files(first + 100);
	for (limit.rlim_cur = (rlim_t)first;; limit.rlim_cur++) {
		check(!setrlimit(RLIMIT_NOFILE, &limit));
		error = kd_comm_open(&config, &comm, address, &address_size);
		if (!error)
			break;
		check(error == -EMFILE && open_files(first + 100) == before);
		failures++;
	}
	check(failures >= 2);
	kd_comm_close(comm);
	check(open_files(first + 100) == before);
	_exit(0);
}

static void few_files(void)
{
	struct child c;

	if (!strcmp(provider, "tcp;ofi_rxm")) /* it ends the process */
		return;
	child_run(&c, open_with_few, NULL, CASE_SECONDS);
	check(!c.status);
}

/* Opened on the network, closed, and opened again on loopback, where the other address does not
 * matter. */
static void again(void)
{
	static const struct kd_comm_events events = {.message = no_message};
	char address[KD_COMM_ADDRESS_BYTES];

	for (int i = 0; i < 3; i++) {
		struct kd_comm_config config = {.provider = provider,
						.listen = i ? "192.0.2.254" : NULL,
						.local = i,
						.size = 2,
						.secret = secret,
						.events = &events};

		check(!kd_comm_open(&config, &comm, address, &address_size));
		check(!strcmp(kd_comm_name(comm), provider));
		kd_comm_close(comm);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
	/* over the loop engine; with reads by the kernel */
	enum { LOOP = 1, DIRECT = 2, BOTH = 3 } also;
} cases[] = {
	{"messages", messages, 0}, {"gets", gets, DIRECT},
	{"many gets", many_gets, DIRECT}, {"wrong gets", wrong_gets, 0},
	{"callbacks", callbacks, DIRECT}, {"flooding", flooding, 0},
	{"wakes", wakes, 0}, {"sleeper", sleeper, 0},
	{"killed", killed, DIRECT}, {"absent", absent, 0},
	{"given up", given_up, 0}, {"full", full, 0},
	{"ports", ports, 0}, {"mistakes", mistakes, 0},
	{"again", again, 0}, {"interrupted", interrupted, 0},
	{"few files", few_files, LOOP}, {"two engines", two_engines, LOOP},
	{"two threads", two_threads, BOTH}, {"started again", started_again, LOOP},
	{"one host", one_host, DIRECT}, {"begun", begun, DIRECT},
};

static void run_case(void *arg)
{
	(void)arg;
	signal(SIGPIPE, SIG_IGN);
	cases[case_number].run();
}

/* Runs the named cases, or all. */
static int run_cases(char *const *names, int n)
{
	const char *how = direct ? ", direct" : "";
	int bad = 0;

	for (case_number = 0; case_number < (int)(sizeof(cases) / sizeof(*cases)); case_number++) {
		int wanted = !n, status;
		pid_t pid;

		case_name = cases[case_number].name;
		for (int i = 0; i < n; i++)
			wanted |= !strcmp(names[i], case_name);
		if (!wanted || (!strcmp(provider, "loop") && !(cases[case_number].also & LOOP)) ||
		    (direct && !(cases[case_number].also & DIRECT)))
			continue;
		fflush(NULL);
		pid = fork();
		if (!pid) {
			alarm(CASE_SECONDS);
			run_case(NULL);
			exit(0);
		}
		waitpid(pid, &status, 0);
		bad |= status;
		if (WIFSIGNALED(status))
			printf("FAILED: %s%s, %s: %s\n", provider, how, case_name,
			       strsignal(WTERMSIG(status)));
		else
			printf("%s: %s%s, %s\n", status ? "FAILED" : "ok", provider, how,
			       case_name);
	}
	return bad;
}

/* Whether the kernel copies: a sandbox may forbid it. */
static int may_copy(void)
{
	struct kd_direct own;
	int error;

	kd_direct_init(&own);
	error = kd_direct_read(&own, NULL, 0, 0);
	if (error)
		printf("skipped: tcp, direct: %s\n", strerror(-error));
	return !error;
}

/*
 * usage: check_comm [CASE...], by default all cases. They run over the provider
 * CHECK_COMM_PROVIDER, by default over tcp and libfabric's, some also over loop and over tcp with
 * direct reads, at the address CHECK_COMM_ADDRESS.
 */
int main(int argc, char **argv)
{
	static const char *const providers[] = {"tcp", "tcp;ofi_rxm", "loop"};
	const char *only = getenv("CHECK_COMM_PROVIDER");
	int bad = 0;

	setenv("IPATH_NO_BACKTRACE", "1", 0); /* as kd_comm_open does */
	for (int i = 0; i < 3; i++) {
		provider = providers[i];
		if (only && strcmp(only, provider))
			continue;
		if (i == 1 && !dlopen("libfabric.so.1", RTLD_NOW)) {
			printf("skipped: %s\n", dlerror());
			continue;
		}
		bad |= run_cases(argv + 1, argc - 1);
		direct = !i && may_copy();
		if (direct)
			bad |= run_cases(argv + 1, argc - 1);
		direct = 0;
	}
	return !!bad;
}
