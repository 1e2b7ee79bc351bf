/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/member.h"
#include "base/os.h"

#define STRANGERS 64		/* accepted, not UP */
#define STRANGER_NS 5000000000u /* for a stranger to prove who it is */
#define DIAL_NS 10000000000u    /* for TCP to connect */
#define GREET_NS 60000000000u   /* for the rank to answer: a debugger may have stopped it */
#define RATE_NS 10000000u       /* at most RATE connections are accepted in this time: */
#define RATE 64                 /* a flood of them takes about a tenth of a core */
#define FULL_NS 100000000u      /* for which nothing is accepted when descriptors have run out */
#define FLUSH_NS 100000000u /* for what has been sent to leave when we close */
#define EVENTS 64

static size_t stream_frame(struct kd_stream *s, const char *p, size_t n);
static void stream_filled(struct kd_stream *s);
static void stream_left(struct kd_stream *s, void *owner);
static const struct kd_stream_events stream_events = {stream_frame, stream_filled, stream_left};

/* Time */

static void arm(struct kd_links *links, uint64_t at_ns)
{
	struct itimerspec t = {{0, 0},
			       {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)}};

	if (at_ns >= links->armed_ns)
		return;
	links->armed_ns = at_ns;
	timerfd_settime(links->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

void kd_links_alarm(struct kd_links *links, uint64_t at_ns)
{
	links->alarm_ns = kd_min(links->alarm_ns, at_ns);
	arm(links, at_ns);
}

/* Links */

static int watch(const struct kd_links *links, int op, int fd, uint32_t events, void *what)
{
	struct epoll_event e = {.events = events, .data.ptr = what};

	return epoll_ctl(links->epoll, op, fd, &e) ? -errno : 0;
}

static struct kd_link *create(struct kd_links *links, int fd, enum kd_link_state state,
			      uint64_t patience_ns)
{
	struct kd_link *l = calloc(1, sizeof(*l));
	int on = 1;

	if (!l)
		return NULL;
	kd_stream_init(&l->stream, fd, &links->buffer, &stream_events);
	l->links = links;
	l->state = state;
	l->asked_last = &l->asked;
	l->due_ns = kd_os_now_ns() + patience_ns;
	l->waits_out = state == KD_LINK_DIALS;
	if (watch(links, EPOLL_CTL_ADD, fd, l->waits_out ? EPOLLIN | EPOLLOUT : EPOLLIN, l)) {
		free(l);
		return NULL;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	arm(links, l->due_ns);
	l->prev = links->last;
	*(links->last ? &links->last->next : &links->first) = l;
	links->last = l;
	return l;
}

static int is_stranger(const struct kd_link *l)
{
	return l->state == KD_LINK_STRANGER || l->state == KD_LINK_CLAIMS;
}

void kd_link_end(struct kd_link *l, int error)
{
	struct kd_links *links = l->links;
	enum kd_link_state state = l->state;

	if (state == KD_LINK_DOWN)
		return;
	links->strangers -= (uint32_t)is_stranger(l);
	l->state = KD_LINK_DOWN;
	kd_stream_close(&l->stream);
	*(l->prev ? &l->prev->next : &links->first) = l->next;
	*(l->next ? &l->next->prev : &links->last) = l->prev;
	l->next = links->dead;
	links->dead = l;
	if (state == KD_LINK_UP || l->dialled)
		links->events->down(l, error);
}

static void bury(struct kd_links *links)
{
	while (links->dead) {
		struct kd_link *l = links->dead;

		links->dead = l->next;
		free(l);
	}
}

/* Watches for room to write while something is kept. */
static void watch_out(struct kd_link *l)
{
	int wanted = l->stream.first || l->state == KD_LINK_DIALS;

	if (wanted == l->waits_out)
		return;
	l->waits_out = wanted;
	watch(l->links, EPOLL_CTL_MOD, l->stream.fd, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, l);
}

int kd_link_send(struct kd_link *l, const void *head, const void *payload, size_t len, void *owner,
		 int more)
{
	int error = kd_stream_send(&l->stream, head, payload, len, owner, more);

	if (error && error != -EAGAIN)
		kd_link_end(l, error);
	else if (l->state != KD_LINK_DOWN)
		watch_out(l);
	return error;
}

void kd_links_forget(struct kd_links *links, const void *owner)
{
	for (struct kd_link *l = links->first, *next; l; l = next) {
		next = l->next;
		if (kd_stream_keeps(&l->stream, owner))
			kd_link_end(l, -ECONNABORTED);
	}
}

/* Greetings */

static void greet(struct kd_link *l, enum kd_handshake_step step)
{
	struct kd_greeting g;
	const char *p = (const char *)&g;

	kd_handshake_write(&l->handshake, l->links->key, step, &g);
	_Static_assert(sizeof(g) > KD_STREAM_HEAD_BYTES && sizeof(g) % 8 == 0,
		       "a greeting is a frame");
	kd_link_send(l, p, p + KD_STREAM_HEAD_BYTES, sizeof(g) - KD_STREAM_HEAD_BYTES, NULL, 0);
}

static void come_up(struct kd_link *l)
{
	l->links->strangers -= (uint32_t)is_stranger(l);
	l->state = KD_LINK_UP;
	l->was_up = 1;
	l->links->events->up(l);
}

/* A greeting has arrived. */
static void heard(struct kd_link *l, const struct kd_greeting *g)
{
	const struct kd_links *links = l->links;
	const uint8_t *key = links->key;
	struct kd_handshake *h = &l->handshake;

	if (l->state == KD_LINK_STRANGER && kd_handshake_read(h, key, KD_HELLO, g) &&
	    h->to == links->member && kd_member_rank(h->from) != kd_member_rank(h->to) &&
	    kd_member_rank(h->from) < links->size) {
		l->member = h->from;
		l->state = KD_LINK_CLAIMS;
		greet(l, KD_CHALLENGE);
	} else if (l->state == KD_LINK_CLAIMS && kd_handshake_read(h, key, KD_PROOF, g)) {
		come_up(l);
	} else if (l->state == KD_LINK_GREETS && kd_handshake_read(h, key, KD_CHALLENGE, g)) {
		greet(l, KD_PROOF);
		if (l->state != KD_LINK_DOWN)
			come_up(l);
	} else {
		kd_link_end(l, -EPROTO);
	}
}

static size_t stream_frame(struct kd_stream *s, const char *p, size_t n)
{
	struct kd_link *l = (struct kd_link *)s;
	struct kd_greeting g;

	_Static_assert(!offsetof(struct kd_link, stream), "a link begins with its stream");
	if (l->state == KD_LINK_UP)
		return l->links->events->frame(l, p, n);
	if (n < sizeof(g))
		return 0;
	memcpy(&g, p, sizeof(g));
	heard(l, &g);
	return sizeof(g);
}

static void stream_filled(struct kd_stream *s)
{
	struct kd_link *l = (struct kd_link *)s;

	l->links->events->filled(l);
}

static void stream_left(struct kd_stream *s, void *owner)
{
	struct kd_link *l = (struct kd_link *)s;

	l->links->events->left(l, owner);
}

/* Dialling */

struct kd_link *kd_link_dial(struct kd_links *links, uint32_t member,
			     const struct sockaddr *address, socklen_t size, int *error_p)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct kd_link *l;

	if (fd < 0) {
		*error_p = -errno;
		return NULL;
	}
	if (connect(fd, address, size) && errno != EINPROGRESS) {
		*error_p = -errno;
		close(fd);
		return NULL;
	}
	l = create(links, fd, KD_LINK_DIALS, DIAL_NS);
	if (!l) {
		*error_p = -ENOMEM;
		close(fd);
		return NULL;
	}
	l->dialled = 1;
	l->member = member;
	l->handshake = (struct kd_handshake){.from = links->member, .to = member};
	return l;
}

static void dialled(struct kd_link *l)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (getsockopt(l->stream.fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (error) {
		kd_link_end(l, -error);
		return;
	}
	l->state = KD_LINK_GREETS;
	l->due_ns = kd_os_now_ns() + GREET_NS;
	greet(l, KD_HELLO);
}

/* Accepting */

static void pause_until(struct kd_links *links, uint64_t at_ns)
{
	if (!links->pause_ns)
		watch(links, EPOLL_CTL_DEL, links->listener, 0, NULL);
	links->pause_ns = at_ns;
	arm(links, at_ns);
}

/* Makes room for another stranger. */
static void displace(struct kd_links *links)
{
	struct kd_link *claims = NULL;

	for (struct kd_link *l = links->first; l; l = l->next) {
		if (l->state == KD_LINK_STRANGER) {
			kd_link_end(l, 0);
			return;
		}
		if (l->state == KD_LINK_CLAIMS && !claims)
			claims = l;
	}
	if (claims)
		kd_link_end(claims, 0);
}

static void readable(struct kd_link *l);

static int accept_some(struct kd_links *links, uint64_t now)
{
	int n = 0;

	if (now - links->rate_ns >= RATE_NS) {
		links->rate_ns = now;
		links->accepted = 0;
	}
	for (; links->accepted < RATE; n++) {
		struct kd_link *l;
		int fd;

		if (links->strangers >= STRANGERS)
			displace(links);
		fd = accept4(links->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM) {
				displace(links);
				pause_until(links, now + FULL_NS);
			}
			return n;
		}
		links->accepted++;
		l = create(links, fd, KD_LINK_STRANGER, STRANGER_NS);
		if (!l) {
			close(fd);
			continue;
		}
		links->strangers++;
		/* The greeting of a rank has usually arrived: then idle strangers cannot displace
		 * it. */
		readable(l);
	}
	pause_until(links, links->rate_ns + RATE_NS);
	return n;
}

/* Progress */

static void readable(struct kd_link *l)
{
	int error = kd_stream_receive(&l->stream);

	if (error)
		kd_link_end(l, error);
}

static int handle(struct kd_link *l, uint32_t events)
{
	if (l->state == KD_LINK_DOWN)
		return 0; /* it has ended since epoll_wait */
	if (l->state == KD_LINK_DIALS) {
		dialled(l);
	} else if (events & EPOLLOUT) {
		int error = kd_stream_flush(&l->stream);

		if (error)
			kd_link_end(l, error);
	}
	if (l->state != KD_LINK_DOWN)
		watch_out(l);
	if (l->state != KD_LINK_DOWN && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		readable(l);
	return 1;
}

/* The timer has expired: ends the links that are late, and arms it for the next. */
static int late(struct kd_links *links, uint64_t now)
{
	uint64_t due = UINT64_MAX;
	int n = 0;

	links->armed_ns = UINT64_MAX;
	if (links->pause_ns && now >= links->pause_ns) {
		links->pause_ns = 0;
		watch(links, EPOLL_CTL_ADD, links->listener, EPOLLIN, &links->listener);
	}
	for (struct kd_link *l = links->first, *next; l; l = next) {
		next = l->next;
		if (l->state == KD_LINK_UP)
			continue;
		if (now >= l->due_ns) {
			/* The kernel of a stopped rank connects for it. */
			kd_link_end(l, l->state == KD_LINK_GREETS ? -EAGAIN : -ETIMEDOUT);
			n++;
		} else {
			due = kd_min(due, l->due_ns);
		}
	}
	if (now >= links->alarm_ns) {
		links->alarm_ns = UINT64_MAX;
		links->events->alarm(links, now);
		n++;
	}
	if (links->pause_ns)
		due = kd_min(due, links->pause_ns);
	arm(links, kd_min(due, links->alarm_ns));
	return n;
}

int kd_links_progress(struct kd_links *links)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(links->epoll, events, EVENTS, 0), happened = 0;

	for (int i = 0; i < n; i++) {
		void *what = events[i].data.ptr;

		if (what == &links->timer) {
			uint64_t count;

			if (read(links->timer, &count, sizeof(count)) == sizeof(count))
				happened += late(links, kd_os_now_ns());
		} else if (what == &links->listener) {
			happened += accept_some(links, kd_os_now_ns());
		} else {
			happened += handle(what, events[i].events);
		}
	}
	bury(links);
	return happened;
}

int kd_links_fd(const struct kd_links *links)
{
	return links->epoll;
}

/* Opening */

int kd_links_open(struct kd_links *links, int listener, uint32_t member, uint32_t size,
		  const uint8_t *secret, const struct kd_link_events *events)
{
	links->member = member;
	links->size = size;
	kd_handshake_key(links->key, secret);
	links->events = events;
	links->armed_ns = links->alarm_ns = UINT64_MAX;
	links->listener = listener;
	links->epoll = epoll_create1(EPOLL_CLOEXEC);
	links->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (links->epoll < 0 || links->timer < 0 ||
	    watch(links, EPOLL_CTL_ADD, links->timer, EPOLLIN, &links->timer) ||
	    watch(links, EPOLL_CTL_ADD, listener, EPOLLIN, &links->listener)) {
		int error = -errno;

		kd_error("cannot wait for messages: %s", kd_errno_text(-error));
		return error;
	}
	return 0;
}

static int all_sent(const struct kd_links *links)
{
	for (struct kd_link *l = links->first; l; l = l->next)
		if (l->stream.first)
			return 0;
	return 1;
}

void kd_links_close(struct kd_links *links)
{
	uint64_t end = kd_os_now_ns() + FLUSH_NS;
	struct epoll_event event;

	while (!all_sent(links) && kd_os_now_ns() < end)
		if (!kd_links_progress(links))
			epoll_wait(links->epoll, &event, 1, 1);
	while (links->first)
		kd_link_end(links->first, -ECANCELED);
	bury(links);
	close(links->listener);
	close(links->epoll);
	close(links->timer);
	links->epoll = links->timer = links->listener = -1;
}
