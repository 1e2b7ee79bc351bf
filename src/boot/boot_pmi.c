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
/* For the end of the last barrier to arrive after the watched rank has passed it and ended. */
#define GRACE_MS 10000
/* For the launcher to kill this process when asked to abort the job. */
#define KILL_MS 2000

int kd_pmi_answer_ms = 60000, kd_pmi_fence_ms = 300000;

static struct {
	int fd;    /* PMI_FD */
	int peer;  /* a pidfd of the next rank on this host, or -1 */
	int watch; /* an epoll of both */
	int error; /* what has gone wrong and been reported; later calls fail with it */
	int stopping;
	uint32_t peer_rank;
	int key_max, value_max; /* key_max counts a NUL */
	char space[NAME_BYTES];
	size_t len; /* of what has arrived in line and is not used yet */
	char line[LINE_BYTES];
	char answer[LINE_BYTES];
} pmi = {.fd = -1, .peer = -1, .watch = -1};

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
static int kd_printf(2, 3) broken(int error, const char *format, ...)
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
	return pmi.error = error;
}

/*
 * Asks the launcher to end the job, and waits until it kills this process too. If this process
 * ended first, the rank that watches it would report it as the dead one.
 */
static int peer_gone(void)
{
	static const char request[] = "cmd=abort exitcode=1\n";
	struct pollfd hangup = {.fd = pmi.fd};

	broken(-ECONNABORTED, "rank %u has ended before the job did", (unsigned)pmi.peer_rank);
	if (send(pmi.fd, request, strlen(request), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		kd_error("PMI: cannot ask the launcher to end the job: %s", kd_errno_text(errno));
	else
		poll(&hangup, 1, KILL_MS);
	return pmi.error;
}

/* Moves a line from what has arrived to answer. 1; 0: there is no whole line yet. */
static int take_line(void)
{
	char *end = memchr(pmi.line, '\n', pmi.len);
	size_t len;

	if (!end)
		return 0;
	len = (size_t)(end - pmi.line);
	memcpy(pmi.answer, pmi.line, len);
	pmi.answer[len] = 0;
	pmi.len -= len + 1;
	memmove(pmi.line, end + 1, pmi.len);
	return 1;
}

/* Receives what has arrived. 0, or -errno after a line. */
static int receive(const char *request)
{
	ssize_t n = recv(pmi.fd, pmi.line + pmi.len, sizeof(pmi.line) - pmi.len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return broken(-errno, "%s: cannot read from the launcher: %s", request,
			      kd_errno_text(errno));
	if (!n)
		return broken(-ECONNRESET, "%s: the launcher is gone", request);
	if (memchr(pmi.line + pmi.len, 0, (size_t)n))
		return broken(-EPROTO, "%s: the launcher sent something that is not text", request);
	pmi.len += (size_t)n;
	if (pmi.len == sizeof(pmi.line) && !memchr(pmi.line, '\n', pmi.len))
		return broken(-EPROTO, "%s: the launcher sent a line of more than %d bytes",
			      request, LINE_BYTES);
	return 0;
}

/* Waits for a line from the launcher. */
static int await(const char *request, int timeout_ms)
{
	uint64_t deadline = kd_os_now_ns() + (uint64_t)timeout_ms * 1000000;
	int gone = 0;

	while (!take_line()) {
		struct pollfd fds[2] = {{.fd = pmi.fd, .events = POLLIN},
					{.fd = gone ? -1 : pmi.peer, .events = POLLIN}};
		uint64_t now = kd_os_now_ns();
		int n, error;

		if (now >= deadline && gone)
			return peer_gone();
		if (now >= deadline)
			return broken(-ETIMEDOUT, "%s: no answer from the launcher in %d ms",
				      request, timeout_ms);
		n = poll(fds, 2, (int)((deadline - now) / 1000000) + 1);
		if (n < 0 && errno != EINTR)
			return broken(-errno, "%s: poll: %s", request, kd_errno_text(errno));
		if (n > 0 && fds[0].revents) {
			error = receive(request);
			if (error)
				return error;
		}
		if (n > 0 && fds[1].revents) {
			if (!pmi.stopping)
				return peer_gone();
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
 * Sends a request and waits for the answer of that name, which is then in pmi.answer. Returns 0, or
 * -errno after a line. An rc other than 0 in the answer is an error, unless rc_p is given to return
 * it.
 */
static int kd_printf(4, 5) ask(const char *answer, int timeout_ms, int *rc_p,
			       const char *format, ...)
{
	char request[REQUEST_BYTES], name[32];
	va_list args;
	int len, error, rc = 0;
	ssize_t n;

	if (pmi.error)
		return pmi.error;
	va_start(args, format);
	len = vsnprintf(request, sizeof(request), format, args);
	va_end(args);
	if (len >= (int)sizeof(request) - 1)
		return broken(-EMSGSIZE, "a request of %d bytes is too long", len);
	request[len] = '\n';
	do
		n = send(pmi.fd, request, (size_t)len + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	request[kd_min(len, 64)] = 0; /* from here on only for error messages */
	if (n < 0)
		return broken(-errno, "%s: cannot write to the launcher: %s", request,
			      kd_errno_text(errno));
	if (n != len + 1)
		return broken(-EPROTO, "%s: the launcher does not read", request);

	error = await(request, timeout_ms);
	if (error)
		return error;
	if (kd_pmi_field(pmi.answer, "cmd", name, sizeof(name)) || strcmp(name, answer))
		return broken(-EPROTO, "%s: expected cmd=%s, the launcher answered %.128s", request,
			      answer, pmi.answer);
	error = kd_pmi_number(pmi.answer, "rc", &rc);
	if (error && error != -ENOENT)
		return broken(-EPROTO, "%s: the launcher answered %.128s", request, pmi.answer);
	if (rc && !rc_p)
		return broken(-EREMOTEIO, "%s: the launcher refuses: %.128s", request, pmi.answer);
	if (rc_p)
		*rc_p = rc;
	return 0;
}

static int make_key(uint32_t rank, const char *name, char key[KEY_BYTES])
{
	int len = snprintf(key, KEY_BYTES, "kdds%u-%s", (unsigned)rank, name);

	if (len < kd_min(KEY_BYTES, pmi.key_max))
		return 0;
	kd_error("PMI: the key %s... is too long", key);
	return -EMSGSIZE;
}

static int put(const char *name, const void *value, size_t size)
{
	char key[KEY_BYTES], text[2 * KD_BOOT_VALUE_BYTES + 1];
	int error = make_key(kd_boot.rank, name, key);

	if (error)
		return error;
	if (size > KD_BOOT_VALUE_BYTES || (int)(2 * size) >= pmi.value_max) {
		kd_error("PMI: put %s: a value of %zu bytes; the launcher takes fewer than %d", key,
			 size, pmi.value_max / 2);
		return -EMSGSIZE;
	}
	kd_pmi_encode(value, size, text);
	return ask("put_result", kd_pmi_answer_ms, NULL, "cmd=put kvsname=%s key=%s value=%s",
		   pmi.space, key, text);
}

static int fence(int share)
{
	(void)share;
	return ask("barrier_out", kd_pmi_fence_ms, NULL, "cmd=barrier_in");
}

static int get(uint32_t rank, const char *name, void *value, size_t *size_p)
{
	char key[KEY_BYTES], text[2 * KD_BOOT_VALUE_BYTES + 1];
	int rc, error = make_key(rank, name, key);

	if (!error)
		error = ask("get_result", kd_pmi_answer_ms, &rc, "cmd=get kvsname=%s key=%s",
			    pmi.space, key);
	if (error)
		return error;
	if (rc)
		return -ENOENT;
	error = kd_pmi_field(pmi.answer, "value", text, sizeof(text));
	if (!error)
		error = kd_pmi_decode(text, value, size_p);
	if (error && error != -EMSGSIZE)
		return broken(-EPROTO, "get %s: the launcher answered %.128s", key, pmi.answer);
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

static int shake_hands(void)
{
	int error = ask("response_to_init", kd_pmi_answer_ms, NULL,
			"cmd=init pmi_version=1 pmi_subversion=1");
	int version;

	if (error)
		return error;
	if (kd_pmi_number(pmi.answer, "pmi_version", &version) || version != 1)
		return broken(-EPROTO, "the launcher does not speak version 1: %.128s", pmi.answer);
	error = ask("maxes", kd_pmi_answer_ms, NULL, "cmd=get_maxes");
	if (error)
		return error;
	if (kd_pmi_number(pmi.answer, "keylen_max", &pmi.key_max) ||
	    kd_pmi_number(pmi.answer, "vallen_max", &pmi.value_max))
		return broken(-EPROTO, "get_maxes: the launcher answered %.128s", pmi.answer);
	error = ask("my_kvsname", kd_pmi_answer_ms, NULL, "cmd=get_my_kvsname");
	if (error)
		return error;
	if (kd_pmi_field(pmi.answer, "kvsname", pmi.space, sizeof(pmi.space)))
		return broken(-EPROTO, "get_my_kvsname: the launcher answered %.128s", pmi.answer);
	return 0;
}

/* "BOOT-ID/PID-NAMESPACE/PID": two ranks whose texts are equal before the last slash see each
 * other's pids. */
static void identify(char text[KD_BOOT_VALUE_BYTES])
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
		snprintf(boot, sizeof(boot), "%u", (unsigned)kd_boot.rank);
	snprintf(text, KD_BOOT_VALUE_BYTES, "%s/%llu/%d", boot, (unsigned long long)st.st_ino,
		 (int)getpid());
}

/* Finds the next rank on this host, if there is one, and opens a pidfd of it if the kernel has
 * pidfds. */
static int find_peer(void)
{
	char mine[KD_BOOT_VALUE_BYTES], theirs[KD_BOOT_VALUE_BYTES];
	size_t host_len;
	int pid, error;

	identify(mine);
	host_len = (size_t)(strrchr(mine, '/') - mine) + 1;
	error = put("pid", mine, strlen(mine));
	if (!error)
		error = fence(1);
	for (uint32_t i = 1; !error && i < kd_boot.size; i++) {
		uint32_t rank = (kd_boot.rank + i) % kd_boot.size;
		size_t size = sizeof(theirs) - 1;

		error = get(rank, "pid", theirs, &size);
		if (error == -ENOENT || error == -EMSGSIZE)
			return broken(-EPROTO, "rank %u has not published its pid", (unsigned)rank);
		if (error)
			break;
		theirs[size] = 0;
		if (size <= host_len || memcmp(mine, theirs, host_len) ||
		    parse(theirs + host_len, &pid) || pid <= 0)
			continue;
		pmi.peer = (int)syscall(SYS_pidfd_open, pid, 0);
		pmi.peer_rank = rank;
		return pmi.peer < 0 && errno == ESRCH ? peer_gone() : 0;
	}
	return error;
}

static int watch(int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return fd >= 0 && epoll_ctl(pmi.watch, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void close_all(void)
{
	if (pmi.watch >= 0)
		close(pmi.watch);
	if (pmi.peer >= 0)
		close(pmi.peer);
	if (pmi.fd >= 0)
		close(pmi.fd);
	pmi.fd = pmi.peer = pmi.watch = kd_boot.fd = -1;
}

static int start(void)
{
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
	pmi.fd = fd;
	pmi.error = pmi.stopping = 0;
	pmi.len = 0;
	kd_boot.rank = (uint32_t)rank;
	kd_boot.size = (uint32_t)size;
	error = shake_hands();
	if (!error && getenv("SLURM_STEP_ID") && getenv("PMI_JOBID"))
		error = find_peer();
	if (!error) {
		pmi.watch = epoll_create1(EPOLL_CLOEXEC);
		error = pmi.watch < 0 ? -errno : watch(pmi.fd);
		if (!error)
			error = watch(pmi.peer);
		if (error)
			broken(error, "epoll: %s", kd_errno_text(-error));
	}
	if (error) {
		close_all();
		return error;
	}
	kd_boot.fd = pmi.watch;
	return 0;
}

static int event(void)
{
	struct pollfd fds[2] = {{.fd = pmi.fd, .events = POLLIN},
				{.fd = pmi.peer, .events = POLLIN}};

	if (pmi.error)
		return pmi.error;
	if (poll(fds, 2, 0) <= 0)
		return 0;
	if (fds[1].revents)
		return peer_gone();
	if (receive("between requests"))
		return pmi.error;
	if (take_line())
		return broken(-EPROTO, "the launcher sent an unrequested line: %.128s", pmi.answer);
	return 0;
}

static int present(void)
{
	return getenv("PMI_FD") && getenv("PMI_RANK") && getenv("PMI_SIZE");
}

/* The fence: no rank may end while another one would take its end for a death. */
static void stop(void)
{
	pmi.stopping = 1;
	if (!pmi.error && !fence(0))
		ask("finalize_ack", kd_pmi_answer_ms, NULL, "cmd=finalize");
	close_all();
}

const struct kd_boot_launcher kd_boot_pmi = {"PMI", present, start, put, fence, get, event, stop};
