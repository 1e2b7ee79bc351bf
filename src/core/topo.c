/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "core/topo.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"

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

static int read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	int got = f && fgets(line, size, f);

	if (f)
		fclose(f);
	return got;
}

/* CPU time that the cgroup grants, in CPUs, rounded up: version 2 in one file, version 1 in two.
 * 0: no limit. */
static int cgroup_cpus(void)
{
	char line[128];
	double quota = 0, period = 0;

	if (read_line("/sys/fs/cgroup/cpu.max", line, sizeof(line))) {
		if (sscanf(line, "%lf %lf", &quota, &period) != 2)
			return 0; /* "max" */
	} else if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof(line))) {
		quota = atof(line);
		if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof(line)))
			period = atof(line);
	}
	return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int kd_topo_mask_cpus(void)
{
	return kd_max(hwloc_bitmap_weight(allowed), 1);
}

int kd_topo_cpus(void)
{
	int cpus = kd_topo_mask_cpus(), quota = cgroup_cpus();

	if (quota)
		cpus = kd_min(cpus, quota);
	return crowd ? kd_max(cpus / crowd, 1) : cpus;
}

/* The number behind the name at the beginning of a line of the file; missing: there is none. */
static uint64_t number_in(const char *path, const char *name, uint64_t missing)
{
	FILE *f = fopen(path, "re");
	size_t length = strlen(name);
	uint64_t number = missing;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, length) &&
		    sscanf(line + length, "%" SCNu64, &number) == 1)
			break;
	if (f)
		fclose(f);
	return number;
}

/* What the cgroup's processes use, without the files that the kernel can drop at any time. Version
 * 2, or 1. */
static uint64_t cgroup_memory_used(void)
{
	uint64_t used = number_in("/sys/fs/cgroup/memory.current", "", 0), files;

	files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ", 0);
	if (!used) {
		used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", "", 0);
		files = number_in("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file ", 0);
	}
	return used - kd_min(files, used);
}

uint64_t kd_topo_available(void)
{
	uint64_t host = number_in("/proc/meminfo", "MemAvailable:", UINT64_MAX >> 10) << 10;
	uint64_t memory = kd_topo_memory();

	return kd_min(host, memory - kd_min(cgroup_memory_used(), memory));
}

uint64_t kd_topo_memory(void)
{
	/* hwloc adds up the NUMA nodes, to which memory that a virtual machine was given later may
	 * not belong */
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE), limit;
	char line[128];

	if ((read_line("/sys/fs/cgroup/memory.max", line, sizeof(line)) ||
	     read_line("/sys/fs/cgroup/memory/memory.limit_in_bytes", line, sizeof(line))) &&
	    sscanf(line, "%" SCNu64, &limit) == 1)
		memory = kd_min(memory, limit);
	return memory;
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
