/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine: the functions of comm.h, which specifies them. */
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

struct kd_comm_events {
	/* A message of len bytes, 8-byte aligned, valid until the function returns. Only its
	 * contents may say who sent it. */
	void (*message)(const void *message, size_t len);
	/* All attempts to connect to a rank have failed for patience_ns: at which address and
	 * why. */
	void (*unreached)(uint32_t rank, const char *address, const char *why);
};

struct kd_comm_config {
	const char *provider; /* "tcp", "loop", or libfabric's; NULL or "": tcp */
	/* An address or name of this host; NULL or "": that of the host name. */
	const char *listen;
	const char *ports;    /* tcp: ports to listen on, "40000-40999"; NULL or "": any */
	int local;            /* all ranks are on this host: listen on loopback only */
	uint32_t rank, size;
	const uint8_t *secret; /* the job's, 32 bytes */
	uint64_t patience_ns;
	const struct kd_comm_events *events;
};

struct kd_comm_engine {
	int (*open)(const struct kd_comm_config *config, void *address, size_t *size_p);
	void (*close)(void);
	const char *(*name)(void);
	int (*connect)(uint32_t rank, const void *address, size_t size);
	int (*send)(uint32_t rank, const void *message, size_t len);
	int (*get)(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len,
		   struct kd_comm_get *get);
	int (*expose)(void *p, size_t len, struct kd_comm_region *region_p);
	void (*hide)(struct kd_comm_region *region);
	int (*progress)(void);
	int (*wait)(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch);
	void (*wake)(void);
};

extern const struct kd_comm_engine kd_comm_tcp, kd_comm_ofi, kd_comm_loop;

#endif
