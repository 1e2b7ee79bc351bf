/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections between ranks that have proved to each other who they are (handshake.h), and the
 * socket that accepts them.
 *
 *      kd_link_dial                        accept
 *          |                                  |
 *       DIALS ---- HELLO sent ---> GREETS  STRANGER -- HELLO arrived, CHALLENGE sent --> CLAIMS
 *                                    |                                                     |
 *                 CHALLENGE arrived, PROOF sent                                      PROOF arrived
 *                                    |                                                     |
 *                                    +---------------------> UP <--------------------------+
 *
 * Anything else that arrives, or nothing for too long, ends the connection. Until it is UP, nothing
 * is known about the other end and nothing depends on it. It takes a descriptor and this struct. At
 * most STRANGERS of them exist; one more displaces the oldest, a STRANGER if there is one.
 *
 * All timers are one timerfd in the epoll set, so that a thread that sleeps on the set need not be
 * woken when another thread arms one.
 *
 * The links of a rank are a struct kd_links. One lock of the user protects it and them.
 */
#ifndef KD_LINK_H
#define KD_LINK_H

#include <sys/socket.h>

#include "comm/handshake.h"
#include "comm/stream.h"

struct kd_links;

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
	struct kd_links *links; /* that it is one of */
	enum kd_link_state state;
	uint32_t member; /* at the other end; valid when UP, or if we have dialled */
	int dialled;   /* by us */
	int was_up;
	int waits_out;	 /* for room to write */
	uint64_t due_ns; /* while it is not UP: when it is given up */
	struct kd_handshake handshake;
	struct kd_link *next, *prev;	      /* all of them, oldest first */
	struct kd_chunk *asked, **asked_last; /* the user's: what has been requested */
};

struct kd_link_events {
	/* A link is UP. It belongs to the user until down. */
	void (*up)(struct kd_link *l);
	/* A link that was UP, or that we dialled, has ended. error: -EAGAIN: the rank has not
	 * answered; -EISCONN: another link serves instead; -ECANCELED: all are closed; or the
	 * errno of the failure. May call only kd_links_alarm. */
	void (*down)(struct kd_link *l, int error);
	/* As for streams. */
	size_t (*frame)(struct kd_link *l, const char *p, size_t n);
	void (*filled)(struct kd_link *l);
	void (*left)(struct kd_link *l, void *owner);
	/* The time of kd_links_alarm has come. */
	void (*alarm)(struct kd_links *links, uint64_t now_ns);
};

struct kd_links {
	int epoll, timer, listener;
	uint32_t member, size; /* this rank; of the job */
	uint8_t key[32];
	const struct kd_link_events *events;
	struct kd_link *first, *last;
	struct kd_link *dead; /* by next: freed when nobody looks at them any more */
	uint32_t strangers;
	uint64_t armed_ns; /* when the timer expires; UINT64_MAX: never */
	uint64_t alarm_ns; /* the user's */
	uint64_t pause_ns; /* 0, or the time until which the listener is not watched */
	uint64_t rate_ns;  /* start of the count in accepted */
	uint32_t accepted;
	struct kd_stream_buffer buffer; /* of all their streams */
};

/* Takes over the listening socket; links is all zero. secret: the job's, 32 bytes. 0, or -errno
 * after a line; then kd_links_close must be called all the same. */
int kd_links_open(struct kd_links *links, int listener, uint32_t member, uint32_t size,
		  const uint8_t *secret, const struct kd_link_events *events);
/* Sends what is kept, for a limited time, then ends all links. */
void kd_links_close(struct kd_links *links);

/* Readable when kd_links_progress has something to do. */
int kd_links_fd(const struct kd_links *links);
/* Never blocks. Returns how many events there were. */
int kd_links_progress(struct kd_links *links);
/* Calls events->alarm at that time, or at an earlier one that was set. */
void kd_links_alarm(struct kd_links *links, uint64_t at_ns);

/* Begins a connection to a member of the job (base/member.h): up or down will be called. NULL: it
 * failed, and *error_p is the cause, -errno. */
struct kd_link *kd_link_dial(struct kd_links *links, uint32_t member,
			     const struct sockaddr *address, socklen_t size, int *error_p);
/* Sends a frame on a link that is UP, as kd_stream_send does. Calls down if that breaks the
 * link. */
int kd_link_send(struct kd_link *l, const void *head, const void *payload, size_t len, void *owner,
		 int more);
/* Ends a link. If it was UP or dialled by us, calls down at once. */
void kd_link_end(struct kd_link *l, int error);
/* Ends all links that keep a piece of that owner. */
void kd_links_forget(struct kd_links *links, const void *owner);

#endif
