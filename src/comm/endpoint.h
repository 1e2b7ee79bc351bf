/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libfabric opens for a process: a fabric, a domain in it, and there one endpoint of reliable datagrams and reads, with its
 * completion queue and its table of addresses; and what the provider wants of memory that it is to use. comm_ofi.c makes the
 * traffic on it.
 */
#ifndef KD_ENDPOINT_H
#define KD_ENDPOINT_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "base/base.h"

struct kd_endpoint {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	int cq_fd;                       /* becomes readable with the queue; -1: the provider has none */
	int virtual, prov_key, local_mr; /* others name our memory by its address, not by an offset; the provider chooses keys; it
					    wants memory registered that only we use */
	uint64_t key_mask;		 /* as long as keys may be */
};

/*
 * Opens all that, at an address of this host in digits, and tells the endpoint's own address, KD_COMM_ADDRESS_BYTES at most. provider as
 * for kd_ofi_find. 0, or -errno after a line on stderr: kd_endpoint_close is to be called all the same.
 */
int kd_endpoint_open(struct kd_endpoint *e, const char *provider, const char *node, void *address, size_t *size_p);
/* The provider in use; "none" if it has not come to that. */
const char *kd_endpoint_name(const struct kd_endpoint *e);
/* Ends the traffic: the provider does not touch anybody's memory from here on. What is registered is still to be given back. */
void kd_endpoint_stop(struct kd_endpoint *e);
/* Closes what is open, after kd_endpoint_stop. */
void kd_endpoint_close(struct kd_endpoint *e);

/* Registers memory for FI_SEND, FI_RECV, FI_READ of ours, which only some providers want (*mr_p stays NULL with others), or for
 * FI_REMOTE_READ. 0, or libfabric's error. */
int kd_endpoint_register(struct kd_endpoint *e, void *p, size_t len, uint64_t access, struct fid_mr **mr_p);
/* NULL: does nothing. */
void kd_endpoint_unregister(struct fid_mr *mr);

#endif
