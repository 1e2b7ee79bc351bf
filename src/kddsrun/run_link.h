/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of control.h's frames, both ways, on the poll loop. Nothing blocks: what cannot be written now waits here. */
#ifndef KD_RUN_LINK_H
#define KD_RUN_LINK_H

#include "boot/control.h"
#include "kddsrun/run_loop.h"

struct run_bytes {
	uint8_t *data;
	size_t head, size, room; /* what is in it: size bytes from data + head on */
};

void run_bytes_add(struct run_bytes *b, const void *data, size_t size);
void run_bytes_drop(struct run_bytes *b, size_t size);
void run_bytes_free(struct run_bytes *b);

struct run_link {
	struct run_watch in, out; /* may be one descriptor; -1: closed */
	struct run_bytes received, unsent;
	size_t frame_bytes;  /* a longer frame is garbage */
	size_t unsent_bytes; /* the other side is to read before so much waits for it */
	int waiting_magic;   /* what comes before it is thrown away: login scripts print things */
	uint64_t heard_ns, sent_ns;
	/* A frame. The link may be closed in it. Not 0: it makes no sense, and closed is called with -EPROTO. */
	int (*message)(struct run_link *link, const struct kd_control_header *header, struct kd_unpack *payload);
	/* No more will come: the other side closed it (0), or -errno. The link is closed, which the
	 * other side sees afterwards. */
	void (*closed)(struct run_link *link, int error);
};

#define RUN_LINK_MAGIC "\nkddsrun-agent\n"

/* The link's limits and callbacks are set. Takes the descriptors over. */
void run_link_open(struct run_link *link, int in, int out);
void run_link_close(struct run_link *link);
int run_link_is_open(const struct run_link *link);
void run_link_send(struct run_link *link, uint16_t type, uint32_t rank, const void *payload, size_t size);
/* A VALUE frame, to be sent with the next one or by run_link_flush: there may be thousands. value NULL: there is none. arg is the
 * link: kd_published_each calls it. */
void run_link_add_value(void *arg, uint32_t rank, const char *key, const void *value, size_t size);
void run_link_flush(struct run_link *link);
/* As bytes, outside any frame. */
void run_link_send_raw(struct run_link *link, const void *bytes, size_t size);
/* Takes in and handles everything that has come, without waiting. */
void run_link_drain(struct run_link *link);

#endif
