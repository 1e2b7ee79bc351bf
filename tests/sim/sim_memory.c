/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked with --wrap=malloc and the like: what the library and the program allocate is noted, with
 * the process whose fiber does so. What libc itself allocates is not.
 */
#include "sim/sim_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sim/sim.h"

#define MAGIC 0x6d656d6f7279u

/* Lies before each block. */
struct block {
	struct block *next, **link;
	const void *caller;
	size_t bytes;
	uint32_t process, offset; /* from what the allocator knows */
	uint64_t magic;        /* differs from block to block */
};

void *__real_malloc(size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void __wrap_free(void *p);

static struct block *blocks;

static uint64_t magic_of(const struct block *b)
{
	return MAGIC ^ (uint64_t)(uintptr_t)b;
}

/* Not by libc. Before what that allocates lies other memory, which AddressSanitizer guards. */
__attribute__((no_sanitize("address"))) static int noted(const void *p)
{
	const struct block *b = (const struct block *)p - 1;

	return b->magic == magic_of(b);
}

static void *note(char *memory, size_t offset, size_t n, const void *caller)
{
	struct block *b = (struct block *)(void *)(memory + offset) - 1;

	if (!memory)
		return NULL;
	*b = (struct block){.next = blocks, .link = &blocks, .caller = caller, .bytes = n,
			    .process = sim_self() ? sim_process() : UINT32_MAX,
			    .offset = (uint32_t)offset, .magic = magic_of(b)};
	if (blocks)
		blocks->link = &b->next;
	blocks = b;
	return b + 1;
}

static void *allocate(size_t align, size_t n, const void *caller)
{
	size_t offset = (sizeof(struct block) + align - 1) / align * align;

	return note(align > 16 ? __real_aligned_alloc(align, n + offset) :
				 __real_malloc(n + offset), offset, n, caller);
}

void *__wrap_malloc(size_t n)
{
	return allocate(16, n, __builtin_return_address(0));
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return allocate(align, n, __builtin_return_address(0));
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p = allocate(16, n * size, __builtin_return_address(0));

	if (p)
		memset(p, 0, n * size);
	return p;
}

void __wrap_free(void *p)
{
	struct block *b;

	if (!p || !noted(p)) {
		__real_free(p);
		return;
	}
	b = (struct block *)p - 1;
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	b->magic = 0;
	__real_free((char *)p - b->offset);
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q;

	if (p && !noted(p))
		return __real_realloc(p, n);
	q = allocate(16, n, __builtin_return_address(0));
	if (p && q)
		memcpy(q, p, kd_min(n, ((struct block *)p - 1)->bytes));
	if (q)
		__wrap_free(p);
	return q;
}

unsigned sim_memory_left(uint32_t process)
{
	unsigned n = 0;

	for (const struct block *b = blocks; b; b = b->next)
		if (b->process == process && n++ < 10)
			fprintf(stderr, "sim: process %u has left %zu bytes, allocated at %p\n",
				process, b->bytes, b->caller);
	return n;
}
