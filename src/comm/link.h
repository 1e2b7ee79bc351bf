/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections between ranks that have proved to each other who they are (handshake.h), and the
 * socket on which they arrive.
 *
 *      kd_link_dial                        accept
 *          |                                  |
 *       DIALS ---- HELLO sent ---> GREETS  STRANGER ---- HELLO came, CHALLENGE sent ---> CLAIMS
 *                                    |                                                     |
 *                 CHALLENGE came, PROOF sent                                           PROOF came
 *                                    |                                                     |
 *                                    +---------------------> UP <--------------------------+
 *
 * Anything else that comes, or nothing for too long, ends the connection. Until it is UP nothing is
 * known of who is at the other end, and nothing depends on it: it takes a descriptor and this
 * struct, and there are at most STRANGERS of them; one more displaces the oldest, a STRANGER if
 * there is one.
 *
 * All timers are one timerfd in the epoll set, so that whoever sleeps on the set need not be woken
 * when another thread arms one.
 */
#ifndef KD_LINK_H
#define KD_LINK_H

#include <sys/socket.h>

#include "comm/handshake.h"
#include "comm/stream.h"

enum kd_link_state {
	KD_LINK_DIALS,
	KD_LINK_GREETS,
	KD_LINK_STRANGER,
	KD_LINK_CLAIMS,
	KD_LINK_UP,
	KD_LINK_DOWN
};

struct kd_link {
	struct kd_stream stream;
	enum kd_link_state state;
	uint32_t rank; /* at the other end; once it is UP, or if we have dialled */
	int dialled;   /* by us */
	int was_up;
	int waits_out;	 /* for room to write */
	uint64_t due_ns; /* when not UP: it is given up then */
	struct kd_handshake handshake;
	struct kd_link *next, *prev;	      /* all of them, oldest first */
	struct kd_chunk *asked, **asked_last; /* the user's: what has been asked for */
};

struct kd_link_events {
	/* A link is UP; it is the user's now, until down. */
	void (*up)(struct kd_link *l);
	/* It was UP, or dialled by us, and has ended. error: -EAGAIN: the rank has not answered,
	 * -EISCONN: another link will do; or what is in the way. May call kd_link_alarm only. */
	void (*down)(struct kd_link *l, int error);
	/* As for streams. */
	size_t (*frame)(struct kd_link *l, const char *p, size_t n);
	void (*filled)(struct kd_link *l);
	void (*left)(void *owner);
	/* kd_link_alarm's time has come. */
	void (*alarm)(uint64_t now_ns);
};

/* Takes the listening socket over. secret: the job's, 32 bytes. 0, or -errno after a line;
 * kd_links_close all the same. */
int kd_links_open(int listener, uint32_t rank, uint32_t size, const uint8_t *secret,
		  const struct kd_link_events *events);
/* Sends what is kept, for a while, then ends all links; nobody is told. */
void kd_links_close(void);

/* Becomes readable when there is something for kd_links_progress to do. */
int kd_links_fd(void);
/* Never blocks. Returns how many events there were. */
int kd_links_progress(void);
/* Calls events->alarm at that time, or at an earlier one that it was asked for. */
void kd_link_alarm(uint64_t at_ns);

/* Begins a connection to a rank: down or up will be called; or NULL and what is in the way, -errno.
 */
struct kd_link *kd_link_dial(uint32_t rank, const struct sockaddr *address, socklen_t size,
			     int *error_p);
/* Sends a frame on a link that is UP, as kd_stream_send does. If that breaks the link, down is
 * called. */
int kd_link_send(struct kd_link *l, const void *head, const void *payload, size_t len, void *owner);
/* Ends a link; if it was UP or dialled by us down is called, at once. */
void kd_link_end(struct kd_link *l, int error);
/* Ends all links that keep a piece of that owner. */
void kd_links_forget(const void *owner);

#endif
