/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

int kd_file_open(struct kd_file *f, const char *variable, const char *name, uint32_t rank, uint32_t size)
{
	int fd, error;

	*f = (struct kd_file){.variable = variable};
	if (asprintf(&f->name, size > 1 ? "%s.%u" : "%s", name, rank) < 0) {
		f->name = NULL;
		kd_error("%s=%s: out of memory", variable, name);
		return -ENOMEM;
	}
	fd = open(f->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	f->stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (f->stream)
		return 0;
	error = -errno;
	kd_error("%s: cannot write %s: %s", variable, f->name, kd_errno_text(errno));
	if (fd >= 0)
		close(fd);
	free(f->name);
	f->name = NULL;
	return error;
}

/* Closes it; 1: it was a file like any other, and has been removed. */
static int discard(struct kd_file *f)
{
	struct stat st = {.st_mode = 0};
	int regular = !fstat(fileno(f->stream), &st) && S_ISREG(st.st_mode) && !unlink(f->name);

	fclose(f->stream);
	return regular;
}

static void forget(struct kd_file *f)
{
	free(f->name);
	*f = (struct kd_file){.stream = NULL};
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
		kd_error("%s: cannot write all of %s: %s%s", f->variable, f->name, kd_errno_text(-error),
			 discard(f) ? "; it has been removed" : "");
	} else if (fclose(f->stream)) {
		error = -errno;
		kd_error("%s: cannot write all of %s: %s", f->variable, f->name, kd_errno_text(-error));
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
			putc('?', out); /* control characters, and bytes that may be no UTF-8 */
		else
			putc(*c, out);
}
