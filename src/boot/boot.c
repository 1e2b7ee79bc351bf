/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "boot/boot_launcher.h"

struct kd_boot kd_boot = {.size = 1, .local_size = 1, .fd = -1};

/* The first of these that is present has started this process. */
static const struct kd_boot_launcher *const launchers[] = {&kd_boot_kddsrun, &kd_boot_pmix,
							   &kd_boot_pmi};
static const struct kd_boot_launcher *launcher; /* NULL: a job of one rank */

static int read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[kd_max(n, 0)] = 0;
	text[strcspn(text, "\n")] = 0;
	return text[0] != 0;
}

/*
 * Two processes are on one host if they run under one boot of one kernel and one host name. This
 * decides whether they can share memory. That they reach each other over some interface proves
 * nothing. Containers and network namespaces of one machine are hosts of their own if their host
 * names differ.
 */
void kd_boot_host(char *id, size_t size)
{
	char boot[64], machine[64];
	struct utsname uts;

	read_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	read_file("/etc/machine-id", machine, sizeof(machine));
	if (uname(&uts))
		uts.nodename[0] = 0;
	snprintf(id, size, "%s/%s/%s", boot, machine, uts.nodename);
}

static int draw_secret(void)
{
	if (getrandom(kd_boot.secret, sizeof(kd_boot.secret), 0) == sizeof(kd_boot.secret))
		return 0;
	kd_error("cannot draw the job's secret (getrandom): %s", kd_errno_text(errno));
	return -EIO;
}

static int have_secret(void)
{
	static const uint8_t none[KD_BOOT_SECRET_BYTES];

	return memcmp(kd_boot.secret, none, sizeof(none)) != 0;
}

/* Gets a value that the rank is known to have put. */
static int get_put(uint32_t rank, const char *key, void *value, size_t *size_p)
{
	int error = launcher->get(rank, key, value, size_p);

	if (error != -ENOENT && error != -EMSGSIZE)
		return error;
	kd_error("%s lost %s of rank %u", launcher->name, key, rank);
	return -EPROTO;
}

/* Counts the ranks on this host by comparing everybody's host identity. */
static int find_local(const char *mine)
{
	kd_boot.local_rank = kd_boot.local_size = 0;
	for (uint32_t i = 0; i < kd_boot.size; i++) {
		char other[KD_BOOT_VALUE_BYTES];
		size_t size = sizeof(other);
		int error = get_put(i, "kd.node", other, &size);

		if (error)
			return error;
		if (size != strlen(mine) || memcmp(other, mine, size))
			continue;
		kd_boot.local_size++;
		kd_boot.local_rank += i < kd_boot.rank;
	}
	return 0;
}

static int find_secret(void)
{
	size_t size = sizeof(kd_boot.secret);
	int error = kd_boot.rank ? get_put(0, "kd.secret", kd_boot.secret, &size) : 0;

	if (!error && size != sizeof(kd_boot.secret)) {
		kd_error("%s lost a part of the job's secret", launcher->name);
		error = -EPROTO;
	}
	return error;
}

/* Determines what the back end left unset, at the cost of one fence. */
static int complete(void)
{
	int local = !kd_boot.local_size, secret = !have_secret(), error = 0;
	char id[KD_BOOT_VALUE_BYTES];

	kd_boot_host(id, sizeof(id));
	if (local)
		error = launcher->put("kd.node", id, strlen(id));
	if (!error && secret && !kd_boot.rank) {
		error = draw_secret();
		if (!error)
			error = launcher->put("kd.secret", kd_boot.secret, sizeof(kd_boot.secret));
	}
	if (!error && (local || secret))
		error = launcher->fence(1);
	if (!error && local)
		error = find_local(id);
	if (!error && secret)
		error = find_secret();
	return error;
}

/* Without a PMI srun prints nothing, and each of its tasks is a job of one rank. */
static void warn_alone(void)
{
	const char *tasks = getenv("SLURM_STEP_NUM_TASKS"), *number = getenv("SLURM_PROCID");

	if (tasks && atoi(tasks) > 1 && number && !strcmp(number, "0"))
		kd_error("Slurm has started %s tasks and offers no PMI: each is a job of its own; "
			 "use srun --mpi=pmi2, srun --mpi=pmix or kddsrun",
			 tasks);
}

int kd_boot_start(void)
{
	uint64_t build = kd_boot.build;
	int error;

	kd_boot = (struct kd_boot){.size = 1, .fd = -1, .build = build};
	launcher = NULL;
	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers) && !launcher; i++)
		if (launchers[i]->present())
			launcher = launchers[i];
	if (!launcher) {
		warn_alone();
		kd_boot.local_size = 1;
		return draw_secret();
	}
	error = launcher->start();
	if (error) {
		launcher = NULL;
		return error;
	}
	if (kd_boot.size == 1) {
		kd_boot.local_rank = 0;
		kd_boot.local_size = 1;
		if (!have_secret())
			error = draw_secret();
	} else {
		error = complete();
	}
	if (error)
		launcher = NULL; /* without stop: the job has not ended well */
	return error;
}

/* In a job of one rank nobody gets what is put. */
int kd_boot_put(const char *key, const void *value, size_t size)
{
	return launcher ? launcher->put(key, value, size) : 0;
}

int kd_boot_fence(int share)
{
	return launcher ? launcher->fence(share) : 0;
}

int kd_boot_get(uint32_t rank, const char *key, void *value, size_t *size_p)
{
	return launcher ? launcher->get(rank, key, value, size_p) : -ENOENT;
}

int kd_boot_event(void)
{
	return launcher && launcher->event ? launcher->event() : 0;
}

void kd_boot_stop(void)
{
	if (launcher)
		launcher->stop();
	launcher = NULL;
	kd_boot.fd = -1;
}
