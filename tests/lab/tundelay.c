/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network between hosts that delays, loses and cuts off traffic, for kernels without netem:
 *
 *   tundelay [-s SEED] NAMESPACE...     each a file like /proc/PID/ns/net
 *
 * It creates an interface `far' in each namespace (TUN, so IPv4 packets without Ethernet), prints
 * "up", and delivers each packet to the host whose number, from 1, is the last byte of the packet's
 * destination.
 *
 * Commands are lines on standard input, each answered with "ok". It ends when standard input ends.
 *
 *   delay US       delays each packet by US microseconds
 *   loss PERCENT   loses that share of the packets, chosen at random from SEED
 *   cut HOST       loses all packets to or from HOST; those under way still arrive
 *   heal HOST      ends the cut
 *
 * Packets wait in one queue in the order of their arrival: a smaller delay takes effect when the
 * earlier packets have left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MAX 16
#define PACKETS 16384 /* a power of two; a packet that does not fit is lost */
#define PACKET_BYTES 1500
#define BATCH 64      /* read from one host before the others have their turn */
#define DESTINATION 16 /* offset in an IPv4 header */

struct packet {
	uint64_t due_ns;
	int to;
	ssize_t bytes;
	unsigned char data[PACKET_BYTES];
};

static struct packet *packets; /* [head, tail), modulo PACKETS */
static uint32_t head, tail;
static int fds[HOSTS_MAX], cut[HOSTS_MAX], nhosts;
static uint64_t delay_ns, last_due_ns;
static double loss;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The interface stays in its namespace when we switch to the next one. */
static int open_far(const char *namespace)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open(namespace, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(namespace);
	close(fd);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		die("/dev/net/tun");
	strcpy(request.ifr_name, "far");
	if (ioctl(fd, TUNSETIFF, &request))
		die("TUNSETIFF");
	return fd;
}

/* Returns 0 when the host is gone. */
static int receive(int from)
{
	for (int i = 0; i < BATCH; i++) {
		struct packet *p = &packets[tail % PACKETS], none;

		if (tail - head == PACKETS)
			p = &none;
		p->bytes = read(fds[from], p->data, sizeof(p->data));
		if (p->bytes <= 0)
			return p->bytes == 0 || errno != EBADFD;
		if (p == &none || p->bytes < 20 || p->data[0] >> 4 != 4)
			continue;
		p->to = p->data[DESTINATION + 3] - 1;
		if (p->to < 0 || p->to >= nhosts || cut[from] || cut[p->to] || drand48() < loss)
			continue;
		p->due_ns = now_ns() + delay_ns;
		if (p->due_ns < last_due_ns)
			p->due_ns = last_due_ns;
		last_due_ns = p->due_ns;
		tail++;
	}
	return 1;
}

/* Returns the time of the next packet to send; UINT64_MAX: none is waiting. */
static uint64_t send_due(uint64_t now)
{
	for (; head != tail; head++) {
		struct packet *p = &packets[head % PACKETS];

		if (p->due_ns > now)
			return p->due_ns;
		if (write(fds[p->to], p->data, (size_t)p->bytes) < 0)
			continue; /* the host or interface is gone or full: another loss */
	}
	return UINT64_MAX;
}

static void command(const char *line)
{
	char verb[16];
	double x;
	int host;

	if (sscanf(line, "%15s %lf", verb, &x) != 2)
		goto bad;
	host = (int)x - 1;
	if (!strcmp(verb, "delay"))
		delay_ns = (uint64_t)(x * 1000);
	else if (!strcmp(verb, "loss"))
		loss = x / 100;
	else if (host < 0 || host >= nhosts || (strcmp(verb, "cut") && strcmp(verb, "heal")))
		goto bad;
	else
		cut[host] = *verb == 'c';
	puts("ok");
	return;
bad:
	fprintf(stderr, "what is '%s'?\n", line);
	exit(2);
}

/* Input comes in whole lines: writers write no less to the pipe. */
static void commands(void)
{
	char buffer[256], *save = NULL;
	ssize_t n = read(0, buffer, sizeof(buffer) - 1);

	if (n <= 0)
		exit(0);
	buffer[n] = '\0';
	for (char *line = strtok_r(buffer, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		command(line);
}

int main(int argc, char **argv)
{
	struct pollfd polled[HOSTS_MAX + 1] = {{0, POLLIN, 0}};
	int option;

	while ((option = getopt(argc, argv, "s:")) != -1) {
		if (option != 's')
			return 2;
		srand48(atol(optarg));
	}
	nhosts = argc - optind;
	if (nhosts < 1 || nhosts > HOSTS_MAX) {
		fprintf(stderr, "usage: tundelay [-s SEED] NAMESPACE...\n");
		return 2;
	}
	packets = malloc(PACKETS * sizeof(*packets));
	if (!packets)
		die("malloc");
	for (int i = 0; i < nhosts; i++) {
		fds[i] = open_far(argv[optind + i]);
		polled[i + 1] = (struct pollfd){fds[i], POLLIN, 0};
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("up");
	for (;;) {
		uint64_t now = now_ns(), due = send_due(now), ns = due > now ? due - now : 0;
		struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

		if (ppoll(polled, (nfds_t)nhosts + 1, due == UINT64_MAX ? NULL : &t, NULL) < 0)
			die("ppoll");
		if (polled[0].revents)
			commands();
		for (int i = 0; i < nhosts; i++)
			if (polled[i + 1].revents && !receive(i))
				polled[i + 1].fd = -1;
	}
}
