/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "core/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "core/watch.h"

#define KEEP_BYTES (1u << 20) /* memory that an idle stack keeps */
#define SPARE_MOST (16u << 20) /* bytes of freed frame data that a stack keeps while it runs */
#define SPARE_LOOKS 16         /* how many of them an allocation looks at */

static char *reserve(size_t size)
{
	char *p = kd_os_reserve(size);

	if (!p)
		kd_die("no address space for another stack of %zu bytes: lower KDDS_STACK, or "
		       "raise the limit (ulimit -v, vm.max_map_count, vm.overcommit_memory; "
		       "ulimit -l after mlockall)", size);
	return p;
}

struct kd_stack *kd_stack_create(struct kd_worker *home)
{
	struct kd_stack *s = aligned_alloc(KD_CACHE_LINE, sizeof(*s));

	if (!s)
		kd_die("out of memory for a stack descriptor of %zu bytes", sizeof(*s));
	memset(s, 0, sizeof(*s));
	s->mem = reserve(kd_env.stack);
	s->end = s->mem + kd_env.stack;
	s->records = reserve(kd_env.stack / 2);
	s->arena = reserve(kd_env.stack / KD_ARENA_SHARE);
	s->base.arena = s->base.keep = s->arena;
	s->base.arena_end = s->arena + kd_env.stack / KD_ARENA_SHARE;
	s->spans = kd_watch.tasks ? reserve(kd_env.stack) : NULL;
	s->soft = s->mem + KEEP_BYTES;
	s->home = home;
	/* Names that users' data is unlikely to contain by chance. */
	s->serial = (uint64_t)(uintptr_t)s * 0xbf58476d1ce4e5b9u;
	return s;
}

static void free_list(struct kd_block **list)
{
	while (*list) {
		struct kd_block *b = *list;

		*list = b->next;
		free(b->memory);
	}
}

static void free_spare(struct kd_stack *s)
{
	free_list(&s->spare);
	s->spare_bytes = 0;
}

static void free_blocks(struct kd_stack *s)
{
	for (const struct kd_block *b = s->blocks; s->gone && b; b = b->next)
		s->gone(s, b + 1, b->bytes);
	free_list(&s->blocks);
	s->left_bytes = 0;
	free_spare(s);
}

void kd_stack_destroy(struct kd_stack *s)
{
	free_blocks(s);
	kd_os_release(s->mem, kd_env.stack);
	kd_os_release(s->records, kd_env.stack / 2);
	kd_os_release(s->arena, kd_env.stack / KD_ARENA_SHARE);
	if (s->spans)
		kd_os_release(s->spans, kd_env.stack);
	free(s);
}

void kd_stack_start(struct kd_stack *s, const struct kd_range *range)
{
	struct kdds_frame *first = (struct kdds_frame *)s->mem;

	kd_assert(!kd_load_relaxed(&s->active));
	kd_assert(!range || (range->count && range->begin < range->end));
	s->serial += KD_SERIALS;
	s->bound = s->merge = s->quiet = s->alone = 0;
	kd_store_relaxed(&s->park, NULL);
	kd_store_relaxed(&s->base.head, NULL);
	kd_store_relaxed(&s->base.tail, range ? range->end : NULL);
	s->base.gen = s->serial;
	kd_store_relaxed(&s->divisible, range && range->independent && !range->fine);
	kd_store_relaxed(&s->placed, 0);
	if (range)
		s->range = *range;
	else
		memset(&s->range, 0, sizeof(s->range));
	kd_frame_init(s, first, &s->base, s->mem + sizeof(*first) + kd_env.window, s->serial + 1);
	if (!range) /* main's: what it spawns is what there is to steal */
		kd_store_relaxed(&first->floor, KD_FLOOR_PUSH);
	kd_store_release(&s->top, &s->base);
	kd_store_release(&s->active, 1);
}

void kd_stack_stop(struct kd_stack *s)
{
	kd_assert(s->top == &s->base && !s->bound); /* no closure runs, no body waits */
	kd_assert(!kd_load_relaxed(&s->park));
	kd_assert(kd_stack_next(s, s->top)->used || /* else all data have been given back */
		  kd_stack_next(s, s->top)->keep == s->arena);
	kd_stack_lock(s);
	kd_store_relaxed(&s->active, 0);
	s->lead = 0;
	kd_stack_unlock(s);
	free_blocks(s);
	if (s->soft != s->mem + KEEP_BYTES) {
		kd_os_trim(s->mem + KEEP_BYTES, kd_env.stack - KEEP_BYTES);
		kd_os_trim(s->records + KEEP_BYTES / 2, (kd_env.stack - KEEP_BYTES) / 2);
		kd_os_trim(s->arena + KEEP_BYTES / KD_ARENA_SHARE,
			   (kd_env.stack - KEEP_BYTES) / KD_ARENA_SHARE);
		if (s->spans)
			kd_os_trim(s->spans + KEEP_BYTES, kd_env.stack - KEEP_BYTES);
		s->soft = s->mem + KEEP_BYTES;
	}
}

