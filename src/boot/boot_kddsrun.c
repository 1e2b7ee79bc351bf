/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Under kddsrun: a stream socket, inherited from the launcher or its agent on this host, carries
 * the frames of control.h. Requests are answered in order, one at a time. Only ABORT arrives
 * unrequested and, before FENCED, the values that are shared with all ranks. The socket outlives
 * kd_boot_stop, so that a job of one rank can initialise the library again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "boot/boot_launcher.h"
#include "boot/control.h"
#include "boot/published.h"
#include "kdds.h"

/* Normally waits end long before: the launcher sees ranks and hosts die, and ends the job. These
 * limits are for what it cannot see. */
#define ANSWER_SECONDS 60
#define FENCE_SECONDS 3600 /* some programs take long to reach kdds_init on one rank */

static int control = -1;
static uint8_t input[KD_CONTROL_RANK_BYTES];
static size_t filled;
static int aborted; /* ABORT has arrived */
static struct kd_published shared; /* values, by the last fence */

static int present(void)
{
	return control >= 0 || getenv(KD_CONTROL_ENV);
}

/* A descriptor number that was inherited by mistake may name anything by now, so the launcher also
 * gives the inode of the socket. */
static int adopt(void)
{
	const char *text = getenv(KD_CONTROL_ENV);
	struct stat s;
	uintmax_t inode;
	int fd, end = 0;

	if (sscanf(text, "%d:%ju%n", &fd, &inode, &end) != 2 || text[end] || fd < 0) {
		kd_error(KD_CONTROL_ENV "=%s: only kddsrun sets this variable; "
			 "unset it, or start the program with kddsrun",
			 text);
		return -EINVAL;
	}
	if (fstat(fd, &s) || !S_ISSOCK(s.st_mode) || s.st_ino != inode) {
		kd_error(KD_CONTROL_ENV "=%s: descriptor %d is not kddsrun's socket: something "
					"between kddsrun and this program closed it; let it be "
					"inherited, or unset "
					"the variable for a job of one rank",
			 text, fd);
		return -ENOTSOCK;
	}
	if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		kd_error(KD_CONTROL_ENV "=%s: %s", text, kd_errno_text(errno));
		return -EBADF;
	}
	control = fd;
	filled = 0;
	unsetenv(KD_CONTROL_ENV); /* programs that this one starts are not ranks */
	return 0;
}

static int lost(int error)
{
	if (aborted)
		return -ECANCELED;
	if (error == -EPROTO)
		kd_error("rank %u: kddsrun's control socket carries invalid data: does another "
			 "process use it?",
			 kd_boot.rank);
	else
		kd_error("rank %u: kddsrun is gone (%s)", kd_boot.rank,
			 error ? kd_errno_text(-error) : "end of its control socket");
	return error ? error : -ECONNRESET;
}

