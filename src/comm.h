/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication engine: datagrams to ranks, reads of their memory, sleep until something comes. comm_ofi.c is libfabric,
 * loaded at run time so that a job of one never meets it.
 *
 * What the layer above may count on, no more: a message arrives whole, once or (a dead connection, a dead peer) not at all, in
 * no particular order; peer.c makes that reliable. A get ends with 0 or an error. Nothing is set up between two ranks before
 * the first message or get from one to the other.
 *
 * All functions but kd_comm_wake are called under one lock, the caller's (net.c); kd_comm_wait releases it while it sleeps.
 * Callbacks are made from kd_comm_progress, under that lock; they may call kd_comm_send and kd_comm_get.
 */
#ifndef KD_COMM_H
#define KD_COMM_H

#include <pthread.h>

#include "base.h"

#define KD_COMM_MESSAGE_BYTES 8192 /* the longest message */
#define KD_COMM_ADDRESS_BYTES 128  /* the longest address of an endpoint */

/* Memory that others may read; made by kd_comm_expose. addr and key go to them in a message. */
struct kd_comm_region {
	uint64_t addr, key;
	void *handle; /* the engine's */
};

/* A get under way. */
struct kd_comm_get {
	void (*done)(struct kd_comm_get *get, int error); /* error: 0 or -errno */
	void *handle;                                     /* the engine's */
};

struct kd_comm_events {
	/* A message of len bytes, 8-byte aligned, valid until the function returns. Who sent it is written in it, if at all. */
	void (*message)(const void *message, size_t len);
};

/*
 * Opens this process's endpoint. provider: a libfabric provider's name, or NULL for the default, tcp;ofi_rxm. local: all
 * ranks are on this host, so listen on loopback only; else on the address that the host's name, or KDDS_ADDRESS, gives.
 * Writes the endpoint's own address, to be published. 0, or -errno after a line on stderr that says what to install or set.
 */
int kd_comm_open(const char *provider, const char *listen, int local, const struct kd_comm_events *events, void *address,
		 size_t *size_p);
void kd_comm_close(void);
/* The provider in use, "tcp;ofi_rxm". */
const char *kd_comm_name(void);

/* Tells where a rank is: once, before anything is sent to it. 0 or -errno. */
int kd_comm_connect(uint32_t rank, const void *address, size_t size);

/* Sends a copy of the message. 0; -EAGAIN: not now, try again after some progress; another -errno: the peer is unreachable. */
int kd_comm_send(uint32_t rank, const void *message, size_t len);

/* Reads len bytes from addr in the rank's memory into local, memory of any kind; get->done is called some time. Any length is
 * split as the provider needs. 0 or an error as for kd_comm_send, when done will not be called. */
int kd_comm_get(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len, struct kd_comm_get *get);

int kd_comm_expose(void *p, size_t len, struct kd_comm_region *region_p);
void kd_comm_hide(struct kd_comm_region *region);

/* Handles what has come in and gone out; returns how many events there were. Never blocks. */
int kd_comm_progress(void);

/* Sleeps until there may be progress to make, fd (-1: none) is readable, kd_comm_wake was called (since the last
 * wait: a wake is never lost), or timeout_ns have passed. Without watch it does not look for progress to make. The lock is free meanwhile; other threads may use the engine. Returns 1 if
 * fd is readable. */
int kd_comm_wait(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch);
/* Any thread, no lock. */
void kd_comm_wake(void);

#endif
