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

/* The first of these that is present has started this process. */
static const struct kd_boot_launcher *const launchers[] = {&kd_boot_kddsrun, &kd_boot_pmix,
							   &kd_boot_pmi};

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

static int draw_secret(struct kd_boot *b)
{
	if (getrandom(b->secret, sizeof(b->secret), 0) == sizeof(b->secret))
		return 0;
	kd_error("cannot draw the job's secret (getrandom): %s", kd_errno_text(errno));
	return -EIO;
}

static int have_secret(const struct kd_boot *b)
{
	static const uint8_t none[KD_BOOT_SECRET_BYTES];

	return memcmp(b->secret, none, sizeof(none)) != 0;
}

/* Gets a value that the rank is known to have put. */
static int get_put(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	int error = b->launcher->get(b, rank, key, value, size_p);

	if (error != -ENOENT && error != -EMSGSIZE)
		return error;
	kd_error("%s lost %s of rank %u", b->launcher->name, key, rank);
	return -EPROTO;
}

/* Counts the ranks on this host by comparing everybody's host identity. */
static int find_local(struct kd_boot *b, const char *mine)
{
	b->local_rank = b->local_size = 0;
	for (uint32_t i = 0; i < b->size; i++) {
		char other[KD_BOOT_VALUE_BYTES];
		size_t size = sizeof(other);
		int error = get_put(b, i, "kd.node", other, &size);

		if (error)
			return error;
		if (size != strlen(mine) || memcmp(other, mine, size))
			continue;
		b->local_size++;
		b->local_rank += i < b->rank;
	}
	return 0;
}

static int find_secret(struct kd_boot *b)
{
	size_t size = sizeof(b->secret);
	int error = b->rank ? get_put(b, 0, "kd.secret", b->secret, &size) : 0;

	if (!error && size != sizeof(b->secret)) {
		kd_error("%s lost a part of the job's secret", b->launcher->name);
		error = -EPROTO;
	}
	return error;
}

/* Determines what the back end left unset, at the cost of one fence. */
static int complete(struct kd_boot *b)
{
	int local = !b->local_size, secret = !have_secret(b), error = 0;
	char id[KD_BOOT_VALUE_BYTES];

	kd_boot_host(id, sizeof(id));
	if (local)
		error = b->launcher->put(b, "kd.node", id, strlen(id));
	if (!error && secret && !b->rank) {
		error = draw_secret(b);
		if (!error)
			error = b->launcher->put(b, "kd.secret", b->secret, sizeof(b->secret));
	}
	if (!error && (local || secret))
		error = b->launcher->fence(b, 1);
	if (!error && local)
		error = find_local(b, id);
	if (!error && secret)
		error = find_secret(b);
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

static const struct kd_boot_launcher *find_launcher(const struct kd_boot *b)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
		if (launchers[i]->present(b))
			return launchers[i];
	return NULL;
}

int kd_boot_start(struct kd_boot *b, const struct kd_boot_launcher *launcher)
{
	int error;

	if (b->launcher)
		return 0;
	if (!launcher)
		launcher = find_launcher(b);
	b->rank = b->incarnation = b->local_rank = b->local_size = 0;
	b->size = 1;
	b->fd = b->one_host = -1;
	b->tells = 0;
	memset(b->secret, 0, sizeof(b->secret));
	if (!launcher) {
		warn_alone();
		b->local_size = 1;
		return draw_secret(b);
	}
	error = launcher->start(b);
	if (error)
		return error;
	b->launcher = launcher;
	if (b->size == 1) {
		b->local_rank = 0;
		b->local_size = 1;
		if (!have_secret(b))
			error = draw_secret(b);
	} else {
		error = complete(b);
	}
	if (b->one_host < 0)
		b->one_host = b->local_size == b->size;
	if (error) {
		launcher->cancel(b);
		b->launcher = NULL;
		b->fd = -1;
	}
	return error;
}

/* In a job of one rank nobody gets what is put. */
int kd_boot_put(struct kd_boot *b, const char *key, const void *value, size_t size)
{
	return b->launcher ? b->launcher->put(b, key, value, size) : 0;
}

int kd_boot_fence(struct kd_boot *b, int share)
{
	return b->launcher ? b->launcher->fence(b, share) : 0;
}

int kd_boot_get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	return b->launcher ? b->launcher->get(b, rank, key, value, size_p) : -ENOENT;
}

int kd_boot_event(struct kd_boot *b)
{
	return b->launcher && b->launcher->event ? b->launcher->event(b) : 0;
}

void kd_boot_add_change(struct kd_boot *b, const struct kd_boot_change *change)
{
	b->changes = kd_must(realloc(b->changes, (b->nchanges + 1) * sizeof(*b->changes)));
	b->changes[b->nchanges++] = *change;
}

void kd_boot_again(struct kd_boot *b, uint32_t rank, uint32_t tasks, const char *names)
{
	if (b->launcher && b->launcher->again)
		b->launcher->again(b, rank, tasks, names);
}

void kd_boot_over(struct kd_boot *b)
{
	if (b->launcher && b->launcher->over)
		b->launcher->over(b);
}

void kd_boot_depart(struct kd_boot *b)
{
	if (b->launcher && b->launcher->depart)
		b->launcher->depart(b);
}

void kd_boot_suspect(struct kd_boot *b, uint32_t rank, uint32_t incarnation, const char *why)
{
	if (b->launcher && b->launcher->suspect)
		b->launcher->suspect(b, rank, incarnation, why);
}

int kd_boot_changed(struct kd_boot *b, struct kd_boot_change *change_p)
{
	if (b->taken == b->nchanges) {
		b->nchanges = b->taken = 0;
		return 0;
	}
	*change_p = b->changes[b->taken++];
	return 1;
}

static void forget(struct kd_boot *b)
{
	b->launcher = NULL;
	b->fd = -1;
	b->tells = 0;
	free(b->changes);
	b->changes = NULL;
	b->nchanges = b->taken = 0;
}

void kd_boot_stop(struct kd_boot *b)
{
	if (b->launcher)
		b->launcher->stop(b);
	forget(b);
}

void kd_boot_cancel(struct kd_boot *b)
{
	if (b->launcher)
		b->launcher->cancel(b);
	forget(b);
}
