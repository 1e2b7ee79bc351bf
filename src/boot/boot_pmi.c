/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1, which mpiexec.hydra and srun --mpi=pmi2 speak on the socket PMI_FD: lines "cmd=NAME
 * field=value ...", one answer to each request. (Slurm's plugin accepts PMI-1 from a client that
 * says so in its first line.)
 *
 *   init             version 1.1                  response_to_init
 *   get_maxes                                     maxes             longest space, key, value
 *   get_my_kvsname                                my_kvsname        the space of the job
 *   put              kvsname key value            put_result        a key can be put once
 *   barrier_in                                    barrier_out       gets see the puts before it
 *   get              kvsname key                  get_result        rc other than 0: no such key
 *   finalize                                      finalize_ack
 *   abort            exitcode                     none: the launcher kills the job
 *
 * A value may contain neither a space nor a newline, so it travels in hexadecimal. Slurm takes what
 * one read returns, 1024 bytes at most, for one request. So each request is shorter and is written
 * by one call.
 *
 * PMI does not report the death of a process. Hydra then kills the others, and so does srun
 * --kill-on-bad-exit=1, which is not srun's default. So under Slurm each rank watches the next one
 * on its host (a ring, with a pidfd). If that rank ends before the job does, the watcher asks the
 * launcher to abort the job. Nobody watches a rank that is alone on its host. Under hydra ranks do
 * not watch each other, since an abort request that arrives while hydra kills the others confuses
 * it.
 */
#define _GNU_SOURCE
#include "boot/boot_pmi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "boot/boot_launcher.h"

#define REQUEST_BYTES 1024    /* the most that Slurm reads at once */
#define LINE_BYTES 4096       /* the longest answer: a value of 1024 bytes and the text around it */
#define NAME_BYTES 257        /* the name of a space: 256 bytes and a NUL */
#define KEY_BYTES 64          /* accepted by every launcher, with a NUL */
#define RANKS_MAX (1 << 24)   /* a larger number in the environment is nonsense */
/* For the launcher to answer, and for the other ranks to reach a fence. */
#define ANSWER_MS 60000
#define FENCE_MS 300000
/* For the end of the last barrier to arrive after the watched rank has passed it and ended. */
#define GRACE_MS 10000
/* For the launcher to kill this process when asked to abort the job. */
#define KILL_MS 2000

struct pmi {
	int fd;    /* PMI_FD */
	int peer;  /* a pidfd of the next rank on this host, or -1 */
	int watch; /* an epoll of both */
	int error; /* what has gone wrong and been reported; later calls fail with it */
	int stopping;
	int answer_ms, fence_ms;
	uint32_t peer_rank;
	int key_max, value_max; /* key_max counts a NUL */
	char space[NAME_BYTES];
	size_t len; /* of what has arrived in line and is not used yet */
	char line[LINE_BYTES];
	char answer[LINE_BYTES];
};

int kd_pmi_field(const char *line, const char *name, char *value, size_t size)
{
	size_t name_len = strlen(name);

	while (*line) {
		size_t len = strcspn(line, " ");

		if (len > name_len && line[name_len] == '=' && !memcmp(line, name, name_len)) {
			len -= name_len + 1;
			if (len >= size)
				return -EMSGSIZE;
			memcpy(value, line + name_len + 1, len);
			value[len] = 0;
			return 0;
		}
		line += len;
		line += strspn(line, " ");
	}
	return -ENOENT;
}

static int parse(const char *text, int *value_p)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value != (int)value)
		return -EINVAL;
	*value_p = (int)value;
	return 0;
}

int kd_pmi_number(const char *line, const char *name, int *value_p)
{
	char text[16];
	int error = kd_pmi_field(line, name, text, sizeof(text));

	return error == -EMSGSIZE ? -EINVAL : error ? error : parse(text, value_p);
}

