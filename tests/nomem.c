/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded by check_nomem.sh. It makes one allocation fail, number KDDS_TEST_FAIL_AT, and creates
 * the file KDDS_TEST_REPORT when that many allocations were made. Only calls of malloc, calloc,
 * realloc, aligned_alloc, posix_memalign, mmap and pthread_create by libkdds itself count, not
 * those of the libraries it uses. If libkdds has not freed everything when the program ends, the
 * status is 99.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SLOTS = 1 << 16 };

static long fail_at, calls;
static const char *report;
/* hash table of the addresses that libkdds holds; 0: empty, 1: deleted */
static uintptr_t held[SLOTS];
static __thread int busy __attribute__((tls_model("initial-exec")));

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);
static int (*next_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static char first[4096]; /* for what dlsym allocates before next_malloc is known */
static size_t first_used;

static void say(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(98);
}

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("KDDS_TEST_FAIL_AT");

	busy = 1;
	*(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
	*(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)&next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	*(void **)&next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	*(void **)&next_free = dlsym(RTLD_NEXT, "free");
	*(void **)&next_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
	report = getenv("KDDS_TEST_REPORT");
	busy = 0;
	fail_at = at ? atol(at) : 0;
}

static int counts(const void *caller)
{
	Dl_info info;
	int ours;

	if (busy || !fail_at)
		return 0;
	busy = 1;
	ours = dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/libkdds.so");
	busy = 0;
	return ours;
}

static int fails(int ours)
{
	int fd;

	if (!ours || __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != fail_at)
		return 0;
	fd = report ? open(report, O_CREAT | O_WRONLY, 0600) : -1;
	if (fd >= 0)
		close(fd);
	errno = ENOMEM;
	return 1;
}

static void *keep(void *p, int ours)
{
	uintptr_t a = (uintptr_t)p;

	if (p && ours)
		for (size_t i = a / 16 % SLOTS;; i = (i + 1) % SLOTS) {
			uintptr_t old = __atomic_load_n(&held[i], __ATOMIC_SEQ_CST);

			if (old <= 1 &&
			    __atomic_compare_exchange_n(&held[i], &old, a, 0, __ATOMIC_SEQ_CST,
							__ATOMIC_SEQ_CST))
				break;
		}
	return p;
}

static void drop(void *p)
{
	uintptr_t a = (uintptr_t)p;

	for (size_t i = a / 16 % SLOTS; p && held[i]; i = (i + 1) % SLOTS)
		if (held[i] == a) {
			__atomic_store_n(&held[i], 1, __ATOMIC_SEQ_CST);
			break;
		}
}

__attribute__((destructor)) static void end(void)
{
	long left = 0;

	for (size_t i = 0; i < SLOTS; i++)
		left += held[i] > 1;
	if (left) {
		say("nomem: libkdds has not freed all it allocated\n");
		_exit(99);
	}
}

EXPORT void *malloc(size_t size)
{
	int ours = counts(__builtin_return_address(0));

	if (!next_malloc)
		return calloc(1, size);
	return fails(ours) ? NULL : keep(next_malloc(size), ours);
}

EXPORT void *calloc(size_t n, size_t size)
{
	int ours = counts(__builtin_return_address(0));

	if (!next_calloc) {
		void *p = first + first_used;

		first_used += (n * size + 15) / 16 * 16;
		if (first_used > sizeof(first))
			_exit(98);
		return p;
	}
	return fails(ours) ? NULL : keep(next_calloc(n, size), ours);
}

EXPORT void *realloc(void *p, size_t size)
{
	int ours = counts(__builtin_return_address(0));
	void *q;

	if (fails(ours))
		return NULL;
	q = next_realloc(p, size);
	if (q)
		drop(p);
	return keep(q, ours);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	int ours = counts(__builtin_return_address(0));

	return fails(ours) ? NULL : keep(next_aligned_alloc(align, size), ours);
}

EXPORT int posix_memalign(void **p, size_t align, size_t size)
{
	int ours = counts(__builtin_return_address(0));
	int error = fails(ours) ? ENOMEM : next_posix_memalign(p, align, size);

	if (!error)
		keep(*p, ours);
	return error;
}

EXPORT void free(void *p)
{
	if ((char *)p >= first && (char *)p < first + sizeof(first))
		return;
	drop(p);
	if (next_free)
		next_free(p);
}

EXPORT void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	int ours = counts(__builtin_return_address(0));

	if (fails(ours))
		return MAP_FAILED;
	at = (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
	return at == MAP_FAILED ? at : keep(at, ours);
}

EXPORT int munmap(void *at, size_t size)
{
	drop(at);
	return (int)syscall(SYS_munmap, at, size);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*f)(void *),
			  void *arg)
{
	if (fails(counts(__builtin_return_address(0))))
		return EAGAIN;
	return next_pthread_create(thread, attr, f, arg);
}
