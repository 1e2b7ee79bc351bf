/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "core/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/siphash.h"
#include "core/flow.h"

#define MAGIC "kddsSAVE"
#define VERSION 1
#define PAGE 4096u
#define SYNC_BLOCKS 8 /* in one request to the disk; by one block each it takes 10 % longer */

static const uint8_t key[16]; /* the hash finds damage, not forgery */

static uint64_t blocks_of(uint64_t bytes)
{
	return (bytes + KD_SAVED_BLOCK - 1) / KD_SAVED_BLOCK;
}

static uint64_t meta_bytes(uint64_t items, uint64_t bytes)
{
	uint64_t n = sizeof(struct kd_saved_head) + items * sizeof(struct kd_saved_item) +
		     blocks_of(bytes) * sizeof(uint64_t);

	return (n + PAGE - 1) / PAGE * PAGE;
}

static uint64_t hash_meta(char *meta, uint64_t bytes)
{
	struct kd_saved_head *head = (void *)meta;
	uint64_t kept = head->hash, hash;

	head->hash = 0;
	hash = kd_siphash(key, meta, bytes);
	head->hash = kept;
	return hash;
}

/* What a pass over the values does with a block. */
struct pass {
	int fd;
	uint64_t data_at;
	uint64_t *hash;
	const struct kd_flow *flow; /* NULL: the values are only checked */
};

static int write_all(int fd, const char *from, uint64_t n, uint64_t at)
{
	while (n) {
		ssize_t done = pwrite(fd, from, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		from += done;
		at += (uint64_t)done;
		n -= (uint64_t)done;
	}
	return 0;
}

static int read_all(int fd, char *to, uint64_t n, uint64_t at)
{
	while (n) {
		ssize_t done = pread(fd, to, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EBADMSG;
		to += done;
		at += (uint64_t)done;
		n -= (uint64_t)done;
	}
	return 0;
}

/* Now, and not when all is written, so that the disk works meanwhile. */
static void start_writing(const struct pass *p, uint64_t end)
{
	sync_file_range(p->fd, (off_t)(p->data_at + end - SYNC_BLOCKS * KD_SAVED_BLOCK),
			SYNC_BLOCKS * KD_SAVED_BLOCK, SYNC_FILE_RANGE_WRITE);
}

static int write_block(void *arg, uint64_t at, uint64_t n, char *buffer)
{
	struct pass *p = arg;
	const char *from = kd_flow_at(p->flow, at, n);
	int error;

	if (!from) {
		kd_flow_gather(p->flow, at, n, buffer);
		from = buffer;
	}
	p->hash[at / KD_SAVED_BLOCK] = kd_siphash(key, from, n);
	error = write_all(p->fd, from, n, p->data_at + at);
	if (!error && at / KD_SAVED_BLOCK % SYNC_BLOCKS == SYNC_BLOCKS - 1)
		start_writing(p, at + n);
	return error;
}

static int read_block(void *arg, uint64_t at, uint64_t n, char *buffer)
{
	const struct pass *p = arg;
	char *in_place = p->flow ? kd_flow_at(p->flow, at, n) : NULL;
	char *to = in_place ? in_place : buffer;
	int error = read_all(p->fd, to, n, p->data_at + at);

	if (error)
		return error;
	if (kd_siphash(key, to, n) != p->hash[at / KD_SAVED_BLOCK])
		return -EBADMSG;
	if (p->flow && !in_place)
		kd_flow_scatter(p->flow, at, n, buffer);
	return 0;
}

static struct kd_saved_item item_of(const struct kd_saved_value *x, uint64_t bytes)
{
	return (struct kd_saved_item){x->type, x->v.size, x->v.rows, x->v.cols, bytes, !!x->v.pack};
}

static int write_flow(int fd, uint64_t sequence, const struct kd_saved_value *values, size_t n,
			const struct kd_flow *flow)
{
	uint64_t data_at = meta_bytes(n, flow->bytes);
	char *meta = calloc(1, data_at);
	struct kd_saved_head *head = (void *)meta;
	struct kd_saved_item *item = (void *)(head + 1);
	struct pass pass = {fd, data_at, (void *)(item + n), flow};
	int error;

	if (!meta)
		return -ENOMEM;
	*head = (struct kd_saved_head){MAGIC, VERSION, KD_SAVED_BLOCK, sequence, n, flow->bytes,
				       data_at, 0};
	for (size_t i = 0; i < n; i++)
		item[i] = item_of(&values[i], flow->pieces[i].bytes);
	error = kd_flow_pass(flow->bytes, KD_SAVED_BLOCK, write_block, &pass);
	head->hash = hash_meta(meta, data_at);
	if (!error)
		error = write_all(fd, meta, data_at, 0);
	free(meta);
	return error;
}

int kd_saved_write(int fd, uint64_t sequence, const struct kd_saved_value *values, size_t n)
{
	struct kd_flow flow;
	int error = kd_flow_open(&flow, n);

	for (size_t i = 0; i < n && !error; i++)
		error = kd_flow_add(&flow, &values[i].v, NULL);
	if (!error)
		error = write_flow(fd, sequence, values, n, &flow);
	kd_flow_close(&flow);
	return error;
}

static const char *fault_of_head(const struct kd_saved_head *h, uint64_t file_bytes)
{
	if (memcmp(h->magic, MAGIC, sizeof(h->magic)))
		return "it is no checkpoint";
	if (h->version != VERSION)
		return "another version of the library has written it";
	/* Bounds first: the numbers may be any. */
	if (!h->sequence || h->sequence > INT64_MAX || h->block_bytes != KD_SAVED_BLOCK ||
	    h->bytes > file_bytes ||
	    h->items > file_bytes / sizeof(struct kd_saved_item) ||
	    h->data_at != meta_bytes(h->items, h->bytes) || file_bytes - h->bytes != h->data_at)
		return "it is torn or has been altered";
	return NULL;
}

static const char *fault_of_items(const struct kd_saved *s)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < s->head.items; i++) {
		if (s->item[i].bytes > s->head.bytes - bytes)
			return "it is torn or has been altered";
		bytes += s->item[i].bytes;
	}
	return bytes == s->head.bytes ? NULL : "it is torn or has been altered";
}

