/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric, loaded when it is first asked for a provider: linking with it would make every program load some twenty libraries,
 * of which one installs signal handlers.
 */
#ifndef KD_OFI_H
#define KD_OFI_H

#include <rdma/fabric.h>

#include "base/base.h"

/* What it exports, as far as we use it; valid after kd_ofi_find. The rest of its functions are calls through tables. */
struct kd_ofi {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int error);
	uint32_t (*version)(void);
};

extern struct kd_ofi kd_ofi;

/* For others than libfabric, whose own numbers have no meaning there. */
int kd_ofi_errno(ssize_t error);

/*
 * A provider that gives reliable datagrams and reads, at an address of this host in digits. 0, or
 * -errno after a line on stderr. The info is freed with kd_ofi.freeinfo.
 */
int kd_ofi_find(const char *provider, const char *node, struct fi_info **info_p);

/*
 * Removes what kd_ofi_find has added to the environment: the program's children inherit it. Called
 * after kd_ofi_find, whatever that returned; libfabric reads it until the endpoint is enabled.
 */
void kd_ofi_restore_environment(void);

#endif
