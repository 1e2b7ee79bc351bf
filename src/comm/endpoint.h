/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libfabric opens for a rank: a fabric, a domain in it, and there one endpoint of reliable
 * datagrams and reads, with its completion queue and its address table; and what the provider
 * requires of memory that it uses. comm_ofi.c sends and receives on it.
 */
#ifndef KD_ENDPOINT_H
#define KD_ENDPOINT_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "base/base.h"

/* What a completion is about: the context of each operation begins with this. */
enum kd_operation { KD_RECEIVE, KD_SEND, KD_GET };

struct kd_endpoint {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	int cq_fd;         /* readable when the queue is; -1: the provider has none */
	int virtual;       /* others name our memory by its address, not by an offset */
	int prov_key;      /* the provider chooses the keys */
	int local_mr;      /* memory that only we use must be registered as well */
	uint64_t key_mask; /* the bits that keys may have */
};

/*
 * Opens all of this at a numeric address of this host, and writes the endpoint's own address, at
 * most KD_COMM_ADDRESS_BYTES. provider as for kd_ofi_find. 0, or -errno after a line on stderr;
 * then kd_endpoint_close must be called all the same.
 */
int kd_endpoint_open(struct kd_endpoint *e, const char *provider, const char *node, void *address,
		     size_t *size_p);
/* The provider in use; "none" before there is one. */
const char *kd_endpoint_name(const struct kd_endpoint *e);
/* Ends the traffic: from here on the provider does not touch anybody's memory. Registered memory
 * must still be unregistered. */
void kd_endpoint_stop(struct kd_endpoint *e);
/* Closes what is open, after kd_endpoint_stop. */
void kd_endpoint_close(struct kd_endpoint *e);

/* Registers memory for FI_SEND, FI_RECV or FI_READ by this process, which only some providers
 * require (with others *mr_p stays NULL), or for FI_REMOTE_READ. 0, or libfabric's error. */
int kd_endpoint_register(struct kd_endpoint *e, void *p, size_t len, uint64_t access,
			 struct fid_mr **mr_p);
/* NULL: does nothing. */
void kd_endpoint_unregister(struct fid_mr *mr);

#endif