static int send_frame(uint16_t type, uint32_t rank, const void *payload, size_t size)
{
	uint8_t frame[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {frame, frame + sizeof(frame), 0};
	size_t sent = 0, length;

	kd_control_pack_header(&p, (uint32_t)size, type, rank);
	kd_pack_bytes(&p, payload, size);
	kd_assert(!p.bad);
	length = (size_t)(p.at - frame);
	while (sent < length) {
		ssize_t n = send(control, frame + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		struct pollfd wait = {control, POLLOUT, 0};

		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EAGAIN && poll(&wait, 1, ANSWER_SECONDS * 1000) == 0)
			return lost(-ETIMEDOUT);
		else if (errno != EAGAIN && errno != EINTR)
			return lost(-errno);
	}
	return 0;
}

/* Whether input begins with a whole frame. 1, 0 or -EPROTO. */
static int whole_frame(struct kd_control_header *header_p)
{
	struct kd_unpack u = {input, input + filled, 0};

	if (filled < KD_CONTROL_HEADER_BYTES)
		return 0;
	kd_control_unpack_header(&u, header_p);
	if (u.bad || header_p->size > sizeof(input) - KD_CONTROL_HEADER_BYTES)
		return -EPROTO;
	return filled >= KD_CONTROL_HEADER_BYTES + header_p->size;
}

/* Receives what has arrived. 0, or -errno after a line. */
static int receive(void)
{
	ssize_t n = recv(control, input + filled, sizeof(input) - filled, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : lost(-errno);
	if (!n)
		return lost(0);
	filled += (size_t)n;
	return 0;
}

static void drop_frame(const struct kd_control_header *header)
{
	size_t length = KD_CONTROL_HEADER_BYTES + header->size;

	filled -= length;
	memmove(input, input + length, filled);
}

/* Unpacks the payload of a VALUE frame. Returns its status (0: there is a value) or -EPROTO. */
static int unpack_value(const uint8_t *payload, size_t payload_bytes, const char **key_p,
			const void **value_p, size_t *size_p)
{
	struct kd_unpack u = {payload, payload + payload_bytes, 0};
	int status = (int)kd_unpack_uint(&u, 4);

	*key_p = kd_unpack_string(&u);
	*value_p = kd_unpack_block(&u, size_p);
	return kd_unpack_complete(&u) ? status : -EPROTO;
}

static int keep_shared(const struct kd_control_header *header)
{
	const char *key;
	const void *value;
	size_t size;
	int status = unpack_value(input + KD_CONTROL_HEADER_BYTES, header->size, &key, &value,
				  &size);

	if (status || header->rank >= shared.ranks)
		return -EPROTO;
	return kd_published_put(&shared, header->rank, key, value, size);
}

/* Waits for a frame of this type, the only one that can arrive now besides shared values, and
 * copies its payload. */
static int await(uint16_t type, uint64_t seconds, uint8_t *payload, size_t *size_p)
{
	uint64_t end_ns = kd_os_now_ns() + seconds * 1000000000u;

	for (;;) {
		struct kd_control_header h;
		struct pollfd wait = {control, POLLIN, 0};
		uint64_t now_ns = kd_os_now_ns();
		int whole = whole_frame(&h), error;

		if (whole < 0)
			return lost(whole);
		if (whole) {
			aborted |= h.type == KD_CONTROL_ABORT;
			if (h.type == KD_CONTROL_VALUE && type == KD_CONTROL_FENCED) {
				error = keep_shared(&h);
				if (error)
					return lost(error);
				drop_frame(&h);
				continue;
			}
			if (h.type != type)
				return lost(-EPROTO);
			memcpy(payload, input + KD_CONTROL_HEADER_BYTES, h.size);
			*size_p = h.size;
			drop_frame(&h);
			return 0;
		}
		if (now_ns >= end_ns) {
			kd_error("rank %u: gave up after waiting %u s for %s", kd_boot.rank,
				 (unsigned)seconds,
				 type == KD_CONTROL_FENCED ? "the other ranks to start"
							   : "kddsrun to answer");
			return -ETIMEDOUT;
		}
		poll(&wait, 1, (int)kd_min((end_ns - now_ns) / 1000000u + 1, 60000u));
		error = receive();
		if (error)
			return error;
	}
}

static int welcome(void)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_unpack u = {payload, payload, 0};
	uint32_t protocol;
	size_t size;
	int error = await(KD_CONTROL_WELCOME, ANSWER_SECONDS, payload, &size);

	if (error)
		return error;
	u.end = payload + size;
	protocol = (uint32_t)kd_unpack_uint(&u, 4);
	if (protocol != KD_CONTROL_PROTOCOL) {
		kd_error("kddsrun speaks protocol %u, this library (%s) protocol %u: use the "
			 "kddsrun that came with it",
			 protocol, kdds_version(), KD_CONTROL_PROTOCOL);
		return -EPROTO;
	}
	kd_boot.rank = (uint32_t)kd_unpack_uint(&u, 4);
	kd_boot.size = (uint32_t)kd_unpack_uint(&u, 4);
	kd_boot.local_rank = (uint32_t)kd_unpack_uint(&u, 4);
	kd_boot.local_size = (uint32_t)kd_unpack_uint(&u, 4);
	kd_unpack_bytes(&u, kd_boot.secret, sizeof(kd_boot.secret));
	if (!kd_unpack_complete(&u) || kd_boot.rank >= kd_boot.size ||
	    kd_boot.local_rank >= kd_boot.local_size)
		return lost(-EPROTO);
	return 0;
}

static int start(void)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};
	int error = control < 0 ? adopt() : 0;

	if (error)
		return error;
	kd_pack_uint(&p, KD_CONTROL_MAGIC, 4);
	kd_pack_uint(&p, KD_CONTROL_PROTOCOL, 4);
	kd_pack_uint(&p, KDDS_VERSION, 4);
	kd_pack_uint(&p, kd_boot.build, 8);
	kd_pack_uint(&p, (uint32_t)getpid(), 4);
	error = send_frame(KD_CONTROL_HELLO, 0, payload, (size_t)(p.at - payload));
	if (!error)
		error = welcome();
	if (!error)
		kd_boot.fd = control;
	return error;
}

