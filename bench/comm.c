/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comm.h costs, compared with libfabric used directly: two processes on this host, over
 * loopback.
 *
 *   bench/comm [-p provider] [-r rounds] [latency] [bandwidth] [expose] [memory]
 *
 * latency: half a round trip of 8 bytes, with both sides polling, and with both asleep until the
 * message arrives. bandwidth: gets of several sizes, one at a time and eight at once. expose:
 * kd_comm_expose and kd_comm_hide. memory: resident memory and time of kd_comm_open. Each figure is
 * the median over the rounds, with the best in brackets. libfabric reads the same environment on
 * both sides of the comparison: the variables that kd_comm_open sets are set before.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "comm/comm.h"

#define ROUND_TRIPS 500
#define REGION_BYTES (64u << 20)
#define ROUND_BYTES (128u << 20)
#define WINDOW 8
#define PEERS 63

static const char *provider; /* NULL: the default */
static int rounds = 15;
static uint32_t rank, other; /* this process and the other, to kd_comm */

static void fail(const char *what, ssize_t error)
{
	fprintf(stderr, "comm: %s: %zd\n", what, error);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorted; [0] is the smallest. */
static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	return values[n / 2];
}

static void tell(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		fail("the other side is gone", -1);
}

static void hear(int fd, void *p, size_t n)
{
	for (ssize_t got; n; p = (char *)p + got, n -= (size_t)got)
		if ((got = read(fd, p, n)) <= 0)
			_exit(1);
}

/* The operations measured, for either engine; a process uses one of them. */
struct engine {
	const char *name;
	void (*open)(void *address, size_t *size_p, int sleeps);
	void (*connect)(const void *address, size_t size);
	void (*send)(void);                  /* 8 bytes; returns once they are sent */
	void (*receive)(int sleeps);         /* returns once a message has arrived */
	void (*expose)(void *p, size_t n, uint64_t where[2]);
	void (*get)(void *local, size_t n, const uint64_t where[2]); /* starts one */
	/* makes progress; returns the number of gets that have ended */
	int (*finished)(void);
};

/* comm.h */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kd_comm *comm;
static int kd_messages, kd_gets;

static void kd_message(void *arg, const void *message, size_t len)
{
	(void)arg;
	(void)message;
	kd_messages += len == 8;
}

static void kd_open(void *address, size_t *size_p, int sleeps)
{
	static const struct kd_comm_events events = {.message = kd_message};
	static const uint8_t secret[32];
	const struct kd_comm_config config = {.provider = provider,
					      .local = 1,
					      .rank = rank,
					      .size = PEERS + 1,
					      .secret = secret,
					      .patience_ns = UINT64_MAX,
					      .events = &events};
	int error;

	(void)sleeps;
	pthread_mutex_lock(&lock);
	error = kd_comm_open(&config, &comm, address, size_p);
	if (error)
		exit(1);
}

static void kd_connect(const void *address, size_t size)
{
	int error = kd_comm_connect(comm, other, address, size);

	if (error)
		fail("kd_comm_connect", error);
}

static void kd_send(void)
{
	uint64_t message = 0;
	int error;

	while ((error = kd_comm_send(comm, other, &message, sizeof(message))) == -EAGAIN)
		kd_comm_progress(comm);
	if (error)
		fail("kd_comm_send", error);
}

static void kd_receive(int sleeps)
{
	while (!kd_messages)
		if (!kd_comm_progress(comm) && sleeps)
			kd_comm_wait(comm, &lock, -1, 1000000000);
	kd_messages--;
}

static void kd_expose(void *p, size_t n, uint64_t where[2])
{
	struct kd_comm_region region;
	int error = kd_comm_expose(comm, p, n, &region);

	if (error)
		fail("kd_comm_expose", error);
	where[0] = region.addr;
	where[1] = region.key;
}

static void kd_done(struct kd_comm_get *get, int error)
{
	if (error)
		fail("kd_comm_get", error);
	free(get);
	kd_gets++;
}

static void kd_get(void *local, size_t n, const uint64_t where[2])
{
	struct kd_comm_get *get = malloc(sizeof(*get));
	int error;

	get->done = kd_done;
	error = kd_comm_get(comm, other, local, where[0], where[1], n, get);
	if (error)
		fail("kd_comm_get", error);
}

static int kd_finished(void)
{
	int n;

	kd_comm_progress(comm);
	n = kd_gets;
	kd_gets = 0;
	return n;
}

static const struct engine kd = {"kd_comm",  kd_open,	kd_connect, kd_send,
				 kd_receive, kd_expose, kd_get,	    kd_finished};

