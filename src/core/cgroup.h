/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the control groups of this process grant it, version 1 or 2: the least that its own group
 * and those above it grant. In a container these may be the root of what is mounted, whatever
 * /proc/self/cgroup calls them, so groups that are not there do not count.
 *
 * root: "", or for tests the directory that has proc/self/cgroup and sys/fs/cgroup.
 */
#ifndef KD_CGROUP_H
#define KD_CGROUP_H

#include <stdint.h>

/* CPU time, in CPUs, rounded up. 0: no limit. */
int kd_cgroup_cpus(const char *root);

struct kd_cgroup_memory {
	uint64_t limit; /* bytes; UINT64_MAX: none */
	/* Of the limits' bytes those that the groups' processes do not use; files that the kernel
	 * can drop are not used. UINT64_MAX: no limit; 0, too, if it is not known. */
	uint64_t left;
};

struct kd_cgroup_memory kd_cgroup_memory(const char *root);

/* The number behind the name at the beginning of a line of the file. 0: there is none. */
int kd_cgroup_number(const char *path, const char *name, uint64_t *number_p);

#endif
