/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define NO_LIMIT (UINT64_MAX >> 2) /* version 1 has a large number for that */

/* The group at the directory. */
typedef void look(const char *directory, void *arg);

int kd_cgroup_number(const char *path, const char *name, uint64_t *number_p)
{
	size_t length = strlen(name);
	FILE *f = fopen(path, "re");
	char line[128];
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, name, length) &&
			sscanf(line + length, "%" SCNu64, number_p) == 1;
	if (f)
		fclose(f);
	return found;
}

static int number_at(const char *directory, const char *file, const char *name,
		     uint64_t *number_p)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, file) < (int)sizeof(path) &&
	       kd_cgroup_number(path, name, number_p);
}

/* Whether the list of controllers, "cpu,cpuacct", has that one; both "" in version 2. */
static int lists(const char *controllers, const char *controller)
{
	size_t length = strlen(controller);

	for (const char *at = controllers; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, controller, length) && (!at[length] || at[length] == ','))
			return 1;
	}
	return 0;
}

/* Looks at this process's group of the controller ("": version 2), and at those above it. Its lines
 * of /proc/self/cgroup are "NUMBER:CONTROLLERS:PATH". */
static void climb(const char *root, const char *controller, look *at, void *arg)
{
	char line[PATH_MAX], directory[2 * PATH_MAX], *path, *end;
	size_t mount;
	FILE *f;

	mount = (size_t)snprintf(directory, PATH_MAX, "%s/sys/fs/cgroup%s%s", root,
				 *controller ? "/" : "", controller);
	if (mount >= PATH_MAX)
		return;
	snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *controllers = strchr(line, ':');

		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		if (!lists(controllers + 1, controller))
			continue;
		snprintf(directory + mount, sizeof(directory) - mount, "%s", path);
		break;
	}
	if (f)
		fclose(f);
	for (;; *end = 0) {
		at(directory, arg);
		end = strrchr(directory + mount, '/');
		if (!end)
			return;
	}
}

/* Version 2: "max 100000" or "QUOTA PERIOD"; version 1: a file for each, the quota -1 for none. */
static void look_cpus(const char *directory, void *arg)
{
	uint64_t quota = 0, period = 0;
	int *least = arg, cpus;
	char path[PATH_MAX], line[64];
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/cpu.max", directory) >= (int)sizeof(path))
		return;
	f = fopen(path, "re");
	if (f) {
		if (!fgets(line, sizeof(line), f) ||
		    sscanf(line, "%" SCNu64 " %" SCNu64, &quota, &period) != 2)
			quota = 0;
		fclose(f);
	} else if (!number_at(directory, "cpu.cfs_quota_us", "", &quota) ||
		   !number_at(directory, "cpu.cfs_period_us", "", &period)) {
		return;
	}
	if (!quota || quota >= INT_MAX || !period)
		return;
	cpus = (int)((quota + period - 1) / period);
	*least = *least ? kd_min(*least, cpus) : cpus;
}

int kd_cgroup_cpus(const char *root)
{
	int least = 0;

	climb(root, "", look_cpus, &least);
	climb(root, "cpu", look_cpus, &least);
	return least;
}

struct names {
	const char *limits[3], *used, *inactive;
	struct kd_cgroup_memory *memory;
};

static void look_memory(const char *directory, void *arg)
{
	const struct names *n = arg;
	uint64_t limit = UINT64_MAX, used, inactive = 0;

	for (int i = 0; n->limits[i]; i++) {
		uint64_t l;

		if (number_at(directory, n->limits[i], "", &l) && l < NO_LIMIT)
			limit = kd_min(limit, l);
	}
	if (limit == UINT64_MAX)
		return;
	n->memory->limit = kd_min(n->memory->limit, limit);
	if (!number_at(directory, n->used, "", &used))
		used = limit;
	number_at(directory, "memory.stat", n->inactive, &inactive);
	used -= kd_min(used, inactive);
	n->memory->left = kd_min(n->memory->left, limit - kd_min(used, limit));
}

struct kd_cgroup_memory kd_cgroup_memory(const char *root)
{
	struct kd_cgroup_memory m = {UINT64_MAX, UINT64_MAX};
	struct names two = {{"memory.max", "memory.high"}, "memory.current", "inactive_file ", &m};
	struct names one = {{"memory.limit_in_bytes"}, "memory.usage_in_bytes",
			    "total_inactive_file ", &m};

	climb(root, "", look_memory, &two);
	climb(root, "memory", look_memory, &one);
	return m;
}