/* libfabric */

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
	char buffer[64];
	int messages, gets;
} raw;

static void raw_check(const char *what, ssize_t error)
{
	if (error) {
		fprintf(stderr, "comm: %s: %s\n", what, fi_strerror((int)-error));
		exit(1);
	}
}

static void raw_open(void *address, size_t *size_p, int sleeps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG,
				     .wait_obj = sleeps ? FI_WAIT_FD : FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider ? provider : "tcp;ofi_rxm");
	raw_check("fi_getinfo",
		  fi_getinfo(FI_VERSION(1, 9), "127.0.0.1", NULL, FI_SOURCE, hints, &raw.info));
	fi_freeinfo(hints);
	raw_check("fi_fabric", fi_fabric(raw.info->fabric_attr, &raw.fabric, NULL));
	raw_check("fi_domain", fi_domain(raw.fabric, raw.info, &raw.domain, NULL));
	raw_check("fi_cq_open", fi_cq_open(raw.domain, &cq_attr, &raw.cq, NULL));
	raw_check("fi_av_open", fi_av_open(raw.domain, &av_attr, &raw.av, NULL));
	raw_check("fi_endpoint", fi_endpoint(raw.domain, raw.info, &raw.ep, NULL));
	raw_check("fi_ep_bind", fi_ep_bind(raw.ep, &raw.cq->fid, FI_TRANSMIT | FI_RECV));
	raw_check("fi_ep_bind", fi_ep_bind(raw.ep, &raw.av->fid, 0));
	raw_check("fi_enable", fi_enable(raw.ep));
	*size_p = KD_COMM_ADDRESS_BYTES;
	raw_check("fi_getname", fi_getname(&raw.ep->fid, address, size_p));
	raw_check("fi_recv",
		  fi_recv(raw.ep, raw.buffer, sizeof(raw.buffer), NULL, FI_ADDR_UNSPEC, NULL));
}

static void raw_connect(const void *address, size_t size)
{
	(void)size;
	if (fi_av_insert(raw.av, address, 1, &raw.peer, 0, NULL) != 1)
		fail("fi_av_insert", -1);
}

static void raw_progress(int sleeps)
{
	struct fi_cq_msg_entry e[16];
	ssize_t n = sleeps ? fi_cq_sread(raw.cq, e, 16, NULL, 1000) : fi_cq_read(raw.cq, e, 16);

	if (n < 0 && n != -FI_EAGAIN)
		raw_check("fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++) {
		if (e[i].flags & FI_RECV) {
			raw.messages++;
			raw_check("fi_recv", fi_recv(raw.ep, raw.buffer, sizeof(raw.buffer), NULL,
						     FI_ADDR_UNSPEC, NULL));
		} else if (e[i].flags & FI_READ) {
			raw.gets++;
		}
	}
}

static void raw_send(void)
{
	uint64_t message = 0;
	ssize_t error;

	while ((error = fi_inject(raw.ep, &message, sizeof(message), raw.peer)) == -FI_EAGAIN)
		raw_progress(0);
	raw_check("fi_inject", error);
}

static void raw_receive(int sleeps)
{
	while (!raw.messages)
		raw_progress(sleeps);
	raw.messages--;
}