void kd_pmi_encode(const void *value, size_t size, char *text)
{
	const uint8_t *p = value;

	for (size_t i = 0; i < size; i++) {
		*text++ = "0123456789abcdef"[p[i] >> 4];
		*text++ = "0123456789abcdef"[p[i] & 15];
	}
	*text = 0;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int kd_pmi_decode(const char *text, void *value, size_t *size_p)
{
	size_t len = strlen(text);
	uint8_t *p = value;

	if (len % 2)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (digit(text[i]) < 0)
			return -EINVAL;
	if (len / 2 > *size_p)
		return -EMSGSIZE;
	for (size_t i = 0; i < len / 2; i++)
		p[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	*size_p = len / 2;
	return 0;
}

/* Reports an error from which this connection cannot recover, and records it. */
static int kd_printf(3, 4) broken(struct pmi *p, int error, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	kd_error("PMI: %s", text);
	return p->error = error;
}

/*
 * Asks the launcher to end the job, and waits until it kills this process too. If this process
 * ended first, the rank that watches it would report it as the dead one.
 */
static int peer_gone(struct pmi *p)
{
	static const char request[] = "cmd=abort exitcode=1\n";
	struct pollfd hangup = {.fd = p->fd};

	broken(p, -ECONNABORTED, "rank %u has ended before the job did", (unsigned)p->peer_rank);
	if (send(p->fd, request, strlen(request), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		kd_error("PMI: cannot ask the launcher to end the job: %s", kd_errno_text(errno));
	else
		poll(&hangup, 1, KILL_MS);
	return p->error;
}

/* Moves a line from what has arrived to answer. 1; 0: there is no whole line yet. */
static int take_line(struct pmi *p)
{
	char *end = memchr(p->line, '\n', p->len);
	size_t len;

	if (!end)
		return 0;
	len = (size_t)(end - p->line);
	memcpy(p->answer, p->line, len);
	p->answer[len] = 0;
	p->len -= len + 1;
	memmove(p->line, end + 1, p->len);
	return 1;
}

/* Receives what has arrived. 0, or -errno after a line. */
static int receive(struct pmi *p, const char *request)
{
	ssize_t n = recv(p->fd, p->line + p->len, sizeof(p->line) - p->len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return broken(p, -errno, "%s: cannot read from the launcher: %s", request,
			      kd_errno_text(errno));
	if (!n)
		return broken(p, -ECONNRESET, "%s: the launcher is gone", request);
	if (memchr(p->line + p->len, 0, (size_t)n))
		return broken(p, -EPROTO, "%s: the launcher sent something that is not text",
			      request);
	p->len += (size_t)n;
	if (p->len == sizeof(p->line) && !memchr(p->line, '\n', p->len))
		return broken(p, -EPROTO, "%s: the launcher sent a line of more than %d bytes",
			      request, LINE_BYTES);
	return 0;
}

/* Waits for a line from the launcher. */
static int await(struct pmi *p, const char *request, int timeout_ms)
{
	uint64_t deadline = kd_os_now_ns() + (uint64_t)timeout_ms * 1000000;
	int gone = 0;

	while (!take_line(p)) {
		struct pollfd fds[2] = {{.fd = p->fd, .events = POLLIN},
					{.fd = gone ? -1 : p->peer, .events = POLLIN}};
		uint64_t now = kd_os_now_ns();
		int n, error;

		if (now >= deadline && gone)
			return peer_gone(p);
		if (now >= deadline)
			return broken(p, -ETIMEDOUT, "%s: no answer from the launcher in %d ms",
				      request, timeout_ms);
		n = poll(fds, 2, (int)((deadline - now) / 1000000) + 1);
		if (n < 0 && errno != EINTR)
			return broken(p, -errno, "%s: poll: %s", request, kd_errno_text(errno));
		if (n > 0 && fds[0].revents) {
			error = receive(p, request);
			if (error)
				return error;
		}
		if (n > 0 && fds[1].revents) {
			if (!p->stopping)
				return peer_gone(p);
			/* It may have passed the last barrier, whose end has not been reported here
			 * yet. */
			gone = 1;
			deadline = kd_min(deadline,
					  now + (uint64_t)kd_min(GRACE_MS, timeout_ms) * 1000000);
		}
	}
	return 0;
}

/*
 * Sends a request and waits for the answer of that name, which is then in p->answer. Returns 0, or
 * -errno after a line. An rc other than 0 in the answer is an error, unless rc_p is given to return
 * it.
 */
static int kd_printf(5, 6) ask(struct pmi *p, const char *answer, int timeout_ms, int *rc_p,
			       const char *format, ...)
{
	char request[REQUEST_BYTES], name[32];
	va_list args;
	int len, error, rc = 0;
	ssize_t n;

	if (p->error)
		return p->error;
	va_start(args, format);
	len = vsnprintf(request, sizeof(request), format, args);
	va_end(args);
	if (len >= (int)sizeof(request) - 1)
		return broken(p, -EMSGSIZE, "a request of %d bytes is too long", len);
	request[len] = '\n';
	do
		n = send(p->fd, request, (size_t)len + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	request[kd_min(len, 64)] = 0; /* from here on only for error messages */
	if (n < 0)
		return broken(p, -errno, "%s: cannot write to the launcher: %s", request,
			      kd_errno_text(errno));
	if (n != len + 1)
		return broken(p, -EPROTO, "%s: the launcher does not read", request);

	error = await(p, request, timeout_ms);
	if (error)
		return error;
	if (kd_pmi_field(p->answer, "cmd", name, sizeof(name)) || strcmp(name, answer))
		return broken(p, -EPROTO, "%s: expected cmd=%s, the launcher answered %.128s",
			      request, answer, p->answer);
	error = kd_pmi_number(p->answer, "rc", &rc);
	if (error && error != -ENOENT)
		return broken(p, -EPROTO, "%s: the launcher answered %.128s", request, p->answer);
	if (rc && !rc_p)
		return broken(p, -EREMOTEIO, "%s: the launcher refuses: %.128s", request,
			      p->answer);
	if (rc_p)
		*rc_p = rc;
	return 0;
}

static int make_key(const struct pmi *p, uint32_t rank, const char *name, char key[KEY_BYTES])
{
	int len = snprintf(key, KEY_BYTES, "kdds%u-%s", (unsigned)rank, name);

	if (len < kd_min(KEY_BYTES, p->key_max))
		return 0;
	kd_error("PMI: the key %s... is too long", key);
	return -EMSGSIZE;
}

static int put(struct kd_boot *b, const char *name, const void *value, size_t size)
{
	struct pmi *p = b->state;
	char key[KEY_BYTES], text[2 * KD_BOOT_VALUE_BYTES + 1];
	int error = make_key(p, b->rank, name, key);

	if (error)
		return error;
	if (size > KD_BOOT_VALUE_BYTES || (int)(2 * size) >= p->value_max) {
		kd_error("PMI: put %s: a value of %zu bytes; the launcher takes fewer than %d", key,
			 size, p->value_max / 2);
		return -EMSGSIZE;
	}
	kd_pmi_encode(value, size, text);
	return ask(p, "put_result", p->answer_ms, NULL, "cmd=put kvsname=%s key=%s value=%s",
		   p->space, key, text);
}

static int fence(struct kd_boot *b, int share)
{
	struct pmi *p = b->state;

	(void)share;
	return ask(p, "barrier_out", p->fence_ms, NULL, "cmd=barrier_in");
}

static int get(struct kd_boot *b, uint32_t rank, const char *name, void *value, size_t *size_p)
{
	struct pmi *p = b->state;
	char key[KEY_BYTES], text[2 * KD_BOOT_VALUE_BYTES + 1];
	int rc, error = make_key(p, rank, name, key);

	if (!error)
		error = ask(p, "get_result", p->answer_ms, &rc, "cmd=get kvsname=%s key=%s",
			    p->space, key);
	if (error)
		return error;
	if (rc)
		return -ENOENT;
	error = kd_pmi_field(p->answer, "value", text, sizeof(text));
	if (!error)
		error = kd_pmi_decode(text, value, size_p);
	if (error && error != -EMSGSIZE)
		return broken(p, -EPROTO, "get %s: the launcher answered %.128s", key, p->answer);
	return error;
}

static int number_of(const char *name, int min, int max, int *value_p)
{
	const char *text = getenv(name);

	if (!text || parse(text, value_p) || *value_p < min || *value_p > max) {
		kd_error("PMI: %s=%s in the environment: a number from %d to %d is expected", name,
			 text ? text : "", min, max);
		return -EINVAL;
	}
	return 0;
}

static int shake_hands(struct pmi *p)
{
	int error = ask(p, "response_to_init", p->answer_ms, NULL,
			"cmd=init pmi_version=1 pmi_subversion=1");
	int version;

	if (error)
		return error;
	if (kd_pmi_number(p->answer, "pmi_version", &version) || version != 1)
		return broken(p, -EPROTO, "the launcher does not speak version 1: %.128s",
			      p->answer);
	error = ask(p, "maxes", p->answer_ms, NULL, "cmd=get_maxes");
	if (error)
		return error;
	if (kd_pmi_number(p->answer, "keylen_max", &p->key_max) ||
	    kd_pmi_number(p->answer, "vallen_max", &p->value_max))
		return broken(p, -EPROTO, "get_maxes: the launcher answered %.128s", p->answer);
	error = ask(p, "my_kvsname", p->answer_ms, NULL, "cmd=get_my_kvsname");
	if (error)
		return error;
	if (kd_pmi_field(p->answer, "kvsname", p->space, sizeof(p->space)))
		return broken(p, -EPROTO, "get_my_kvsname: the launcher answered %.128s",
			      p->answer);
	return 0;
}

/* "BOOT-ID/PID-NAMESPACE/PID": two ranks whose texts are equal before the last slash see each
 * other's pids. */
static void identify(uint32_t rank, char text[KD_BOOT_VALUE_BYTES])
{
	char boot[64] = "";
	struct stat st = {0};
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		ssize_t n = read(fd, boot, sizeof(boot) - 1);

		boot[kd_max(n, 0)] = 0;
		boot[strcspn(boot, "\n")] = 0;
		close(fd);
	}
	if (!boot[0] || stat("/proc/self/ns/pid", &st))
		/* Equal to nobody else's. */
		snprintf(boot, sizeof(boot), "%u", (unsigned)rank);
	snprintf(text, KD_BOOT_VALUE_BYTES, "%s/%llu/%d", boot, (unsigned long long)st.st_ino,
		 (int)getpid());
}

/* Finds the next rank on this host, if there is one, and opens a pidfd of it if the kernel has
 * pidfds. */
static int find_peer(struct kd_boot *b)
{
	struct pmi *p = b->state;
	char mine[KD_BOOT_VALUE_BYTES], theirs[KD_BOOT_VALUE_BYTES];
	size_t host_len;
	int pid, error;

	identify(b->rank, mine);
	host_len = (size_t)(strrchr(mine, '/') - mine) + 1;
	error = put(b, "pid", mine, strlen(mine));
	if (!error)
		error = fence(b, 1);
	for (uint32_t i = 1; !error && i < b->size; i++) {
		uint32_t rank = (b->rank + i) % b->size;
		size_t size = sizeof(theirs) - 1;

		error = get(b, rank, "pid", theirs, &size);
		if (error == -ENOENT || error == -EMSGSIZE)
			return broken(p, -EPROTO, "rank %u has not published its pid",
				      (unsigned)rank);
		if (error)
			break;
		theirs[size] = 0;
		if (size <= host_len || memcmp(mine, theirs, host_len) ||
		    parse(theirs + host_len, &pid) || pid <= 0)
			continue;
		p->peer = (int)syscall(SYS_pidfd_open, pid, 0);
		p->peer_rank = rank;
		return p->peer < 0 && errno == ESRCH ? peer_gone(p) : 0;
	}
	return error;
}

static int watch(const struct pmi *p, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return fd >= 0 && epoll_ctl(p->watch, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void cancel(struct kd_boot *b)
{
	struct pmi *p = b->state;

	if (p->watch >= 0)
		close(p->watch);
	if (p->peer >= 0)
		close(p->peer);
	close(p->fd);
	free(p);
	b->state = NULL;
	b->fd = -1;
}

static int start(struct kd_boot *b)
{
	struct pmi *p;
	int rank = 0, size = 0, fd = -1, error;
	struct stat st;

	error = number_of("PMI_FD", 0, INT32_MAX, &fd);
	if (!error)
		error = number_of("PMI_SIZE", 1, RANKS_MAX, &size);
	if (!error)
		error = number_of("PMI_RANK", 0, size - 1, &rank);
	if (error)
		return error;
	if (fstat(fd, &st) || !S_ISSOCK(st.st_mode)) {
		kd_error("PMI: PMI_FD=%d in the environment, which is not a launcher's socket",
			 fd);
		return -ENOTSOCK;
	}
	/* So that the launcher sees the end of this process, whatever programs it has started. */
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	p = b->state = kd_must(calloc(1, sizeof(*p)));
	p->fd = fd;
	p->peer = p->watch = -1;
	p->answer_ms = b->pmi_answer_ms ? b->pmi_answer_ms : ANSWER_MS;
	p->fence_ms = b->pmi_fence_ms ? b->pmi_fence_ms : FENCE_MS;
	b->rank = (uint32_t)rank;
	b->size = (uint32_t)size;
	error = shake_hands(p);
	if (!error && getenv("SLURM_STEP_ID") && getenv("PMI_JOBID"))
		error = find_peer(b);
	if (!error) {
		p->watch = epoll_create1(EPOLL_CLOEXEC);
		error = p->watch < 0 ? -errno : watch(p, p->fd);
		if (!error)
			error = watch(p, p->peer);
		if (error)
			broken(p, error, "epoll: %s", kd_errno_text(-error));
	}
	if (error) {
		cancel(b);
		return error;
	}
	b->fd = p->watch;
	return 0;
}

static int event(struct kd_boot *b)
{
	struct pmi *p = b->state;
	struct pollfd fds[2] = {{.fd = p->fd, .events = POLLIN},
				{.fd = p->peer, .events = POLLIN}};

	if (p->error)
		return p->error;
	if (poll(fds, 2, 0) <= 0)
		return 0;
	if (fds[1].revents)
		return peer_gone(p);
	if (receive(p, "between requests"))
		return p->error;
	if (take_line(p))
		return broken(p, -EPROTO, "the launcher sent an unrequested line: %.128s",
			      p->answer);
	return 0;
}

static int present(const struct kd_boot *b)
{
	(void)b;
	return getenv("PMI_FD") && getenv("PMI_RANK") && getenv("PMI_SIZE");
}

/* The fence: no rank may end while another one would take its end for a death. */
static void stop(struct kd_boot *b)
{
	struct pmi *p = b->state;

	p->stopping = 1;
	if (!p->error && !fence(b, 0))
		ask(p, "finalize_ack", p->answer_ms, NULL, "cmd=finalize");
	cancel(b);
}

const struct kd_boot_launcher kd_boot_pmi = {
	"PMI", present, start, put, fence, get, event, stop, cancel, NULL,
	NULL, NULL, NULL,
};
