/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of control.h's frames in both directions, on the poll loop. Nothing blocks: what
 * cannot be written yet is kept here. */
#ifndef KD_RUN_LINK_H
#define KD_RUN_LINK_H

#include "boot/control.h"
#include "kddsrun/run_loop.h"

struct run_bytes {
	uint8_t *data;
	size_t head, size, room; /* contents: size bytes from data + head on */
};

void run_bytes_add(struct run_bytes *b, const void *data, size_t size);
void run_bytes_drop(struct run_bytes *b, size_t size);
void run_bytes_free(struct run_bytes *b);

struct run_link {
	struct run_watch in, out; /* may be the same descriptor; -1: closed */
	struct run_bytes received, unsent;
	size_t frame_bytes;  /* a longer frame is malformed */
	size_t unsent_bytes; /* with more unsent, the link breaks: the other side does not read */
	/* everything before RUN_LINK_MAGIC is skipped: login scripts print things */
	int waiting_magic;
	uint64_t heard_ns, sent_ns;
	/* Called for a frame; may close the link. Returns nonzero if the frame is malformed: then
	 * closed is called with -EPROTO. */
	int (*message)(struct run_link *link, const struct kd_control_header *header,
		       struct kd_unpack *payload);
	/* No more frames will come: the other side closed the link (0), or -errno. The link is
	 * closed already, but the other side sees that only after the call. */
	void (*closed)(struct run_link *link, int error);
};

#define RUN_LINK_MAGIC "\nkddsrun-agent\n"

/* The caller has set the link's limits and callbacks. The link owns the descriptors from now
 * on. */
void run_link_open(struct run_link *link, int in, int out);
void run_link_close(struct run_link *link);
int run_link_is_open(const struct run_link *link);
void run_link_send(struct run_link *link, uint16_t type, uint32_t rank, const void *payload,
		   size_t size);
/* Adds a VALUE frame, which is sent with the next frame or by run_link_flush: there may be
 * thousands. value NULL: there is none. arg is the link: kd_published_each calls this. */
void run_link_add_value(void *arg, uint32_t rank, const char *key, const void *value, size_t size);
void run_link_flush(struct run_link *link);
/* Sends bytes outside any frame. */
void run_link_send_raw(struct run_link *link, const void *bytes, size_t size);
/* Reads and handles everything that has arrived, without waiting. */
void run_link_drain(struct run_link *link);

#endif
