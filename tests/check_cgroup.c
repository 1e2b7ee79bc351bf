/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that the limits of this process's control group count, and those of the groups above it,
 * in trees of files as Linux has them: version 2, version 1, both, and in containers, where the
 * group that /proc/self/cgroup names is not there and its files are the root's.
 */
#define _GNU_SOURCE
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cgroup.h"

#define NONE UINT64_MAX

static char root[] = "/tmp/check_cgroup.XXXXXX";

/* A file below the root, with its directories. */
static void put(const char *path, const char *text)
{
	char name[256];
	FILE *f;

	for (const char *at = path; (at = strchr(at, '/')); at++) {
		snprintf(name, sizeof(name), "%s/%.*s", root, (int)(at - path), path);
		mkdir(name, 0700);
	}
	snprintf(name, sizeof(name), "%s/%s", root, path);
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void start(void)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static int delete(const char *path, const struct stat *s, int type, struct FTW *at)
{
	(void)s;
	(void)type;
	(void)at;
	return remove(path);
}

static void stop(void)
{
	nftw(root, delete, 8, FTW_DEPTH | FTW_PHYS);
}

static void expect(int cpus, uint64_t limit, uint64_t left)
{
	struct kd_cgroup_memory m = kd_cgroup_memory(root);

	ck_assert_int_eq(kd_cgroup_cpus(root), cpus);
	ck_assert_uint_eq(m.limit, limit);
	ck_assert_uint_eq(m.left, left);
}

START_TEST(none)
{
	expect(0, NONE, NONE);
	put("proc/self/cgroup", "0::/\n");
	expect(0, NONE, NONE);
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/memory.max", "max\n");
	put("sys/fs/cgroup/memory.high", "max\n");
	expect(0, NONE, NONE);
}
END_TEST

START_TEST(version_2)
{
	put("proc/self/cgroup", "0::/a.slice/job_1\n");
	put("sys/fs/cgroup/a.slice/job_1/memory.max", "max\n");
	put("sys/fs/cgroup/a.slice/job_1/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/a.slice/memory.max", "5000\n");
	put("sys/fs/cgroup/a.slice/memory.current", "3000\n");
	put("sys/fs/cgroup/a.slice/memory.stat", "anon 1\ninactive_file 500\nactive_file 7\n");
	put("sys/fs/cgroup/a.slice/cpu.max", "250000 100000\n");
	put("sys/fs/cgroup/b.slice/memory.max", "10\n");
	expect(3, 5000, 2500);
	put("sys/fs/cgroup/a.slice/job_1/memory.high", "4000\n");
	put("sys/fs/cgroup/a.slice/job_1/memory.current", "4100\n");
	put("sys/fs/cgroup/a.slice/job_1/cpu.max", "50000 100000\n");
	expect(1, 4000, 0);
}
END_TEST

START_TEST(version_1)
{
	put("proc/self/cgroup", "11:memory:/slurm/job_1\n4:cpu,cpuacct:/other\n"
				"2:cpuset:/wrong\n1:name=systemd:/\n0::/\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "123456789\n");
	put("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "8000\n");
	put("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "6000\n");
	put("sys/fs/cgroup/memory/slurm/memory.stat",
	    "inactive_file 1\ntotal_inactive_file 1000\n");
	put("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "7000\n");
	put("sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes", "100\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu/other/cpu.cfs_quota_us", "400000\n");
	put("sys/fs/cgroup/cpu/other/cpu.cfs_period_us", "100000\n");
	expect(4, 7000, 3000);
}
END_TEST

/* Without a namespace of its own a container's group is the root of what is mounted there. */
START_TEST(container)
{
	put("proc/self/cgroup", "11:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "100\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	expect(2, 7000, 6900);
}
END_TEST

/* Nothing is left, for all that is known. */
START_TEST(unknown)
{
	put("proc/self/cgroup", "0::/\n");
	put("sys/fs/cgroup/memory.max", "5000\n");
	expect(0, 5000, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cgroup");
	TCase *t = tcase_create("cgroup");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, start, stop);
	tcase_add_test(t, none);
	tcase_add_test(t, version_2);
	tcase_add_test(t, version_1);
	tcase_add_test(t, container);
	tcase_add_test(t, unknown);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
