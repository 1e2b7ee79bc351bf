/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine: the functions of comm.h, which specifies them. A test or a simulation may bring its
 * own. */
#ifndef KD_COMM_ENGINE_H
#define KD_COMM_ENGINE_H

#include <pthread.h>

#include "base/base.h"

#define KD_COMM_MESSAGE_BYTES 8192 /* the longest message */
#define KD_COMM_ADDRESS_BYTES 128  /* the longest address of an endpoint */

/* Exposed memory, made by kd_comm_expose. Messages take addr and key to the ranks that may read
 * it. */
struct kd_comm_region {
	uint64_t addr, key;
	void *handle; /* the engine's */
};

/* A get in progress. */
struct kd_comm_get {
	void (*done)(struct kd_comm_get *get, int error); /* error: 0 or -errno */
	void *handle;                                     /* the engine's */
};

/* arg: that of the config. */
struct kd_comm_events {
	/* A message of len bytes, 8-byte aligned, valid until the function returns. Only its
	 * contents may say who sent it. */
	void (*message)(void *arg, const void *message, size_t len);
	/* All attempts to connect to a rank have failed for patience_ns: at which address and
	 * why. */
	void (*unreached)(void *arg, uint32_t rank, const char *address, const char *why);
	/* A get has ended outside of kd_comm_progress, which is to call done. Whether the caller
	 * calls that, or kd_comm_wake, before it releases the lock: the engine then wakes nobody.
	 * NULL: no. Only tcp asks. */
	int (*will_progress)(void *arg);
};

struct kd_comm_config {
	const struct kd_comm_engine *engine; /* NULL: the provider's */
	const char *provider; /* "tcp", "loop", or libfabric's; NULL or "": tcp */
	/* An address or name of this host; NULL or "": that of the host name. */
	const char *listen;
	const char *ports;    /* tcp: ports to listen on, "40000-40999"; NULL or "": any */
	int local;            /* all ranks are on this host: listen on loopback only */
	uint32_t rank, size;
	uint32_t incarnation; /* of this rank (base/member.h) */
	int forgets;          /* kd_comm_forget may be called */
	int direct;           /* tcp: reads of ranks on this host are the kernel's (direct.h) */
	const uint8_t *secret; /* the job's, 32 bytes */
	uint64_t patience_ns;
	const struct kd_comm_events *events;
	void *arg; /* passed to the events */
};

/* The endpoint of a rank. First in the engine's own struct. */
struct kd_comm {
	const struct kd_comm_engine *engine; /* set by kd_comm_open */
};

struct kd_comm_engine {
	int (*open)(const struct kd_comm_config *config, struct kd_comm **comm_p, void *address,
		    size_t *size_p);
	void (*close)(struct kd_comm *c);
	const char *(*name)(struct kd_comm *c);
	int (*connect)(struct kd_comm *c, uint32_t rank, const void *address, size_t size);
	int (*send)(struct kd_comm *c, uint32_t rank, const void *message, size_t len);
	/* NULL: as send */
	int (*send_more)(struct kd_comm *c, uint32_t rank, const void *message, size_t len);
	int (*get)(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
		   size_t len, struct kd_comm_get *get);
	int (*direct)(struct kd_comm *c, uint32_t rank); /* NULL: never */
	int (*expose)(struct kd_comm *c, void *p, size_t len, struct kd_comm_region *region_p);
	void (*hide)(struct kd_comm *c, struct kd_comm_region *region);
	int (*progress)(struct kd_comm *c);
	void (*watch)(struct kd_comm *c, int on);
	int (*wait)(struct kd_comm *c, pthread_mutex_t *lock, int fd, uint64_t timeout_ns);
	void (*wake)(struct kd_comm *c);
	void (*forget)(struct kd_comm *c, uint32_t rank);
	int (*renew)(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		     size_t size);
};

extern const struct kd_comm_engine kd_comm_tcp, kd_comm_ofi, kd_comm_loop;

#endif
