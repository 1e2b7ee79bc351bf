/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"

#define LINKS_MAX 16
#define FOREIGN (-EREMOTE) /* another user's link or file; no error of the kernel */

static void forget(struct kd_file *f)
{
	if (f->name && f->directory >= 0)
		close(f->directory);
	free(f->name);
	free(f->base);
	*f = (struct kd_file){.stream = NULL};
}

static int refuse(struct kd_file *f, int error)
{
	kd_error("%s: cannot write %s: %s", f->variable, f->name,
		 error == FOREIGN ? "it is another user's link or file" : kd_errno_text(-error));
	forget(f);
	return error == FOREIGN ? -EACCES : error;
}

/* Makes f name the path, relative to the directory of f. 0 or -errno. */
static int turn_to(struct kd_file *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *base = strdup(slash ? slash + 1 : path);
	char *directory = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
	int fd = -1, error = -ENOMEM;

	if (base && directory) {
		fd = openat(f->directory, *directory ? directory : ".",
			    O_PATH | O_DIRECTORY | O_CLOEXEC);
		error = fd < 0 ? -errno : *base ? 0 : -EISDIR;
	}
	free(directory);
	if (error) {
		free(base);
		if (fd >= 0)
			close(fd);
		return error;
	}
	if (f->directory >= 0)
		close(f->directory);
	free(f->base);
	f->directory = fd;
	f->base = base;
	return 0;
}

/* Follows a link that belongs to the user or to root. 1: f names its target now; 0: its target is
 * not a name, and the kernel follows it; or -errno. Another user's link could lead to any file of
 * this user. */
static int follow(struct kd_file *f, int link, const struct stat *st)
{
	char target[PATH_MAX];
	struct statfs fs;
	ssize_t n;
	int error;

	if (st->st_uid && st->st_uid != geteuid())
		return FOREIGN;
	if (!fstatfs(link, &fs) && fs.f_type == PROC_SUPER_MAGIC)
		return 0;
	n = readlinkat(link, "", target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	error = turn_to(f, target);
	return error ? error : 1;
}

/* In a world-writable directory such as /tmp, another user may have created the file that is there
 * in order to receive the output. */
static int is_bait(const struct kd_file *f, const struct stat *st)
{
	struct stat directory;

	return !fstat(f->directory, &directory) && directory.st_mode & S_IWOTH &&
	       st->st_uid != directory.st_uid &&
	       (st->st_uid != geteuid() || (S_ISREG(st->st_mode) && st->st_nlink > 1));
}

static int open_stream(struct kd_file *f, int flags)
{
	int fd = openat(f->directory, f->base, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0666);
	struct stat st;
	int error;

	if (fd < 0)
		return -errno;
	error = fstat(fd, &st) ? -errno : is_bait(f, &st) ? FOREIGN : 0;
	if (!error && S_ISREG(st.st_mode) && ftruncate(fd, 0))
		error = -errno;
	if (!error) {
		f->stream = fdopen(fd, "w");
		error = f->stream ? 0 : -ENOMEM;
	}
	if (error)
		close(fd);
	return error;
}

/* Whether the file can be created or, if it exists, written. What is not a regular file, such as a
 * terminal or a pipe, is opened. */
static int try(struct kd_file *f)
{
	for (unsigned links = 0; links < LINKS_MAX; links++) {
		int fd = openat(f->directory, f->base, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;
		struct stat st;

		if (fd < 0)
			return errno == ENOENT &&
			       !faccessat(f->directory, ".", W_OK | X_OK, AT_EACCESS) ? 0 : -errno;
		if (fstat(fd, &st))
			error = -errno;
		else if (S_ISLNK(st.st_mode))
			error = follow(f, fd, &st);
		else
			error = is_bait(f, &st) ? FOREIGN : 0;
		close(fd);
		if (error < 0)
			return error;
		if (error)
			continue;
		if (!S_ISREG(st.st_mode))
			return open_stream(f, S_ISLNK(st.st_mode) ? 0 : O_NOFOLLOW);
		return faccessat(f->directory, f->base, W_OK, AT_EACCESS) ? -errno : 0;
	}
	return -ELOOP;
}

int kd_file_open(struct kd_file *f, const char *variable, const char *name, uint32_t rank,
		 uint32_t size)
{
	int error;

	*f = (struct kd_file){.variable = variable, .directory = AT_FDCWD};
	if (asprintf(&f->name, size > 1 ? "%s.%u" : "%s", name, rank) < 0) {
		f->name = NULL;
		kd_error("%s=%s: out of memory", variable, name);
		return -ENOMEM;
	}
	error = turn_to(f, f->name);
	if (!error)
		error = try(f);
	return error ? refuse(f, error) : 0;
}

int kd_file_begin(struct kd_file *f)
{
	int error;

	if (f->stream)
		return 0;
	error = open_stream(f, O_CREAT | O_EXCL);
	if (error == -EEXIST)
		error = open_stream(f, O_NOFOLLOW);
	return error ? refuse(f, error) : 0;
}

/* Closes the stream. 1: it was a regular file, and has been removed. */
static int discard(struct kd_file *f)
{
	struct stat st = {.st_mode = 0}, named;
	int regular = !fstat(fileno(f->stream), &st) && S_ISREG(st.st_mode) &&
		      !fstatat(f->directory, f->base, &named, AT_SYMLINK_NOFOLLOW) &&
		      named.st_ino == st.st_ino && named.st_dev == st.st_dev &&
		      !unlinkat(f->directory, f->base, 0);

	fclose(f->stream);
	return regular;
}

void kd_file_drop(struct kd_file *f)
{
	if (f->stream)
		discard(f);
	forget(f);
}

int kd_file_close(struct kd_file *f)
{
	int error = 0;

	if (!f->stream)
		return 0;
	errno = 0;
	if (ferror(f->stream) | fflush(f->stream)) {
		error = errno ? -errno : -EIO;
		kd_error("%s: cannot write all of %s: %s%s", f->variable, f->name,
			 kd_errno_text(-error), discard(f) ? "; it has been removed" : "");
	} else if (fclose(f->stream)) {
		error = -errno;
		kd_error("%s: cannot write all of %s: %s", f->variable, f->name,
			 kd_errno_text(-error));
	}
	forget(f);
	return error;
}

void kd_file_quote(FILE *out, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < ' ' || *c >= 127)
			putc('?', out); /* control characters, and bytes that may not be UTF-8 */
		else
			putc(*c, out);
}
