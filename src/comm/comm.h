/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication engine: datagrams to ranks, reads of their memory, and sleep until something
 * arrives. comm_tcp.c is TCP with connections on which both ends prove who they are; comm_ofi.c is
 * libfabric, loaded at run time, for networks with interfaces of their own; comm_loop.c is for
 * tests.
 *
 * The layer above may rely on this and no more: a message arrives whole, once or (a dead
 * connection, a dead peer) not at all, in no particular order; peer.c makes messages reliable. A
 * get ends with 0 or an error. Nothing is set up between two ranks before the first message or get
 * from one to the other.
 *
 * A struct kd_comm is the endpoint of one rank. A process may have several: they share nothing. All
 * functions but kd_comm_wake are called under one lock per object, the caller's (net.c).
 * kd_comm_wait releases it while it sleeps, and one thread at a time is in it. Callbacks are made
 * under that lock, by kd_comm_progress, kd_comm_forget and, for the gets that are left, by
 * kd_comm_close; they may call kd_comm_send and kd_comm_get. will_progress, which kd_comm_get
 * calls, may not.
 *
 * The layer above must
 *
 *  - limit the messages to a peer that it has not acknowledged, since a provider may read until
 *    nothing more arrives;
 *  - check after each kd_comm_progress, before kd_comm_wait, whether what got -EAGAIN can be sent;
 *  - hide no region that a rank still reads: the read fails by ending the connection, with
 *    everything that is in flight on it.
 */
#ifndef KD_COMM_H
#define KD_COMM_H

#include "comm/comm_engine.h"

/* Opens an endpoint. Writes its address, at most KD_COMM_ADDRESS_BYTES, to be published. 0, or
 * -errno after a line on stderr that says what to install or set; then nothing is left open.
 * -EOPNOTSUPP: the provider cannot forget ranks, and config->forgets is set. One thread at a time
 * opens one, since libfabric takes settings from the environment. */
int kd_comm_open(const struct kd_comm_config *config, struct kd_comm **comm_p, void *address,
		 size_t *size_p);
void kd_comm_close(struct kd_comm *c);
/* The provider in use, "tcp". */
const char *kd_comm_name(struct kd_comm *c);

/* Sets the address of a rank: once, before anything is sent to it. 0 or -errno. */
int kd_comm_connect(struct kd_comm *c, uint32_t rank, const void *address, size_t size);

/* Sends a copy of the message. 0; -EAGAIN: not now, try again after some progress; another -errno:
 * the peer is unreachable. A dead peer looks like one that is about to answer: messages to it are
 * lost, and later ones get -EAGAIN. */
int kd_comm_send(struct kd_comm *c, uint32_t rank, const void *message, size_t len);
/* The same if another message to the rank follows at once: this one may wait for it. */
int kd_comm_send_more(struct kd_comm *c, uint32_t rank, const void *message, size_t len);

/* Reads len bytes from addr in the rank's memory into local, memory of any kind. Returns 0, or an
 * error, never -EAGAIN. After 0 get->done is called once: with an error if the peer dies meanwhile;
 * only by kd_comm_close, with -ECANCELED, if nobody listens at the peer's address when the turn of
 * the read comes. A read of any length is split as the provider needs. */
int kd_comm_get(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
		size_t len, struct kd_comm_get *get);

/* Whether the next gets from the rank are copies by the kernel: nobody can alter them, and the rank
 * does nothing for them. Only with kd_comm_config.direct. */
int kd_comm_direct(struct kd_comm *c, uint32_t rank);

int kd_comm_expose(struct kd_comm *c, void *p, size_t len, struct kd_comm_region *region_p);
void kd_comm_hide(struct kd_comm *c, struct kd_comm_region *region);

/* Handles what has arrived and what has been sent. Returns the number of events. Never blocks. */
int kd_comm_progress(struct kd_comm *c);

/* Sleeps until progress may be possible, or until something that was refused may be sent; until fd
 * (-1: none) is readable; until kd_comm_wake is called (or has been since the last wait: no wake is
 * lost); or until timeout_ns have passed. The lock is free meanwhile; other threads may use the
 * engine. Returns 1 if fd is readable; while there is always work it may look only now and then. */
int kd_comm_wait(struct kd_comm *c, pthread_mutex_t *lock, int fd, uint64_t timeout_ns);
/* on 0: from now on kd_comm_wait leaves progress to other threads, even if it is sleeping; 1: no
 * longer. Any thread, no lock. Of a 0 and a 1 at the same time, either may count. */
void kd_comm_watch(struct kd_comm *c, int on);
/* Any thread, no lock. */
void kd_comm_wake(struct kd_comm *c);

/* That rank is dead. Ends all gets from it, with -ECONNRESET if they are not complete, and calls
 * done for all gets that have ended. Their memory is written to no more. What is sent to the rank
 * from then on fails, and nothing arrives from it, or with libfabric only messages. Only with
 * kd_comm_config.forgets, and not during kd_comm_progress. */
void kd_comm_forget(struct kd_comm *c, uint32_t rank);
/* The rank has been started again, and this is its address. It has been forgotten, or never been
 * connected. 0 or -errno. Not called during kd_comm_progress. */
int kd_comm_renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		  size_t size);

#endif
