/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"

#define READ_BYTES 65536
#define NOISE_BYTES 65536 /* skipped at most, before the magic */

void run_bytes_add(struct run_bytes *b, const void *data, size_t size)
{
	if (b->head + b->size + size > b->room) {
		if (b->head)
			memmove(b->data, b->data + b->head, b->size);
		b->head = 0;
		if (b->size + size > b->room) {
			b->room = kd_max(b->size + size, 2 * b->room);
			b->data = run_alloc(b->data, b->room);
		}
	}
	if (size)
		memcpy(b->data + b->head + b->size, data, size);
	b->size += size;
}

void run_bytes_drop(struct run_bytes *b, size_t size)
{
	b->size -= size;
	b->head = b->size ? b->head + size : 0;
}

void run_bytes_free(struct run_bytes *b)
{
	free(b->data);
	*b = (struct run_bytes){NULL, 0, 0, 0};
}

/* Takes the descriptors away from the link. */
static void detach(struct run_link *link, int *in_p, int *out_p)
{
	run_watch_remove(&link->in);
	run_watch_remove(&link->out);
	*in_p = link->in.fd;
	*out_p = link->out.fd;
	link->in.fd = link->out.fd = -1;
	/* received stays: the frame being handled may be in it. */
	run_bytes_free(&link->unsent);
}

static void close_both(int in, int out)
{
	if (out != in)
		close(out);
	close(in);
}

/* The other side sees the end only after the callback has returned. */
static void broken(struct run_link *link, int error)
{
	int in, out;

	if (!run_link_is_open(link))
		return;
	detach(link, &in, &out);
	link->closed(link, error);
	close_both(in, out);
}

/* Drops everything up to the magic, and the magic. */
static int find_magic(struct run_link *link)
{
	struct run_bytes *b = &link->received;
	size_t length = strlen(RUN_LINK_MAGIC);
	uint8_t *found = b->size ? memmem(b->data + b->head, b->size, RUN_LINK_MAGIC, length) :
				   NULL;

	if (!found)
		return b->size > NOISE_BYTES ? -EPROTO : 0;
	run_bytes_drop(b, (size_t)(found - (b->data + b->head)) + length);
	link->waiting_magic = 0;
	return 0;
}

/* Returns 1 if it handled a frame, 0 if there is no complete one, or -EPROTO. */
static int handle_frame(struct run_link *link)
{
	struct run_bytes *b = &link->received;
	struct kd_unpack u = {b->data + b->head, b->data + b->head + b->size, 0};
	struct kd_control_header h;

	if (b->size < KD_CONTROL_HEADER_BYTES)
		return 0;
	kd_control_unpack_header(&u, &h);
	if (u.bad || h.size > link->frame_bytes - KD_CONTROL_HEADER_BYTES)
		return -EPROTO;
	if (b->size < KD_CONTROL_HEADER_BYTES + h.size)
		return 0;
	u.end = u.at + h.size;
	if (link->message(link, &h, &u))
		return -EPROTO;
	if (run_link_is_open(link))
		run_bytes_drop(b, KD_CONTROL_HEADER_BYTES + h.size);
	return 1;
}

static void handle_received(struct run_link *link)
{
	int error = link->waiting_magic ? find_magic(link) : 0;

	while (!error && !link->waiting_magic && run_link_is_open(link)) {
		int handled = handle_frame(link);

		if (!handled)
			return;
		error = kd_min(handled, 0);
	}
	if (error)
		broken(link, error);
}

/* Returns the bytes read; 0: none now, or the link is closed. */
static size_t take(struct run_link *link)
{
	static uint8_t block[READ_BYTES];
	ssize_t n = run_link_is_open(link) ? read(link->in.fd, block, sizeof(block)) : -1;

	if (n > 0) {
		link->heard_ns = kd_os_now_ns();
		run_bytes_add(&link->received, block, (size_t)n);
		handle_received(link);
		return (size_t)n;
	}
	if (run_link_is_open(link) && (!n || (errno != EAGAIN && errno != EINTR)))
		broken(link, n ? -errno : 0);
	return 0;
}

void run_link_drain(struct run_link *link)
{
	while (take(link))
		;
}

/* One descriptor for both directions is watched once: poll refuses more entries than this process
 * may have descriptors. */
static int is_single(const struct run_link *link)
{
	return link->in.fd == link->out.fd;
}

/* Errors are left to the reading side, which may still have messages to deliver. */
static void push(struct run_link *link)
{
	struct run_bytes *b = &link->unsent;

	while (b->size) {
		ssize_t n = write(link->out.fd, b->data + b->head, b->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			b->size = b->head = 0;
		if (n < 0)
			break;
		run_bytes_drop(b, (size_t)n);
		link->sent_ns = kd_os_now_ns();
	}
	if (is_single(link))
		link->in.events = b->size ? POLLIN | POLLOUT : POLLIN;
	else
		link->out.events = b->size ? POLLOUT : 0;
}

static void in_ready(struct run_watch *watch, short events)
{
	struct run_link *link = container_of(watch, struct run_link, in);

	if (events & POLLOUT)
		push(link);
	if (events & ~POLLOUT)
		take(link);
}

static void out_ready(struct run_watch *watch, short events)
{
	(void)events;
	push(container_of(watch, struct run_link, out));
}

void run_link_open(struct run_link *link, int in, int out)
{
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
	link->in = (struct run_watch){in, POLLIN, 0, in_ready};
	link->out = (struct run_watch){out, 0, 0, out_ready};
	link->heard_ns = link->sent_ns = kd_os_now_ns();
	run_bytes_free(&link->received); /* a previous peer's */
	run_watch_add(&link->in);
	if (!is_single(link))
		run_watch_add(&link->out);
}

int run_link_is_open(const struct run_link *link)
{
	return link->in.fd >= 0;
}

void run_link_close(struct run_link *link)
{
	int in, out;

	if (!run_link_is_open(link))
		return;
	detach(link, &in, &out);
	close_both(in, out);
}

static void add(struct run_link *link, const void *bytes, size_t size)
{
	if (run_link_is_open(link))
		run_bytes_add(&link->unsent, bytes, size);
}

static void add_frame(struct run_link *link, uint16_t type, uint32_t rank, const void *payload,
		      size_t size)
{
	uint8_t header[KD_CONTROL_HEADER_BYTES];
	struct kd_pack p = {header, header + sizeof(header), 0};

	kd_control_pack_header(&p, (uint32_t)size, type, rank);
	add(link, header, sizeof(header));
	add(link, payload, size);
}

void run_link_flush(struct run_link *link)
{
	if (!run_link_is_open(link))
		return;
	push(link);
	if (link->unsent.size > link->unsent_bytes)
		broken(link, -ENOBUFS);
}

void run_link_send_raw(struct run_link *link, const void *bytes, size_t size)
{
	add(link, bytes, size);
	run_link_flush(link);
}

void run_link_send(struct run_link *link, uint16_t type, uint32_t rank, const void *payload,
		   size_t size)
{
	add_frame(link, type, rank, payload, size);
	run_link_flush(link);
}

void run_link_add_value(void *arg, uint32_t rank, const char *key, const void *value, size_t size)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, value ? 0 : ENOENT, 4);
	kd_pack_string(&p, key);
	kd_pack_block(&p, value, size);
	add_frame(arg, KD_CONTROL_VALUE, rank, payload, (size_t)(p.at - payload));
}