static int put(const char *key, const void *value, size_t size)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	if (!kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES) {
		kd_error("cannot publish %zu bytes under the name %s", size, key);
		return -EINVAL;
	}
	kd_pack_string(&p, key);
	kd_pack_block(&p, value, size);
	return send_frame(KD_CONTROL_PUT, kd_boot.rank, payload, (size_t)(p.at - payload));
}

static int fence(int share)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES] = {(uint8_t)share};
	size_t size;
	int error = send_frame(KD_CONTROL_FENCE, kd_boot.rank, payload, 1);

	kd_published_fini(&shared);
	kd_published_init(&shared, kd_boot.size);
	return error ? error : await(KD_CONTROL_FENCED, FENCE_SECONDS, payload, &size);
}

/* Asks the launcher for a value that has not been shared. */
static int ask(uint32_t rank, const char *key, uint8_t answer[KD_CONTROL_RANK_BYTES],
	       const void **value_p, size_t *size_p)
{
	struct kd_pack p = {answer, answer + KD_CONTROL_RANK_BYTES, 0};
	int error;

	kd_pack_string(&p, key);
	error = send_frame(KD_CONTROL_GET, rank, answer, (size_t)(p.at - answer));
	if (!error)
		error = await(KD_CONTROL_VALUE, ANSWER_SECONDS, answer, size_p);
	if (error)
		return error;
	error = unpack_value(answer, *size_p, &key, value_p, size_p);
	if (error < 0)
		return lost(error);
	return error ? -ENOENT : 0;
}

static int get(uint32_t rank, const char *key, void *value, size_t *size_p)
{
	uint8_t answer[KD_CONTROL_RANK_BYTES];
	const void *found;
	size_t size;
	int error;

	if (!kd_control_key_valid(key))
		return -ENOENT;
	found = kd_published_get(&shared, rank, key, &size);
	error = found ? 0 : ask(rank, key, answer, &found, &size);
	if (error)
		return error;
	if (size > *size_p)
		return -EMSGSIZE;
	memcpy(value, found, size);
	*size_p = size;
	return 0;
}

/* Only ABORT arrives unrequested. */
static int event(void)
{
	struct kd_control_header h;
	int whole = whole_frame(&h), error;

	if (!whole) {
		error = receive();
		if (error)
			return error;
		whole = whole_frame(&h);
	}
	if (whole > 0)
		aborted |= h.type == KD_CONTROL_ABORT;
	return whole ? lost(-EPROTO) : 0;
}

static void stop(void)
{
	kd_published_fini(&shared);
	send_frame(KD_CONTROL_BYE, kd_boot.rank, NULL, 0);
}

const struct kd_boot_launcher kd_boot_kddsrun = {
	"kddsrun", present, start, put, fence, get, event, stop,
};