int kd_saved_open(struct kd_saved *s, int fd, const char **why_p)
{
	struct stat st;
	int error;

	*s = (struct kd_saved){.fd = fd};
	error = fstat(fd, &st) ? -errno : read_all(fd, (char *)&s->head, sizeof(s->head), 0);
	*why_p = error == -EBADMSG ? "it is no checkpoint" : NULL;
	if (error)
		return error;
	*why_p = fault_of_head(&s->head, (uint64_t)st.st_size);
	if (*why_p)
		return -EBADMSG;
	s->meta = malloc(s->head.data_at);
	if (!s->meta)
		return -ENOMEM;
	s->item = (void *)((char *)s->meta + sizeof(s->head));
	s->hash = (void *)(s->item + s->head.items);
	error = read_all(fd, s->meta, s->head.data_at, 0);
	if (!error && (memcmp(s->meta, &s->head, sizeof(s->head)) ||
		       hash_meta(s->meta, s->head.data_at) != s->head.hash))
		error = -EBADMSG;
	*why_p = error == -EBADMSG ? "it is torn or has been altered" : NULL;
	if (error)
		return error;
	*why_p = fault_of_items(s);
	return *why_p ? -EBADMSG : 0;
}

void kd_saved_close(struct kd_saved *s)
{
	free(s->meta);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct kd_saved){.fd = -1};
}

int kd_saved_check(const struct kd_saved *s)
{
	struct pass pass = {s->fd, s->head.data_at, s->hash, NULL};

	return kd_flow_pass(s->head.bytes, KD_SAVED_BLOCK, read_block, &pass);
}

long kd_saved_differs(const struct kd_saved *s, const struct kd_saved_value *values, size_t n)
{
	for (size_t i = 0; i < n && i < s->head.items; i++) {
		const struct kd_saved_item *a = &s->item[i];
		const struct kd_saved_value *x = &values[i];

		if (a->type != x->type || a->size != x->v.size || a->rows != x->v.rows ||
		    a->cols != x->v.cols || a->packed != !!x->v.pack ||
		    (!x->v.pack && a->bytes != kd_value_bytes(&x->v)))
			return (long)i;
	}
	return n == s->head.items ? -1 : (long)kd_min(n, s->head.items);
}

int kd_saved_read(const struct kd_saved *s, const struct kd_saved_value *values, size_t n)
{
	struct kd_flow flow;
	struct pass pass = {s->fd, s->head.data_at, s->hash, &flow};
	int error = kd_flow_open(&flow, n);

	for (size_t i = 0; i < n && !error; i++)
		error = kd_flow_add(&flow, &values[i].v, &s->item[i].bytes);
	if (!error)
		error = kd_flow_pass(flow.bytes, KD_SAVED_BLOCK, read_block, &pass);
	if (!error)
		kd_flow_unpack(&flow);
	kd_flow_close(&flow);
	return error;
}
