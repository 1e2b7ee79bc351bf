/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_job_request.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_job_depart.h"
#include "kddsrun/run_job_join.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

#define ANSWER_S 10         /* for kddsrun to answer */
#define LOOKS_PER_S 10u     /* whether it is still there */
#define REQUEST_BYTES 65536 /* a list of hosts; less than a datagram may have */
#define WHY_BYTES 200

/* A request is a text, and so is its answer: why not, empty if it is granted. The kernel says whose
 * process has sent either. */
struct parcel {
	char text[REQUEST_BYTES + 1];
	size_t size;
	struct sockaddr_un from;
	socklen_t from_size;
	struct ucred sender;
};

static struct parcel parcel;

/* The name is no file: it disappears with the process. */
static socklen_t name_socket(struct sockaddr_un *name, unsigned pid)
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
	struct iovec body = {p->text, REQUEST_BYTES};
	struct msghdr m = {.msg_name = &p->from, .msg_namelen = sizeof(p->from), .msg_iov = &body,
			   .msg_iovlen = 1, .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;

	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	if (m.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	if (!CMSG_FIRSTHDR(&m) || CMSG_FIRSTHDR(&m)->cmsg_type != SCM_CREDENTIALS)
		return -EPROTO;
	memcpy(&p->sender, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(p->sender));
	p->size = (size_t)n;
	p->text[n] = 0;
	p->from_size = m.msg_namelen;
	return p->sender.uid && p->sender.uid != geteuid() ? -EACCES : 0;
}

static void grant(const char *request, char *why, size_t size)
{
	unsigned rank;
	int end = 0;

	if (sscanf(request, "leave %u%n", &rank, &end) == 1 && !request[end])
		run_job_dismiss(rank, why, size);
	else if (!strncmp(request, "join ", 5))
		run_job_join(request + 5, why, size);
	else
		snprintf(why, size, "no request that kddsrun " RUN_VERSION " knows");
}

static void asked(struct run_watch *watch, short events)
{
	char why[WHY_BYTES];

	(void)events;
	switch (receive(watch->fd, &parcel)) {
	case 0:
		grant(parcel.text, why, sizeof(why));
		break;
	case -EACCES:
		snprintf(why, sizeof(why), "only its user and root may request that");
		break;
	default:
		return;
	}
	sendto(watch->fd, why, strlen(why), MSG_DONTWAIT, (struct sockaddr *)&parcel.from,
	       parcel.from_size);
}

void run_job_listen(void)
{
	static struct run_watch watch;
	struct sockaddr_un name;
	socklen_t size = name_socket(&name, (unsigned)getpid());

	watch = (struct run_watch){open_socket(), POLLIN, 0, asked};
	if (watch.fd < 0 || bind(watch.fd, (struct sockaddr *)&name, size)) {
		run_say("cannot listen for kddsrun --leave and --join, and goes on without: %s",
			kd_errno_text(errno));
		if (watch.fd >= 0)
			close(watch.fd);
	} else {
		run_watch_add(&watch);
	}
}

/* The answer, within ANSWER_S. -ESRCH: that process has ended; it may do so before it answers. */
static int await_answer(int fd, unsigned kddsrun)
{
	for (unsigned i = 0; i < ANSWER_S * LOOKS_PER_S; i++) {
		int ended = kill((pid_t)kddsrun, 0) && errno == ESRCH;
		int error = receive(fd, &parcel); /* it may have answered last */

		if (error != -EAGAIN)
			return error;
		if (ended)
			return -ESRCH;
	}
	return -EAGAIN;
}

int run_job_request(unsigned kddsrun, const char *request, const char *option)
{
	struct sockaddr_un name, own = {.sun_family = AF_UNIX};
	struct timeval limit = {0, 1000000 / LOOKS_PER_S};
	socklen_t size = name_socket(&name, kddsrun);
	size_t length = strlen(request);
	int fd = open_socket(), error;

	/* without a name, the kernel gives one to which kddsrun can answer */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    bind(fd, (struct sockaddr *)&own, sizeof(own.sun_family))) {
		run_say("%s: %s", option, kd_errno_text(errno));
		return 1;
	}
	if (length > REQUEST_BYTES) {
		run_say("%s: the list of hosts is longer than %u bytes: use several commands", option,
			REQUEST_BYTES);
		return 1;
	}
	if (connect(fd, (struct sockaddr *)&name, size) ||
	    send(fd, request, length, 0) != (ssize_t)length) {
		run_say("%s: process %u is not a kddsrun --survive on this host", option, kddsrun);
		return 1;
	}
	error = await_answer(fd, kddsrun);
	if (error == -ESRCH)
		run_say("%s: process %u has ended, and with it the job", option, kddsrun);
	else if (error == -EAGAIN)
		run_say("%s: process %u has not answered for %u s; it may still grant the request",
			option, kddsrun, ANSWER_S);
	else if (error)
		run_say("%s: process %u: %s", option, kddsrun, kd_errno_text(-error));
	else if (parcel.size)
		run_say("%s: %s", option, parcel.text);
	return error || parcel.size;
}
