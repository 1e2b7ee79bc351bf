/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/ofi.h"

#include <dlfcn.h>
#include <errno.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comm/comm.h"

/* The oldest that has what we use: any library since then will do. */
#define API_VERSION FI_VERSION(1, 9)

/* What is static in this file belongs to the library, which a process has once, or to the
 * environment. One thread at a time opens an endpoint (comm.h). */
struct kd_ofi kd_ofi;

int kd_ofi_errno(ssize_t error)
{
	return error > -FI_ERRNO_OFFSET ? (int)error : -EIO;
}

/* The versions are those that rdma/fabric.h of 1.9 and later gives. A library without them has only
 * one version of each. */
static const struct {
	const char *name, *version;
	void *function;
} symbols[] = {
	{"fi_getinfo", "FABRIC_1.3", &kd_ofi.getinfo},
	{"fi_freeinfo", "FABRIC_1.3", &kd_ofi.freeinfo},
	{"fi_dupinfo", "FABRIC_1.3", &kd_ofi.dupinfo},
	{"fi_fabric", "FABRIC_1.1", &kd_ofi.fabric},
	{"fi_strerror", "FABRIC_1.0", &kd_ofi.strerror},
	{"fi_version", "FABRIC_1.0", &kd_ofi.version},
};

static int load(void)
{
	static void *library; /* never closed: libraries that libfabric loads cannot be unloaded */

	if (library)
		return 0;
	library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		kd_error("a job of several processes needs libfabric, and it cannot be loaded "
			 "(%s): install it on every host "
			 "(Debian: libfabric1)",
			 dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *f = dlvsym(library, symbols[i].name, symbols[i].version);

		if (!f)
			f = dlsym(library, symbols[i].name);
		if (!f) {
			kd_error("libfabric.so.1 has no %s: install libfabric 1.9 or later "
				 "(Debian: libfabric1)",
				 symbols[i].name);
			dlclose(library);
			library = NULL;
			return -ENOENT;
		}
		memcpy(symbols[i].function, &f, sizeof(f));
	}
	return 0;
}

/*
 * Variables that libfabric reads from the environment while it starts; a value set by the user
 * wins. Its own defaults spend a hundred megabytes per process on buffers and queues. Peers must
 * agree on the eager limit, or they refuse to connect.
 */
enum providers { ANY, SOCKETS, OTHERS };

static struct setting {
	const char *name, *value;
	enum providers providers;
	int set; /* by us */
} settings[] = {
	/* No crash signal handlers from the libraries of InfiniPath and Omni-Path. */
	{"IPATH_NO_BACKTRACE", "1", ANY, 0},
	{"HFI_NO_BACKTRACE", "1", ANY, 0},
	/* us; 10000 delays the first message by as much */
	{"FI_OFI_RXM_CM_PROGRESS_INTERVAL", "100", ANY, 0},
	{"FI_OFI_RXM_EAGER_LIMIT", "8192", ANY, 0},
	/* Over sockets, messages go directly to and from our buffers. rxm's own hold headers, and
	 * messages that find no buffer posted. */
	{"FI_OFI_RXM_BUFFER_SIZE", "256", SOCKETS, 0},
	{"FI_OFI_RXM_MSG_TX_SIZE", "64", SOCKETS, 0},
	{"FI_OFI_RXM_MSG_RX_SIZE", "256", SOCKETS, 0},
	{"FI_UNIVERSE_SIZE", "16", SOCKETS, 0}, /* sizes a queue, which grows when it must */
	{"FI_OFI_RXM_BUFFER_SIZE", "8192", OTHERS, 0},
};
_Static_assert(KD_COMM_MESSAGE_BYTES == 8192, "a message fits the eager limit");

static void set_environment(const char *provider)
{
	int sockets = !strncmp(provider, "tcp", 3) || !strncmp(provider, "net", 3);

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		struct setting *s = &settings[i];

		if (s->providers != (sockets ? OTHERS : SOCKETS) && !getenv(s->name))
			s->set = !setenv(s->name, s->value, 0);
	}
}

void kd_ofi_restore_environment(void)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		if (settings[i].set)
			unsetenv(settings[i].name);
		settings[i].set = 0;
	}
}

static struct fi_info *new_hints(const char *provider)
{
	struct fi_info *hints = kd_ofi.dupinfo(NULL);

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider); /* fi_freeinfo frees it */
	return hints;
}

static int is_socket_address(const struct fi_info *info)
{
	return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6;
}

/* Reports which provider is missing and which there are. */
static void complain(const char *provider, const char *node)
{
	struct fi_info *hints = new_hints(NULL), *list = NULL;
	char names[512] = "";
	int reachable = 0;

	if (hints && !kd_ofi.getinfo(API_VERSION, NULL, NULL, 0, hints, &list))
		for (struct fi_info *i = list; i; i = i->next) {
			const char *name = i->fabric_attr->prov_name;
			size_t n = strlen(names), len = strlen(name);
			const char *seen = strstr(names, name);

			reachable |= !strcmp(name, provider);
			while (seen && ((seen != names && seen[-1] != ' ') ||
					(seen[len] != ',' && seen[len])))
				seen = strstr(seen + 1, name);
			if (!seen && n + len + 3 < sizeof(names))
				snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", name);
		}
	if (reachable)
		kd_error("libfabric's provider %s does not work at address %s: set KDDS_ADDRESS to "
			 "one of a network it can use "
			 "(`fi_info -p \"%s\"' lists them)",
			 provider, node, provider);
	else
		kd_error(
			"libfabric %u.%u has no provider %s here: set KDDS_PROVIDER to one of %s%s",
			FI_MAJOR(kd_ofi.version()), FI_MINOR(kd_ofi.version()), provider,
			*names ? names : "(none at all)",
			getenv("FI_PROVIDER") ? ", or unset FI_PROVIDER, which hides others" : "");
	if (list)
		kd_ofi.freeinfo(list);
	if (hints)
		kd_ofi.freeinfo(hints);
}

int kd_ofi_find(const char *provider, const char *node, struct fi_info **info_p)
{
	struct fi_info *hints;
	int error;

	set_environment(provider);
	error = load();
	if (error)
		return error;
	hints = new_hints(provider);
	if (!hints)
		return -ENOMEM;
	error = kd_ofi.getinfo(API_VERSION, NULL, NULL, 0, hints, info_p);
	/* A provider with its own kind of addresses cannot use ours. */
	if (!error && is_socket_address(*info_p)) {
		kd_ofi.freeinfo(*info_p);
		*info_p = NULL;
		error = kd_ofi.getinfo(API_VERSION, node, NULL, FI_SOURCE, hints, info_p);
	}
	kd_ofi.freeinfo(hints);
	if (error)
		complain(provider, node);
	return error == -FI_ENODATA ? -ENOENT : error ? -EIO : 0;
}
