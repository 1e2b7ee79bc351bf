/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine: the functions of comm.h. */
#ifndef KD_COMM_ENGINE_H
#define KD_COMM_ENGINE_H

#include "comm.h"

struct kd_comm_engine {
	int (*open)(const struct kd_comm_config *config, void *address, size_t *size_p);
	void (*close)(void);
	const char *(*name)(void);
	int (*connect)(uint32_t rank, const void *address, size_t size);
	int (*send)(uint32_t rank, const void *message, size_t len);
	int (*get)(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len, struct kd_comm_get *get);
	int (*expose)(void *p, size_t len, struct kd_comm_region *region_p);
	void (*hide)(struct kd_comm_region *region);
	int (*progress)(void);
	int (*wait)(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch);
	void (*wake)(void);
};

extern const struct kd_comm_engine kd_comm_tcp, kd_comm_ofi, kd_comm_loop;

#endif
