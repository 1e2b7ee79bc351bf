/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/os.h"
#include "core/topo.h"

#define THREADS_MOST 4 /* more do not help: disks are slower than this */

int kd_flow_open(struct kd_flow *s, size_t n)
{
	*s = (struct kd_flow){.pieces = calloc(n + !n, sizeof(*s->pieces))};
	return s->pieces ? 0 : -ENOMEM;
}

void kd_flow_close(struct kd_flow *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->pieces[i].packed);
	free(s->pieces);
}

int kd_flow_add(struct kd_flow *s, const struct kd_value *value,
		  const uint64_t *packed_bytes_p)
{
	struct kd_piece *p = &s->pieces[s->n++];
	int packs = value->pack != NULL;

	*p = (struct kd_piece){.value = value, .at = value->data, .begin = s->bytes};
	p->bytes = packs && packed_bytes_p ? *packed_bytes_p : kd_value_bytes(value);
	p->row_bytes = value->cols * value->size;
	p->stride = value->ld * value->size;
	if (packs) {
		p->at = p->packed = malloc(p->bytes + !p->bytes);
		if (!p->packed)
			return -ENOMEM;
		if (!packed_bytes_p)
			kd_value_gather(value, p->packed);
	}
	if (packs || kd_value_plain(value))
		p->row_bytes = p->stride = p->bytes;
	s->bytes += p->bytes;
	return 0;
}

void kd_flow_unpack(const struct kd_flow *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->pieces[i].packed)
			kd_value_scatter(s->pieces[i].value, s->pieces[i].packed,
					 s->pieces[i].bytes);
}

/* The piece that has byte `at': the last one that begins there or before and is not empty. */
static const struct kd_piece *find(const struct kd_flow *s, uint64_t at)
{
	size_t low = 0, high = s->n; /* the piece is in [low, high) */

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (s->pieces[middle].begin <= at)
			low = middle;
		else
			high = middle;
	}
	return &s->pieces[low];
}

/* The bytes of the piece from `at' on that lie together, *n_p of them at most. */
static char *run_at(const struct kd_piece *p, uint64_t at, uint64_t *n_p)
{
	uint64_t offset = at - p->begin, row = offset / p->row_bytes, col = offset % p->row_bytes;

	*n_p = kd_min(*n_p, p->row_bytes - col);
	return p->at + row * p->stride + col;
}

char *kd_flow_at(const struct kd_flow *s, uint64_t at, uint64_t n)
{
	uint64_t run = n;
	char *p = run_at(find(s, at), at, &run);

	return run == n ? p : NULL;
}

static void copy(const struct kd_flow *s, uint64_t at, uint64_t n, char *to, const char *from)
{
	while (n) {
		uint64_t run = n;
		char *p = run_at(find(s, at), at, &run);

		if (to) {
			memcpy(to, p, run);
			to += run;
		} else {
			memcpy(p, from, run);
			from += run;
		}
		at += run;
		n -= run;
	}
}

void kd_flow_gather(const struct kd_flow *s, uint64_t at, uint64_t n, char *to)
{
	copy(s, at, n, to, NULL);
}

void kd_flow_scatter(const struct kd_flow *s, uint64_t at, uint64_t n, const char *from)
{
	copy(s, at, n, NULL, from);
}

struct crew {
	int (*visit)(void *arg, uint64_t at, uint64_t n, char *buffer);
	void *arg;
	uint64_t bytes, block;
	uint64_t next; /* block that no thread has taken */
	int error;     /* the first one */
};

static void take_blocks(struct crew *c)
{
	char *buffer = malloc(kd_min(c->block, c->bytes));
	int error = buffer ? 0 : -ENOMEM;
	sigset_t kept[2];

	kd_os_hush(kept); /* ulimit -f */
	while (!error && !kd_load_relaxed(&c->error)) {
		uint64_t at = kd_fetch_add(&c->next, 1) * c->block;

		if (at >= c->bytes)
			break;
		error = c->visit(c->arg, at, kd_min(c->block, c->bytes - at), buffer);
	}
	kd_os_speak(kept);
	if (error)
		kd_cas(&c->error, 0, error);
	free(buffer);
}

static void *help(void *arg)
{
	kd_topo_unbind(); /* idle workers, also those of other ranks, do not need their CPUs */
	take_blocks(arg);
	return NULL;
}

int kd_flow_pass(uint64_t bytes, uint64_t block,
		   int (*visit)(void *arg, uint64_t at, uint64_t n, char *buffer), void *arg)
{
	struct crew crew = {visit, arg, bytes, block, 0, 0};
	pthread_t helper[THREADS_MOST - 1];
	unsigned helpers = 0, most = (unsigned)kd_min(THREADS_MOST - 1, bytes / (4 * block));

	while (helpers < most && !kd_os_thread_start(&helper[helpers], "kdds-save", help, &crew))
		helpers++;
	if (bytes)
		take_blocks(&crew);
	while (helpers)
		kd_os_thread_join(helper[--helpers]);
	return crew.error;
}