static void raw_expose(void *p, size_t n, uint64_t where[2])
{
	struct fid_mr *mr;

	raw_check("fi_mr_reg", fi_mr_reg(raw.domain, p, n, FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	where[0] = raw.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)p : 0;
	where[1] = fi_mr_key(mr);
}

static void raw_get(void *local, size_t n, const uint64_t where[2])
{
	ssize_t error;

	while ((error = fi_read(raw.ep, local, n, NULL, raw.peer, where[0], where[1], NULL)) ==
	       -FI_EAGAIN)
		raw_progress(0);
	raw_check("fi_read", error);
}

static int raw_finished(void)
{
	int n;

	raw_progress(0);
	n = raw.gets;
	raw.gets = 0;
	return n;
}

static const struct engine fabric = {"libfabric", raw_open,   raw_connect, raw_send,
				     raw_receive, raw_expose, raw_get,     raw_finished};

/* Two processes: f runs in a child of this process, `partner' in a child of that one. values
 * returns what f measures. */

static void pair(const struct engine *e, int sleeps,
		 void (*f)(const struct engine *e, int fd, int arg, double *values),
		 void (*partner)(const struct engine *e, int fd, int arg), int arg, double *values)
{
	int result[2], fds[2], status;

	fflush(NULL);
	if (pipe(result) || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		fail("pipe", -1);
	if (!fork()) {
		pid_t child = fork();
		char address[KD_COMM_ADDRESS_BYTES] = {0}, theirs[KD_COMM_ADDRESS_BYTES];
		size_t size;
		int fd = fds[!child];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[!!child]);
		rank = !child;
		other = !rank;
		e->open(address, &size, sleeps);
		tell(fd, address, sizeof(address));
		hear(fd, theirs, sizeof(theirs));
		e->connect(theirs, size);
		if (!child) {
			partner(e, fd, arg);
			_exit(0);
		}
		f(e, fd, arg, values);
		tell(result[1], values, (size_t)rounds * sizeof(*values));
		tell(fd, "", 1);
		wait(&status);
		_exit(0);
	}
	close(fds[0]);
	close(fds[1]);
	close(result[1]);
	hear(result[0], values, (size_t)rounds * sizeof(*values));
	close(result[0]);
	wait(&status);
}

static void ping(const struct engine *e, int fd, int sleeps, double *values)
{
	(void)fd;
	for (int r = -1; r < rounds; r++) { /* the first connects */
		double t = now();

		for (int i = 0; i < ROUND_TRIPS; i++) {
			e->send();
			e->receive(sleeps);
		}
		if (r >= 0)
			values[r] = (now() - t) / (2 * ROUND_TRIPS) * 1e6;
	}
}

static void pong(const struct engine *e, int fd, int sleeps)
{
	(void)fd;
	for (int i = 0; i < (rounds + 1) * ROUND_TRIPS; i++) {
		e->receive(sleeps);
		e->send();
	}
}

static void latency(void)
{
	double values[rounds];

	printf("half a round trip of 8 bytes, us\n");
	for (int sleeps = 0; sleeps < 2; sleeps++) {
		printf("  %-20s", sleeps ? "both asleep" : "both polling");
		for (int i = 0; i < 2; i++) {
			const struct engine *e = i ? &fabric : &kd;

			pair(e, sleeps, ping, pong, sleeps, values);
			printf("  %s %6.1f", e->name, median(values, rounds));
			printf(" (%.1f)", values[0]);
		}
		printf("\n");
	}
}

static void *region(void)
{
	char *p = aligned_alloc(4096, REGION_BYTES);

	if (!p)
		fail("no memory", 0);
	memset(p, 1, REGION_BYTES);
	return p;
}

static void serve(const struct engine *e, int fd, int arg)
{
	uint64_t where[2];
	char stop;

	(void)arg;
	e->expose(region(), REGION_BYTES, where);
	tell(fd, where, sizeof(where));
	for (unsigned i = 0; i % 256 || recv(fd, &stop, 1, MSG_DONTWAIT) != 1; i++)
		e->finished();
}

/* log2 of the size, times 2; odd: a window of WINDOW */
static void fetch(const struct engine *e, int fd, int arg, double *values)
{
	size_t size = (size_t)1 << arg / 2, window = arg & 1 ? WINDOW : 1;
	size_t n = ROUND_BYTES / size / 2 + 1;
	uint64_t where[2];
	char *local = region();

	hear(fd, where, sizeof(where));
	for (int r = -1; r < rounds; r++) {
		size_t started = 0, finished = 0;
		double t = now();

		while (finished < n) {
			while (started < n && started - finished < window) {
				uint64_t from[2] = {where[0] + started * size % REGION_BYTES,
						    where[1]};

				e->get(local + started * size % REGION_BYTES, size, from);
				started++;
			}
			finished += (size_t)e->finished();
		}
		if (r >= 0)
			values[r] = -(double)(n * size) / (now() - t) / 1e9;
	}
}

static void bandwidth(void)
{
	double values[rounds];

	printf("gets, GB/s\n");
	for (int shift = 16; shift <= 26; shift += shift == 20 ? 6 : 4)
		for (int many = 0; many < 1 + (shift <= 20); many++) {
			printf("  %6u KiB %-9s", 1u << (shift - 10), many ? "8 at once" : "");
			for (int i = 0; i < 2; i++) {
				const struct engine *e = i ? &fabric : &kd;

				pair(e, 0, fetch, serve, 2 * shift + many, values);
				printf("  %s %6.2f", e->name, -median(values, rounds));
				printf(" (%.2f)", -values[0]);
			}
			printf("\n");
		}
}

static void measure_expose(const struct engine *e, int fd, int arg, double *values)
{
	char *p = region();

	(void)e;
	(void)fd;
	for (int r = 0; r < rounds; r++) {
		double t = now();

		for (int i = 0; i < 10000; i++) {
			struct kd_comm_region region;

			if (kd_comm_expose(comm, p, (size_t)1 << arg, &region))
				fail("kd_comm_expose", -1);
			kd_comm_hide(comm, &region);
		}
		values[r] = (now() - t) / 10000 * 1e9;
	}
}

static void idle(const struct engine *e, int fd, int arg)
{
	char stop;

	(void)e;
	(void)arg;
	hear(fd, &stop, 1);
}

static void expose(void)
{
	double values[rounds];

	printf("kd_comm_expose and kd_comm_hide, ns\n");
	for (int shift = 12; shift <= 26; shift += 14) {
		pair(&kd, 0, measure_expose, idle, shift, values);
		printf("  %6u KiB %6.0f", 1u << (shift - 10), median(values, rounds));
		printf(" (%.0f)\n", values[0]);
	}
}

static double resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		fail("/proc/self/statm", -1);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* A peer of the function below: answers one message. */
static void answer(uint32_t number, int fd)
{
	char address[KD_COMM_ADDRESS_BYTES] = {0};
	size_t size;
	char stop;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rank = number;
	other = PEERS;
	kd_open(address, &size, 1);
	tell(fd, address, sizeof(address));
	hear(fd, address, sizeof(address));
	kd_connect(address, size);
	kd_receive(1);
	kd_send();
	while (!kd_comm_wait(comm, &lock, fd, 1000000000))
		kd_comm_progress(comm);
	hear(fd, &stop, 1);
	_exit(0);
}

static void memory_of_one(void)
{
	char address[KD_COMM_ADDRESS_BYTES] = {0}, theirs[KD_COMM_ADDRESS_BYTES];
	double before = resident(), t;
	size_t size;
	int fds[PEERS][2];
	uint64_t message = 0;

	for (int i = 0; i < PEERS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]))
			fail("socketpair", -1);
		if (!fork())
			answer((uint32_t)i, fds[i][1]);
		close(fds[i][1]);
	}
	for (int i = 0; i < PEERS; i++) {
		hear(fds[i][0], theirs, sizeof(theirs));
		if (!i) {
			rank = PEERS;
			kd_open(address, &size, 1);
			printf("  before %.1f MiB, open and idle %.1f MiB\n", before, resident());
		}
		if (kd_comm_connect(comm, (uint32_t)i, theirs, size))
			fail("kd_comm_connect", -1);
		tell(fds[i][0], address, sizeof(address));
		t = now();
		while (kd_comm_send(comm, (uint32_t)i, &message, sizeof(message)) == -EAGAIN)
			if (!kd_comm_progress(comm))
				kd_comm_wait(comm, &lock, -1, 1000000000);
		kd_receive(1);
		if (!i || i + 1 == PEERS)
			printf("  %2d peer%s %.1f MiB; the last answered in %.2f ms\n", i + 1,
			       i ? "s" : " ", resident(), (now() - t) * 1e3);
	}
	for (int i = 0; i < PEERS; i++)
		tell(fds[i][0], "", 1);
	while (wait(NULL) > 0)
		;
	kd_comm_close(comm);
	printf("  closed %.1f MiB\n", resident());
	fflush(stdout);
}

