/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric, loaded when a provider is first requested: linking with it would make every program
 * load some twenty libraries, one of which installs signal handlers. It is one per process, as is
 * the environment that it reads; the endpoints are not.
 */
#ifndef KD_OFI_H
#define KD_OFI_H

#include <rdma/fabric.h>

#include "base/base.h"

/* The exported functions that we use, valid after kd_ofi_find. All others are called through
 * tables. */
struct kd_ofi {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int error);
	uint32_t (*version)(void);
};

extern struct kd_ofi kd_ofi;

/* Converts libfabric's error to an errno: numbers of its own become EIO. */
int kd_ofi_errno(ssize_t error);

/*
 * Finds a provider of reliable datagrams and reads at a numeric address of this host. 0, or -errno
 * after a line on stderr. The info is freed with kd_ofi.freeinfo.
 */
int kd_ofi_find(const char *provider, const char *node, struct fi_info **info_p);

/*
 * Removes what kd_ofi_find has added to the environment, which the program's children inherit.
 * Called after kd_ofi_find, whatever it returned, and not before the endpoint is enabled, since
 * libfabric reads the variables until then.
 */
void kd_ofi_restore_environment(void);

#endif
