/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication engine: datagrams to ranks, reads of their memory, sleep until something comes.
 * comm_tcp.c is TCP with connections that prove who is at the other end; comm_ofi.c is libfabric,
 * loaded at run time, for networks with interfaces of their own; comm_loop.c is for tests.
 *
 * What the layer above may count on, no more: a message arrives whole, once or (a dead connection,
 * a dead peer) not at all, in no particular order; peer.c makes that reliable. A get ends with 0 or
 * an error. Nothing is set up between two ranks before the first message or get from one to the
 * other.
 *
 * All functions but kd_comm_wake are called under one lock, the caller's (net.c); kd_comm_wait
 * releases it while it sleeps, and one thread at a time is in it. Callbacks are made from
 * kd_comm_progress, and by kd_comm_close for the gets that are left, under that lock; they may call
 * kd_comm_send and kd_comm_get.
 *
 * What the layer above must see to: a limit of messages to a peer that it has not acknowledged, for
 * a provider may read until nothing comes any more; to look after each kd_comm_progress, before
 * kd_comm_wait, whether what was told -EAGAIN can be sent; not to hide a region that somebody still
 * reads: the read fails by ending the connection, with all that is on its way.
 */
#ifndef KD_COMM_H
#define KD_COMM_H

#include "comm/comm_engine.h"

/* Opens this process's endpoint. Writes its address, at most KD_COMM_ADDRESS_BYTES, to be
 * published. 0, or -errno after a line on stderr that says what to install or set. */
int kd_comm_open(const struct kd_comm_config *config, void *address, size_t *size_p);
void kd_comm_close(void);
/* The provider in use, "tcp". */
const char *kd_comm_name(void);

/* Tells where a rank is: once, before anything is sent to it. 0 or -errno. */
int kd_comm_connect(uint32_t rank, const void *address, size_t size);

/* Sends a copy of the message. 0; -EAGAIN: not now, try again after some progress; another -errno: the peer is unreachable. A
 * peer that has died cannot be told from one that is about to answer: messages are lost, then -EAGAIN is all there is. */
int kd_comm_send(uint32_t rank, const void *message, size_t len);

/* Reads len bytes from addr in the rank's memory into local, memory of any kind; get->done is called some time, once: with an
 * error if the peer dies meanwhile; but only from kd_comm_close, with -ECANCELED, if nothing listens there when its turn comes.
 * Any length is split as the provider needs. 0; or an error, never -EAGAIN, when done will not be called. */
int kd_comm_get(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len, struct kd_comm_get *get);

int kd_comm_expose(void *p, size_t len, struct kd_comm_region *region_p);
void kd_comm_hide(struct kd_comm_region *region);

/* Handles what has come in and gone out; returns how many events there were. Never blocks. */
int kd_comm_progress(void);

/* Sleeps until there may be progress to make or something refused to send, fd (-1: none) is readable, kd_comm_wake was called
 * (since the last wait: a wake is never lost), or timeout_ns have passed. Without watch it leaves progress to others. The lock
 * is free meanwhile; other threads may use the engine. Returns 1 if fd is readable; while there is always work it may look
 * only every now and then. */
int kd_comm_wait(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch);
/* Any thread, no lock. */
void kd_comm_wake(void);

#endif