static void measure_open(void)
{
	char address[KD_COMM_ADDRESS_BYTES];
	double values[rounds];
	size_t size;
	int fds[2], status;

	for (int r = 0; r < rounds; r++) {
		if (pipe(fds))
			fail("pipe", -1);
		fflush(NULL);
		if (!fork()) {
			double t = now();

			kd_open(address, &size, 1);
			t = now() - t;
			tell(fds[1], &t, sizeof(t));
			_exit(0);
		}
		close(fds[1]);
		hear(fds[0], &values[r], sizeof(*values));
		close(fds[0]);
		wait(&status);
	}
	printf("  kd_comm_open takes %.1f ms", median(values, rounds) * 1e3);
	printf(" (%.1f)\n", values[0] * 1e3);
}

static void memory(void)
{
	int status;

	printf("memory\n");
	measure_open();
	fflush(stdout);
	if (!fork()) {
		memory_of_one();
		_exit(0);
	}
	wait(&status);
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"latency", latency}, {"bandwidth", bandwidth}, {"expose", expose}, {"memory", memory}};

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "p:r:")) >= 0)
		if (option == 'p')
			provider = optarg;
		else if (option != 'r' || (rounds = atoi(optarg)) < 1)
			return 2;
	for (size_t m = 0; m < sizeof(modes) / sizeof(*modes); m++) {
		int wanted = optind == argc;

		for (int i = optind; i < argc; i++)
			wanted |= !strcmp(argv[i], modes[m].name);
		if (wanted)
			modes[m].run();
	}
	return 0;
}