void kd_stack_deepen(struct kd_stack *s, const char *f)
{
	kd_assert(f > s->soft && f < s->end);
	/* The new frame needs room for a window (four windows if a stolen closure blocks its
	 * owner), and for one more frame. */
	if ((size_t)(s->end - f) < 4 * kd_env.window + 2 * sizeof(struct kdds_frame))
		kd_die("a stack is full: %zu bytes of nested frames; raise KDDS_STACK (now %llu)",
		       (size_t)(f - s->mem), (unsigned long long)kd_env.stack);
	s->soft = s->end - 4 * kd_env.window - 2 * sizeof(struct kdds_frame);
}

#ifdef KDDS_DEBUG
/* The lock word names its holder: the number of a thread, from 1 on. */
static uint32_t self(void)
{
	static uint32_t threads;
	static __thread uint32_t number;

	if (!number)
		number = kd_fetch_add(&threads, 1) + 1;
	return number;
}

int kd_stack_locked(const struct kd_stack *s)
{
	return kd_load_relaxed(&s->lock) == self();
}

int kd_stack_trylock(struct kd_stack *s)
{
	return !kd_load_relaxed(&s->lock) && kd_cas(&s->lock, 0, self());
}
#else
int kd_stack_trylock(struct kd_stack *s)
{
	return !kd_load_relaxed(&s->lock) && !kd_exchange(&s->lock, 1);
}
#endif

void kd_stack_lock(struct kd_stack *s)
{
	kd_assert(!kd_stack_locked(s)); /* it would wait for itself */
	for (unsigned tries = 0; !kd_stack_trylock(s); tries++)
		if (tries % 64 == 63)
			kd_os_yield(); /* the holder may have been preempted */
		else
			kd_pause();
}

void kd_stack_unlock(struct kd_stack *s)
{
	kd_assert_locked(s);
	kd_store_release(&s->lock, 0);
}

/* Whether the frame that the block was made for may still exist. The list is ordered by frame, the
 * youngest first. A block below the running frame is kept even if its frame has ended and another
 * has begun there: it is freed when the stack shrinks. */
static int alive(const struct kd_block *b, const struct kdds_frame *running)
{
	if (b->frame != running)
		return b->frame < running;
	return running->gen == b->gen && kd_load_relaxed(&running->parent->head) == b->head;
}

/* Keeps the memory: the next body is likely to be like this one, and the allocator would return the
 * pages to the system, which would clear them again. */
static void free_block(struct kd_stack *s, struct kd_block **link)
{
	struct kd_block *b = *link;

	if (s->gone)
		s->gone(s, b + 1, b->bytes);
	*link = b->next;
	if (b->left)
		s->left_bytes -= b->bytes;
	if (b->bytes > SPARE_MOST) {
		free(b->memory);
		return;
	}
	if (s->spare_bytes + b->bytes > SPARE_MOST)
		free_spare(s);
	b->next = s->spare;
	s->spare = b;
	s->spare_bytes += b->bytes;
}

/* Memory of the same size and alignment that was freed; NULL: none is at hand. */
static char *take_spare(struct kd_stack *s, size_t size, size_t align)
{
	struct kd_block **link = &s->spare;

	for (int i = 0; i < SPARE_LOOKS && *link; i++, link = &(*link)->next) {
		struct kd_block *b = *link;

		if (b->bytes == size && (char *)(b + 1) == (char *)b->memory + align) {
			*link = b->next;
			s->spare_bytes -= size;
			return b->memory;
		}
	}
	return NULL;
}

void kd_blocks_sweep(struct kd_stack *s, const struct kdds_frame *f)
{
	struct kd_block **link = &s->blocks;

	while (*link && !alive(*link, f))
		free_block(s, link);
	if (f->tail != (const char *)(f + 1))
		return;
	while (s->left_bytes && *link && (*link)->frame == f)
		if ((*link)->left)
			free_block(s, link);
		else
			link = &(*link)->next;
}

void *kd_block_alloc(struct kd_stack *s, struct kdds_frame *f, size_t size, size_t align)
{
	struct kd_block *b;
	char *memory;

	kd_assert(f == kd_stack_next(s, s->top));
	kd_blocks_sweep(s, f);
	align = kd_max(align, sizeof(*b));
	size = kd_max(size, 1); /* data items without elements have distinct addresses, too */
	memory = take_spare(s, size, align);
	if (!memory && size <= SIZE_MAX - 2 * align)
		memory = aligned_alloc(align, align + (size + align - 1) / align * align);
	if (!memory)
		kd_die(size > SIZE_MAX / 2 ?
		       "KDDS_DATA_ARRAY or KDDS_DATA_TILE of %zu bytes: the number of elements is "
		       "negative, or too large" : "out of memory for KDDS_DATA of %zu bytes", size);
	b = (struct kd_block *)(void *)(memory + align) - 1;
	*b = (struct kd_block){.next = s->blocks, .frame = f, .gen = f->gen, .bytes = size,
			       .head = kd_load_relaxed(&f->parent->head), .memory = memory};
	s->blocks = b;
	if (kd_watch.made)
		kd_watch.made(b + 1, size);
	return b + 1;
}

int kd_block_leave(struct kd_stack *s, const void *data)
{
	struct kdds_frame *f = kd_stack_next(s, s->top);
	struct kd_block *b = s->blocks;

	while (b && b + 1 != data)
		b = b->next;
	if (!b || b->left)
		return 1;
	kd_assert(b->frame == f && alive(b, f));
	b->left = 1;
	s->left_bytes += b->bytes;
	kd_blocks_sweep(s, f);
	return f->tail == kd_frame_first(f);
}
