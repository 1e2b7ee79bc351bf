/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "core/topo.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "core/cgroup.h"

static hwloc_topology_t topology;
static hwloc_cpuset_t allowed; /* CPUs of the affinity mask, or our share of them */
static hwloc_cpuset_t host;    /* CPUs of all ranks of the job on this host */
static int crowd;              /* processes that share too few CPUs; 0: there are enough */

int kd_topo_init(void)
{
	int error = -ENOMEM;

	if (hwloc_topology_init(&topology))
		goto failed;
	if (hwloc_topology_load(topology))
		goto destroy;
	allowed = hwloc_bitmap_alloc();
	if (!allowed)
		goto destroy;
	if (!hwloc_topology_is_thissystem(topology) ||
	    hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS))
		hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
	host = hwloc_bitmap_dup(allowed);
	if (host && getenv(KD_HOST_CPUS_ENV))
		hwloc_bitmap_list_sscanf(host, getenv(KD_HOST_CPUS_ENV));
	if (hwloc_topology_restrict(topology, allowed, 0)) {
		hwloc_bitmap_free(allowed);
		hwloc_bitmap_free(host);
		goto destroy;
	}
	hwloc_bitmap_copy(allowed, hwloc_topology_get_topology_cpuset(topology));
	crowd = 0;
	return 0;
destroy:
	hwloc_topology_destroy(topology);
failed:
	kd_error("cannot load the machine's topology: %s", kd_errno_text(-error));
	return error;
}

void kd_topo_fini(void)
{
	hwloc_bitmap_free(allowed);
	hwloc_bitmap_free(host);
	host = NULL;
	hwloc_topology_destroy(topology);
}

int kd_topo_mask_cpus(void)
{
	return kd_max(hwloc_bitmap_weight(allowed), 1);
}

int kd_topo_cpus(void)
{
	int cpus = kd_topo_mask_cpus(), quota = kd_cgroup_cpus("");

	if (quota)
		cpus = kd_min(cpus, quota);
	return crowd ? kd_max(cpus / crowd, 1) : cpus;
}

/* Whether memory of all NUMA nodes may be used. */
static int all_nodes(void)
{
	return hwloc_bitmap_isequal(hwloc_topology_get_allowed_nodeset(topology),
				    hwloc_topology_get_complete_nodeset(topology));
}

uint64_t kd_topo_memory(void)
{
	uint64_t memory = hwloc_get_root_obj(topology)->total_memory;
	long pages = sysconf(_SC_PHYS_PAGES);

	/* the nodes need not have the memory that a virtual machine was given later */
	if (pages > 0 && all_nodes())
		memory = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return kd_min(memory, kd_cgroup_memory("").limit);
}

uint64_t kd_topo_available(void)
{
	struct rlimit space;
	uint64_t kib;

	if (!all_nodes() || getrlimit(RLIMIT_AS, &space) || space.rlim_cur != RLIM_INFINITY ||
	    !kd_cgroup_number("/proc/meminfo", "MemAvailable:", &kib))
		return 0;
	return kd_min(kib << 10, kd_cgroup_memory("").left);
}

uint64_t kd_topo_mask(void)
{
	uint64_t h = 14695981039346656037u;
	int i;

	hwloc_bitmap_foreach_begin(i, allowed)
		h = (h ^ (uint64_t)i) * 1099511628211u;
	hwloc_bitmap_foreach_end();
	return h;
}

int kd_topo_crowded(void)
{
	return crowd != 0;
}

/* Share number `share` of the CPUs, divided into `shares`. The caller frees the set. NULL: more
 * shares than CPUs. */
static hwloc_cpuset_t share_of(int share, int shares)
{
	hwloc_obj_t root = hwloc_get_root_obj(topology);
	hwloc_cpuset_t *sets, set = NULL;

	if (shares > hwloc_bitmap_weight(allowed) || crowd)
		return NULL;
	sets = calloc((size_t)shares, sizeof(*sets));
	if (!sets || hwloc_distrib(topology, &root, 1, sets, (unsigned)shares, INT32_MAX, 0)) {
		free(sets);
		return NULL;
	}
	for (int i = 0; i < shares; i++)
		if (i == share)
			set = sets[i];
		else
			hwloc_bitmap_free(sets[i]);
	free(sets);
	return set;
}

void kd_topo_divide(int i, int n)
{
	hwloc_cpuset_t set = share_of(i, n);

	if (set && !hwloc_topology_restrict(topology, set, 0))
		hwloc_bitmap_copy(allowed, hwloc_topology_get_topology_cpuset(topology));
	else
		crowd = n;
	hwloc_bitmap_free(set);
}

int kd_topo_place(int worker, int workers)
{
	hwloc_cpuset_t set = share_of(worker, workers);
	hwloc_obj_t node = NULL;
	int place;

	if (!set)
		return worker % kd_topo_places();
	while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
		if (hwloc_bitmap_intersects(node->cpuset, set))
			break;
	place = node ? (int)node->logical_index : 0;
	hwloc_bitmap_free(set);
	return place;
}

int kd_topo_places(void)
{
	return kd_max(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE), 1);
}

void kd_topo_bind(int worker, int workers)
{
	hwloc_cpuset_t set = share_of(worker, workers);

	/* If binding is refused, this costs locality and nothing else. */
	if (set && hwloc_topology_is_thissystem(topology))
		hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_free(set);
}

void kd_topo_unbind(void)
{
	cpu_set_t set;

	/* hwloc_set_cpubind refuses CPUs that are not in the topology, which is restricted */
	if (host && hwloc_topology_is_thissystem(topology) &&
	    !hwloc_cpuset_to_glibc_sched_affinity(topology, host, &set, sizeof(set)))
		sched_setaffinity(0, sizeof(set), &set);
}

void kd_topo_pass_host(void)
{
	char *list = NULL;

	if (hwloc_bitmap_list_asprintf(&list, allowed) >= 0)
		setenv(KD_HOST_CPUS_ENV, list, 1);
	free(list);
}

int kd_topo_bind_share(int share, int shares)
{
	hwloc_cpuset_t set = share_of(share, shares);
	int done = set && hwloc_topology_is_thissystem(topology) &&
		   !hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_PROCESS);

	hwloc_bitmap_free(set);
	return done;
}
