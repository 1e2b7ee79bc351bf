/* SPDX-License-Identifier: BSD-3-Clause */
/* The only system calls of the library: address space, sleeping, time, signals, and the barrier that spares the owner a fence. */
#ifndef KD_OS_H
#define KD_OS_H

#include <signal.h>

#include "base/base.h"

/* Reserves size bytes of zeroed address space; memory is committed page by page as it is touched. NULL: none to be had. */
void *kd_os_reserve(size_t size);
void kd_os_release(void *p, size_t size);
/* Gives the pages of [p, p + size) back unless they are locked; what they hold is undefined afterwards. */
void kd_os_trim(void *p, size_t size);

/* Where the calling thread's C stack ends, growing downwards, by the limits of now; *size_p is how large it may become. NULL: it cannot
 * be found out, or the thread runs on another one. */
char *kd_os_c_stack(size_t *size_p);

/* Sleeps while *word == expected, at most timeout_ns; may return early. Wakes n sleepers on word. */
void kd_os_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void kd_os_wake(uint32_t *word, int n);

/* Between the two, what the calling thread writes into a pipe that nobody reads, or beyond a limit (ulimit -f), is an error and no
 * signal. kept: what kd_os_speak needs. */
void kd_os_hush(sigset_t kept[2]);
void kd_os_speak(const sigset_t kept[2]);

void kd_os_yield(void);
/* The calling thread runs seldom and shortly, and when it wakes up it should soon: in front of threads that compute. */
void kd_os_be_prompt(void);
/* Raises this process's limit of open files to n, or as far as its hard limit goes. */
void kd_os_allow_files(uint64_t n);
/* Whether n more, at most 8, could be opened now. */
int kd_os_can_open(int n);
/* Bytes of memory and swap space of this machine that this process may use (ulimit -v). */
uint64_t kd_os_memory(void);
uint64_t kd_os_now_ns(void);
/* 64 bits from the kernel's generator, fetched many at once: nobody can tell one from the others.
 * One thread at a time. */
uint64_t kd_os_random(void);

/*
 * A full memory barrier on every thread of the process that is running, paid for by the caller: what another thread stored
 * before is visible afterwards, and its later loads see what the caller stored before. kd_os_membarrier_init returns 0, or
 * -errno when the kernel refuses (seccomp, old kernels): then nobody may count on kd_os_membarrier.
 */
int kd_os_membarrier_init(void);
void kd_os_membarrier(void);

#endif
