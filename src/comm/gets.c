/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/gets.h"

#include <errno.h>

#define CHUNK_BYTES (512u << 10) /* over loopback as fast as one piece; half is up to 10 % slower */
#define WINDOW_BYTES (1u << 20)
#define GET_BYTES_MIN 4096 /* what a smaller get counts for */

void kd_gets_init(struct kd_gets *gets, const struct kd_get_engine *engine, size_t chunk_bytes_max)
{
	*gets = (struct kd_gets){
		.engine = engine,
		.chunk_bytes = kd_min(chunk_bytes_max, (size_t)CHUNK_BYTES),
		.finished_last = &gets->finished,
	};
}

void kd_get_queue_init(struct kd_get_queue *q)
{
	*q = (struct kd_get_queue){.last = &q->first};
}

/* Everything has been requested and nothing is in flight. */
static void finish(struct kd_get *g)
{
	struct kd_gets *gets = g->gets;

	g->next = NULL;
	*gets->finished_last = g;
	gets->finished_last = &g->next;
	gets->engine->finished(gets);
}

void kd_get_start(struct kd_gets *gets, struct kd_get_queue *q, struct kd_get *g)
{
	g->gets = gets;
	g->weight = kd_min(kd_max(g->left, (size_t)GET_BYTES_MIN), gets->chunk_bytes);
	g->user->handle = g;
	g->older = gets->newest;
	if (g->older)
		g->older->newer = g;
	gets->newest = g;
	if (!g->left) {
		finish(g);
		return;
	}
	*q->last = g;
	q->last = &g->next;
	kd_gets_push(q);
}

/* Requests the next chunk of a get. */
static int request(struct kd_get_queue *q, struct kd_get *g)
{
	size_t n = kd_min(g->left, g->gets->chunk_bytes);
	int error = g->gets->engine->request(g, n);

	if (error < 0)
		return error;
	if (!error) {
		q->bytes += g->weight;
		g->chunks++;
	}
	g->local += n;
	g->addr += n;
	g->left -= n;
	return 0;
}

void kd_gets_push(struct kd_get_queue *q)
{
	while (q->first && (q->bytes < WINDOW_BYTES || q->first->error)) {
		struct kd_get *g = q->first;

		if (!g->error) {
			int error = request(q, g);

			if (error == -EAGAIN)
				return;
			if (error)
				g->error = error;
		}
		if (g->error)
			g->left = 0;
		if (!g->left) {
			q->first = g->next;
			if (!q->first)
				q->last = &q->first;
			if (!g->chunks)
				finish(g);
		}
	}
}

void kd_get_chunk_end(struct kd_get_queue *q, struct kd_get *g, int error)
{
	q->bytes -= g->weight;
	g->chunks--;
	if (error && !g->error)
		g->error = error;
	/* A get with something left to request is at the head of the queue, where kd_gets_push
	 * finds the error. */
	if (!g->left && !g->chunks)
		finish(g);
}

static void deliver(struct kd_get *g)
{
	struct kd_gets *gets = g->gets;
	struct kd_comm_get *user = g->user;
	int error = g->error;

	if (g->older)
		g->older->newer = g->newer;
	if (g->newer)
		g->newer->older = g->older;
	else
		gets->newest = g->older;
	gets->engine->release(g);
	user->handle = NULL;
	user->done(user, error);
}

void kd_gets_fail(struct kd_get_queue *q, int error)
{
	for (struct kd_get *g = q->first; g; g = g->next)
		g->error = error;
	kd_gets_push(q);
}

/* done may start more gets. Those that finish meanwhile wait for the next time. */
int kd_gets_deliver(struct kd_gets *gets)
{
	struct kd_get *g = gets->finished;
	int n = 0;

	gets->finished = NULL;
	gets->finished_last = &gets->finished;
	for (; g; n++) {
		struct kd_get *next = g->next;

		deliver(g);
		g = next;
	}
	return n;
}

void kd_gets_cancel(struct kd_gets *gets)
{
	while (gets->newest) {
		struct kd_get *g = gets->newest;

		if (!g->error && (g->left || g->chunks))
			g->error = -ECANCELED;
		deliver(g);
	}
}
