/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kddsrun/run_link.h"

#define HUNGRY_BYTES 65536
#define LINE_BYTES 65536 /* longer labelled lines are split */

struct stream {
	struct run_watch watch;
	struct run_bytes unsent;
	int gone;       /* it cannot be written: output is discarded */
	size_t at_once; /* bytes that do not block after poll */
};

static struct stream streams[2];
static struct run_bytes *lines[2]; /* per rank: its last, unfinished line */
static uint32_t ranks;
static void (*written_callback)(void);
static void (*broken_callback)(int stream, int error);

/*
 * The shell that started kddsrun shares these descriptors, so their flags must not change. But a
 * pipe or terminal can be opened again. Where that fails, a short write does not block after
 * poll.
 */
static void open_stream(struct stream *s, int fd)
{
	char path[32];
	struct stat st = {.st_mode = 0};
	int own = -1;

	s->at_once = 4096;
	if (!fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	if (own >= 0 || S_ISREG(st.st_mode))
		s->at_once = 65536;
	s->watch.fd = own >= 0 ? own : fd;
}

static size_t waiting(const struct stream *s)
{
	return s->gone ? 0 : s->unsent.size;
}

static void push(struct stream *s)
{
	struct run_bytes *b = &s->unsent;
	int before = run_out_hungry();
	ssize_t n = b->size ? write(s->watch.fd, b->data + b->head, kd_min(b->size, s->at_once)) :
			      0;

	if (n > 0)
		run_bytes_drop(b, (size_t)n);
	s->watch.events = b->size ? POLLOUT : 0;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		int error = -errno;

		s->gone = 1;
		s->watch.events = 0;
		run_bytes_free(b);
		broken_callback((int)(s - streams) + 1, error);
	}
	if (!before && run_out_hungry())
		written_callback();
}

static void ready(struct run_watch *watch, short events)
{
	(void)events;
	push(container_of(watch, struct stream, watch));
}

void run_out_init(uint32_t size, int label, void (*written)(void),
		  void (*broken)(int stream, int error))
{
	written_callback = written;
	broken_callback = broken;
	ranks = size;
	for (int i = 0; i < 2; i++) {
		streams[i].watch = (struct run_watch){-1, 0, 0, ready};
		open_stream(&streams[i], i + 1);
		run_watch_add(&streams[i].watch);
		if (label) {
			lines[i] = run_alloc(NULL, size * sizeof(*lines[i]));
			memset(lines[i], 0, size * sizeof(*lines[i]));
		}
	}
}

static void emit(struct stream *s, const void *bytes, size_t size)
{
	if (s->gone)
		return;
	run_bytes_add(&s->unsent, bytes, size);
	s->watch.events = POLLOUT;
}

static void emit_line(struct stream *s, uint32_t rank, struct run_bytes *line)
{
	char label[16];

	emit(s, label, (size_t)snprintf(label, sizeof(label), "%u: ", rank));
	emit(s, line->data + line->head, line->size);
	emit(s, "\n", 1);
	line->head = line->size = 0;
}

void run_out_add(uint32_t rank, int stream, const void *bytes, size_t size)
{
	struct stream *s = &streams[stream - 1];
	struct run_bytes *line = lines[stream - 1] ? &lines[stream - 1][rank] : NULL;
	const char *at = bytes, *end = at + size;

	if (!line) {
		emit(s, bytes, size);
		return;
	}
	if (!size && line->size)
		emit_line(s, rank, line);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = kd_min((size_t)((newline ? newline : end) - at),
				  LINE_BYTES - line->size);

		run_bytes_add(line, at, n);
		at += n;
		/* A full line may be complete: the next byte decides. */
		if (at == newline || (at < end && line->size == LINE_BYTES))
			emit_line(s, rank, line);
		at += at == newline;
	}
}

size_t run_out_waiting(void)
{
	return waiting(&streams[0]) + waiting(&streams[1]);
}

int run_out_hungry(void)
{
	return run_out_waiting() < HUNGRY_BYTES;
}

void run_out_end(void)
{
	for (int i = 0; i < 2; i++)
		for (uint32_t r = 0; lines[i] && r < ranks; r++)
			if (lines[i][r].size)
				emit_line(&streams[i], r, &lines[i][r]);
}
