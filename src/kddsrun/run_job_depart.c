/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_job_depart.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

#define ANSWER_S 10 /* for kddsrun to answer */

/* A request is the number of a rank; an answer why that cannot leave, empty: it is told to. The
 * kernel says whose process has sent either. */
struct parcel {
	union {
		uint32_t rank;
		char text[200];
	} body;
	size_t size;
	struct sockaddr_un from;
	socklen_t from_size;
	struct ucred sender;
};

static void late(struct run_timer *timer);

static struct run_timer late_timer = {.due = late};

static void kill_rank(struct run_job_rank *r)
{
	uint32_t number = (uint32_t)(r - job.ranks);

	run_say("rank %u (host %s, process %u) has not left the job within %g s (--grace): killing it",
		number, r->host->place->name, r->pid, job.options->grace_ms / 1000.0);
	run_link_send(&r->host->link, KD_CONTROL_DROP, number, NULL, 0);
}

static void late(struct run_timer *timer)
{
	uint64_t now_ns = kd_os_now_ns(), next_ns = UINT64_MAX;

	for (uint32_t i = 0; i < job.options->size; i++) {
		struct run_job_rank *r = &job.ranks[i];

		if (r->state != RUN_RANK_JOINED || !r->departs || r->lost)
			continue;
		if (r->killed_ns <= now_ns) {
			kill_rank(r);
			r->killed_ns = UINT64_MAX;
		}
		next_ns = kd_min(next_ns, r->killed_ns);
	}
	if (next_ns != UINT64_MAX)
		run_timer_set(timer, next_ns - now_ns);
}

int run_job_depart(struct run_job_rank *r)
{
	uint64_t grace_ns = job.options->grace_ms * 1000000ull;

	if (!job.options->survive || r == job.ranks)
		return -1;
	run_tell("rank %u (host %s, process %u) is leaving the job", (unsigned)(r - job.ranks),
		 r->host->place->name, r->pid);
	r->departs = 1;
	r->killed_ns = kd_os_now_ns() + grace_ns;
	if (!late_timer.at_ns)
		run_timer_set(&late_timer, grace_ns);
	return 0;
}

/* kddsrun --leave. The name of the socket is no file: it disappears with the process. */

static socklen_t name_socket(struct sockaddr_un *name, uint32_t pid)
{
	int n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "kddsrun.%u", pid);

	name->sun_family = AF_UNIX;
	name->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Receives from a process of this user, or of root. 0 or -errno; -EACCES: it is another one's. */
static int receive(int fd, struct parcel *p)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec body = {&p->body, sizeof(p->body)};
	struct msghdr m = {.msg_name = &p->from, .msg_namelen = sizeof(p->from), .msg_iov = &body,
			   .msg_iovlen = 1, .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;

	memset(&p->body, 0, sizeof(p->body));
	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	if (!CMSG_FIRSTHDR(&m) || CMSG_FIRSTHDR(&m)->cmsg_type != SCM_CREDENTIALS)
		return -EACCES;
	memcpy(&p->sender, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(p->sender));
	p->size = (size_t)n;
	p->from_size = m.msg_namelen;
	return p->sender.uid && p->sender.uid != geteuid() ? -EACCES : 0;
}

static void tell_rank(uint32_t rank, char *why, size_t size)
{
	const struct run_job_rank *r = rank < job.options->size ? &job.ranks[rank] : NULL;

	*why = 0;
	if (!r)
		snprintf(why, size, "the job has %u ranks", job.options->size);
	else if (!rank)
		snprintf(why, size, "rank 0 cannot leave the job: to end it, send SIGTERM to kddsrun");
	else if (!job.joined)
		snprintf(why, size, "the ranks have not joined the job yet: repeat the command later");
	else if (r->lost || r->state != RUN_RANK_JOINED)
		snprintf(why, size, "the rank is not part of the job any more");
	else
		run_link_send(&r->host->link, KD_CONTROL_DEPART, rank, NULL, 0);
}

static void asked(struct run_watch *watch, short events)
{
	struct parcel p;
	char why[sizeof(p.body.text)];

	(void)events;
	if (receive(watch->fd, &p) || p.size != sizeof(p.body.rank))
		return;
	tell_rank(p.body.rank, why, sizeof(why));
	sendto(watch->fd, why, strlen(why), MSG_DONTWAIT, (struct sockaddr *)&p.from, p.from_size);
}

void run_job_listen(void)
{
	static struct run_watch watch;
	struct sockaddr_un name;
	socklen_t size = name_socket(&name, (uint32_t)getpid());

	watch = (struct run_watch){open_socket(), POLLIN, 0, asked};
	if (watch.fd < 0 || bind(watch.fd, (struct sockaddr *)&name, size)) {
		run_say("cannot listen for kddsrun --leave, and goes on without: %s",
			kd_errno_text(errno));
		if (watch.fd >= 0)
			close(watch.fd);
	} else {
		run_watch_add(&watch);
	}
}

int run_job_leave(uint32_t kddsrun, uint32_t rank)
{
	struct sockaddr_un name, own = {.sun_family = AF_UNIX};
	struct timeval limit = {ANSWER_S, 0};
	socklen_t size = name_socket(&name, kddsrun);
	struct parcel p;
	int fd = open_socket(), error;

	/* without a name, the kernel gives one to which kddsrun can answer */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    bind(fd, (struct sockaddr *)&own, sizeof(own.sun_family))) {
		run_say("--leave: %s", kd_errno_text(errno));
		return 1;
	}
	if (connect(fd, (struct sockaddr *)&name, size) ||
	    send(fd, &rank, sizeof(rank), 0) != sizeof(rank)) {
		run_say("--leave: process %u is not a kddsrun --survive on this host", kddsrun);
		return 1;
	}
	error = receive(fd, &p);
	if (error == -EAGAIN)
		run_say("--leave: process %u has not answered for %u s", kddsrun, ANSWER_S);
	else if (error)
		run_say("--leave: process %u: %s", kddsrun, kd_errno_text(-error));
	else if (p.size)
		run_say("--leave %u:%u: %.*s", kddsrun, rank, (int)p.size, p.body.text);
	return error || p.size;
}
