/* SPDX-License-Identifier: BSD-3-Clause */
/* The operating system apart from files and sockets: address space, threads, sleep, time, signals,
 * and the barrier that saves the owner a fence. */
#ifndef KD_OS_H
#define KD_OS_H

#include <pthread.h>
#include <signal.h>

#include "base/base.h"

/* Reserves size bytes of zeroed address space. Memory is committed page by page as it is touched.
 * NULL: there is no such space. */
void *kd_os_reserve(size_t size);
void kd_os_release(void *p, size_t size);
/* Returns the pages of [p, p + size) to the system unless they are locked. Their contents are
 * undefined afterwards. */
void kd_os_trim(void *p, size_t size);

/* The lowest address to which the C stack of the calling thread may grow under the current limits;
 * *size_p is its maximum size. NULL: this is not known, or the thread runs on another stack. */
char *kd_os_c_stack(size_t *size_p);

/* Between kd_os_hush and kd_os_speak, a write by the calling thread to a pipe without a reader, or
 * beyond a limit (ulimit -f), returns an error and raises no signal. kept: what kd_os_speak
 * restores. */
void kd_os_hush(sigset_t kept[2]);
void kd_os_speak(const sigset_t kept[2]);

/* Raises the limit of open files of this process to n, or to its hard limit if that is lower. */
void kd_os_allow_files(uint64_t n);
/* Whether n more files, at most 8, can be opened now. */
int kd_os_can_open(int n);
/* Bytes of memory and swap space of this machine that this process may use (ulimit -v). */
uint64_t kd_os_memory(void);

/*
 * A full memory barrier on every running thread of the process, paid for by the caller: what
 * another thread stored before it is visible after it, and loads of that thread after it see what
 * the caller stored before it. kd_os_membarrier_init returns 0, or -errno when the kernel refuses
 * (seccomp, old kernels). Then kd_os_membarrier must not be called.
 */
int kd_os_membarrier_init(void);
void kd_os_membarrier(void);

/*
 * Threads, sleep, time and chance (os_thread.c). When anything in the library happens depends on
 * these functions, the locks and the communication engine alone.
 */

/* Starts a thread of that name, at most 15 bytes. 0 or an error number. */
int kd_os_thread_start(pthread_t *t, const char *name, void *(*run)(void *arg), void *arg);
void kd_os_thread_join(pthread_t t);
/* Ends the process, whatever its threads do. */
kd_noreturn void kd_os_exit(int status);

/* Sleeps while *word == expected, at most timeout_ns; may return early. kd_os_wake wakes n sleepers
 * on word. */
void kd_os_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void kd_os_wake(uint32_t *word, int n);

void kd_os_yield(void);
/* Pauses n times: 10 to 60 ns each. */
void kd_os_spin(unsigned n);
/* Requests low wake-up latency for the calling thread, which runs briefly, ahead of threads that
 * compute. */
void kd_os_be_prompt(void);
uint64_t kd_os_now_ns(void);
/* 64 bits from the kernel's generator, fetched many at a time. No value can be derived from the
 * others. */
uint64_t kd_os_random(void);

#endif
