/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY KD_SLOTS
#define BUSY_TRIES 1000 /* of 10 ms: a rank 0 that has lost its job may still be writing */
#define RENAMED_TRIES 100

static const char *const suffix[] = {".kdds1", ".kdds2", ".kdds.tmp"};

static const char *file(const struct kd_slots *s, int slot)
{
	return s->path[slot] + strlen(s->path[slot]) - strlen(suffix[slot]) - strlen(s->base);
}

int kd_slots_open(struct kd_slots *s, const char *name)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	char *directory = strndup(name, slash ? (size_t)(slash - name) + 1 : 0);
	int error = -ENOMEM;

	*s = (struct kd_slots){.directory = -1, .base = strdup(base)};
	for (int i = 0; i <= TEMPORARY; i++)
		if (asprintf(&s->path[i], "%s%s", name, suffix[i]) < 0)
			s->path[i] = NULL;
	if (directory && s->base && s->path[0] && s->path[1] && s->path[TEMPORARY]) {
		s->directory = open(*directory ? directory : ".",
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = s->directory < 0 ? -errno : *base ? 0 : -EISDIR;
	}
	free(directory);
	if (error)
		kd_slots_close(s);
	return error;
}

void kd_slots_close(struct kd_slots *s)
{
	if (s->directory >= 0)
		close(s->directory);
	free(s->base);
	for (int i = 0; i <= TEMPORARY; i++)
		free(s->path[i]);
	*s = (struct kd_slots){.directory = -1};
}

int kd_slots_read(const struct kd_slots *s, int slot)
{
	int fd = openat(s->directory, file(s, slot), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

/* Whether the temporary file is the one that is open. Its last writer may have renamed or removed
 * it while this process waited for the lock. */
static int is_current(const struct kd_slots *s, const struct stat *st)
{
	struct stat named;

	return !fstatat(s->directory, file(s, TEMPORARY), &named, AT_SYMLINK_NOFOLLOW) &&
	       named.st_ino == st->st_ino && named.st_dev == st->st_dev;
}

/* Locks the file. Where there are no locks, as on some network file systems, it is free. */
static int lock(int fd, int tries)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return 0;
		if (--tries <= 0)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Opens the temporary file and locks it. -EAGAIN: its name is another file's meanwhile. */
static int open_locked(const struct kd_slots *s, int flags, int tries)
{
	const int all = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags;
	int fd = flags & O_CREAT ? openat(s->directory, file(s, TEMPORARY), all | O_EXCL, 0666) : -1;
	int created = fd >= 0;
	struct stat st;
	int error;

	if (!created)
		fd = openat(s->directory, file(s, TEMPORARY), all, 0666);
	if (fd < 0)
		return errno == ELOOP ? -EACCES : -errno;
	error = lock(fd, tries);
	if (!error && fstat(fd, &st))
		error = -errno;
	if (!error && !is_current(s, &st))
		error = -EAGAIN;
	/* One that another user has put there, to read or to redirect what is written. (Some file
	 * systems give the files that this process creates to another user.) */
	if (!error && !created &&
	    (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink > 1))
		error = -EACCES;
	if (!error)
		return fd;
	close(fd);
	return error;
}

int kd_slots_write(const struct kd_slots *s)
{
	int fd = -EAGAIN;

	for (int tries = 0; fd == -EAGAIN && tries < RENAMED_TRIES; tries++)
		fd = open_locked(s, O_CREAT, BUSY_TRIES);
	if (fd >= 0 && ftruncate(fd, 0)) {
		int error = -errno;

		kd_slots_drop(s, fd);
		return error;
	}
	return fd;
}

void kd_slots_drop(const struct kd_slots *s, int fd)
{
	unlinkat(s->directory, file(s, TEMPORARY), 0);
	close(fd);
}

int kd_slots_commit(const struct kd_slots *s, int fd, int slot)
{
	int error = 0;

	if (fsync(fd) ||
	    renameat(s->directory, file(s, TEMPORARY), s->directory, file(s, slot))) {
		error = -errno;
		kd_slots_drop(s, fd);
		return error;
	}
	if (close(fd))
		error = -errno;
	/* some file systems cannot synchronise directories */
	if (fsync(s->directory) && errno != EINVAL && errno != EROFS)
		error = -errno;
	return error;
}

void kd_slots_clean(const struct kd_slots *s)
{
	int fd = open_locked(s, 0, 1);

	if (fd >= 0)
		kd_slots_drop(s, fd);
}

int kd_slots_remove(const struct kd_slots *s)
{
	int error = 0;

	kd_slots_clean(s);
	for (int i = 0; i < KD_SLOTS; i++)
		if (unlinkat(s->directory, file(s, i), 0) && errno != ENOENT)
			error = -errno;
	if (fsync(s->directory) && errno != EINVAL && errno != EROFS)
		error = -errno;
	return error;
}
