/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/endpoint.h"

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"
#include "comm/comm.h"
#include "comm/ofi.h"

const char *kd_endpoint_name(const struct kd_endpoint *e)
{
	return e->info ? e->info->fabric_attr->prov_name : "none";
}

static int failed(const struct kd_endpoint *e, const char *what, int error)
{
	kd_error("libfabric's provider %s cannot %s: %s", kd_endpoint_name(e), what,
		 kd_ofi.strerror(-error));
	return kd_ofi_errno(error);
}

static int open_queue(struct kd_endpoint *e)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .size = 1024, .wait_obj = FI_WAIT_FD};
	int error = fi_cq_open(e->domain, &attr, &e->cq, NULL);

	if (error || fi_control(&e->cq->fid, FI_GETWAIT, &e->cq_fd))
		e->cq_fd = -1; /* nothing to sleep on */
	if (error) {
		attr.wait_obj = FI_WAIT_NONE;
		error = fi_cq_open(e->domain, &attr, &e->cq, NULL);
	}
	return error;
}

static int open_all(struct kd_endpoint *e, void *address, size_t *size_p)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = 64};
	int error = kd_ofi.fabric(e->info->fabric_attr, &e->fabric, NULL);

	if (error)
		return failed(e, "open a fabric", error);
	error = fi_domain(e->fabric, e->info, &e->domain, NULL);
	if (error)
		return failed(e, "open a domain", error);
	error = open_queue(e);
	if (error)
		return failed(e, "open a completion queue", error);
	error = fi_av_open(e->domain, &av_attr, &e->av, NULL);
	if (error)
		return failed(e, "open an address table", error);
	error = fi_endpoint(e->domain, e->info, &e->ep, NULL);
	if (error)
		return failed(e, "open an endpoint", error);
	error = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!error)
		error = fi_ep_bind(e->ep, &e->av->fid, 0);
	if (!error)
		error = fi_enable(e->ep);
	if (error)
		return failed(e, "enable an endpoint", error);
	*size_p = KD_COMM_ADDRESS_BYTES;
	error = fi_getname(&e->ep->fid, address, size_p);
	if (error)
		return failed(e, "get an endpoint's address", error);
	return 0;
}

static void note_modes(struct kd_endpoint *e)
{
	const struct fi_domain_attr *domain = e->info->domain_attr;

	e->virtual = !!(domain->mr_mode & FI_MR_VIRT_ADDR);
	e->prov_key = !!(domain->mr_mode & FI_MR_PROV_KEY);
	e->local_mr = !!(domain->mr_mode & FI_MR_LOCAL);
	e->key_mask = domain->mr_key_size < 8 ? (1ull << 8 * domain->mr_key_size) - 1 : UINT64_MAX;
}

int kd_endpoint_open(struct kd_endpoint *e, const char *provider, const char *node, void *address,
		     size_t *size_p)
{
	int error;

	*e = (struct kd_endpoint){.cq_fd = -1};
	error = kd_ofi_find(provider, node, &e->info);
	if (!error) {
		note_modes(e);
		error = open_all(e, address, size_p);
	}
	kd_ofi_restore_environment();
	return error;
}

static void close_fid(void *object)
{
	struct fid *fid = object;
	int error = fid ? fi_close(fid) : 0;

	(void)error;
#ifdef KDDS_DEBUG
	if (error)
		kd_error("closing: libfabric says %s", kd_ofi.strerror(-error));
#endif
}

void kd_endpoint_stop(struct kd_endpoint *e)
{
	close_fid(e->ep);
	e->ep = NULL;
}

void kd_endpoint_close(struct kd_endpoint *e)
{
	close_fid(e->av);
	close_fid(e->cq);
	close_fid(e->domain);
	close_fid(e->fabric);
	if (e->info)
		kd_ofi.freeinfo(e->info);
	*e = (struct kd_endpoint){.cq_fd = -1};
}

int kd_endpoint_register(struct kd_endpoint *e, void *p, size_t len, uint64_t access,
			 struct fid_mr **mr_p)
{
	int error, tries = 0;

	if (access != FI_REMOTE_READ && !e->local_mr)
		return 0;
	/* Where keys are short, one that is in use may be drawn. */
	do
		error = fi_mr_reg(e->domain, p, len, access, 0,
				  e->prov_key ? 0 : kd_os_random() & e->key_mask, 0, mr_p, NULL);
	while (error == -FI_ENOKEY && ++tries < 64);
	return error;
}

void kd_endpoint_unregister(struct fid_mr *mr)
{
	close_fid(mr);
}
