/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts lines, words and bytes of files, as wc does: words are separated by white space (isspace
 * in the C locale). Files are cut into chunks regardless of their contents, and a task counts each
 * chunk. (GNU wc 9.1 in the C locale leaves out words without any printable ASCII character, such
 * as a UTF-8 bullet.)
 *
 * A cut may split a word, which both chunks then count. So the result of a chunk is its counts and
 * whether a word touches either end; merging two neighbours subtracts one if a word continues from
 * one to the other. That operator is associative but not commutative. The library merges
 * contributions in the order of the text, whichever worker counted them.
 *
 *   |the quick br|own fox  |   jumps|
 *
 *   [3 words, a word at both ends] + [2, at the start] + [1, at the end]
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"wordcount", "[--chunk BYTES] [FILE...]",
	"Counts lines, words and bytes of every FILE; reads standard input for - or without FILE.\n"
	"\n"
	"  --chunk BYTES  bytes per task, 1 to 1000000000 (default 262144)\n"
};

#define BATCH 64                /* files mapped at a time */
#define STREAM_BYTES (8l << 20) /* read from a pipe at a time */

struct text {
	long lines, words, bytes;
	bool starts_in_word, ends_in_word;
};

static void append(struct text *x, const struct text *y)
{
	if (y->bytes == 0)
		return;
	if (x->bytes == 0)
		x->starts_in_word = y->starts_in_word;
	x->words += y->words - (x->ends_in_word && y->starts_in_word);
	x->lines += y->lines;
	x->bytes += y->bytes;
	x->ends_in_word = y->ends_in_word;
}

KDDS_OP(concatenate, struct text, ((struct text){0, 0, 0, false, false}), KDDS_EXACT)
{
	append(x, y);
}

static inline bool in_word(char c)
{
	return c != ' ' && (unsigned char)(c - '\t') > '\r' - '\t';
}

static struct text count_text(const char *s, size_t n)
{
	struct text t = {0, 0, (long)n, in_word(s[0]), in_word(s[n - 1])};
	bool inside = false;

	for (size_t i = 0; i < n; i++) {
		bool is = in_word(s[i]);

		t.words += is & !inside;
		t.lines += s[i] == '\n';
		inside = is;
	}
	return t;
}

KDDS_TASK(count, READ_ARRAY(char, chunk), REDUCE(struct text, total, &concatenate))
{
	struct text t = count_text(*chunk, kdds_count(chunk));

	append(*total, &t);
}

static size_t chunk_bytes = 262144;

static void spawn_counts(char *s, size_t n, struct text *const *total)
{
	for (size_t size; n > 0; s += size, n -= size) {
		kdds_array(char) chunk;

		size = n < chunk_bytes ? n : chunk_bytes;
		kdds_bind_array(chunk, s, size);
		kdds_spawn(count, kdds_ref(chunk), total);
	}
}

/* A file being counted. Its text can be read between open_file and close_file. */
struct file {
	const char *name;
	char *map; /* NULL: nothing left to do except to print */
	size_t size;
	int error; /* errno: it could not be read */
	kdds_data(struct text) total;
	struct text counts;
};

/* Reads n bytes, or fewer at the end. Returns their number, or -1 on error. */
static ssize_t read_fully(int fd, char *buffer, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = read(fd, buffer + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* For files that cannot be mapped, such as pipes: reads into one half of a buffer while tasks count
 * the other. */
static int count_stream(struct file *f, int fd)
{
	char *buffer = allocate(2, STREAM_BYTES);
	int error = 0, half = 0;
	ssize_t got;

	do {
		char *s = buffer + half * STREAM_BYTES;

		got = read_fully(fd, s, STREAM_BYTES);
		if (got < 0)
			error = errno;
		kdds_sync();
		if (got > 0)
			spawn_counts(s, (size_t)got, kdds_ref(f->total));
		half = !half;
	} while (got == STREAM_BYTES);
	kdds_sync();
	free(buffer);
	return error;
}

static int count_file(struct file *f, int fd)
{
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st))
		return errno;
	/* size 0: an empty file, or one in /proc */
	if (fd == STDIN_FILENO || !S_ISREG(st.st_mode) || st.st_size == 0)
		return count_stream(f, fd);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return errno;
	f->map = map;
	f->size = (size_t)st.st_size;
	spawn_counts(f->map, f->size, kdds_ref(f->total));
	return 0;
}

static void open_file(struct file *f, const char *name)
{
	int fd = strcmp(name, "-") ? open(name, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;

	*f = (struct file){.name = name};
	kdds_bind(f->total, &f->counts);
	f->error = count_file(f, fd);
	if (fd > STDIN_FILENO)
		close(fd);
}

static void print_counts(const struct text *t, const char *name)
{
	printf("%9ld %9ld %9ld %s\n", t->lines, t->words, t->bytes, name);
}

/* Prints the counts and adds them to the total. False: there was an error. */
static bool close_file(struct file *f, struct text *total)
{
	if (f->map)
		munmap(f->map, f->size);
	if (f->error) {
		fprintf(stderr, "%s: %s: %s\n", program.name, f->name, strerror(f->error));
		return false;
	}
	print_counts(&f->counts, f->name);
	total->lines += f->counts.lines;
	total->words += f->counts.words;
	total->bytes += f->counts.bytes;
	return true;
}

static bool count_files(char **names, int n, struct text *total)
{
	struct file files[BATCH];
	bool ok = true;

	for (int batch; n > 0; n -= batch, names += batch) {
		batch = n < BATCH ? n : BATCH;
		for (int i = 0; i < batch; i++)
			open_file(&files[i], names[i]);
		kdds_sync();
		for (int i = 0; i < batch; i++)
			ok &= close_file(&files[i], total);
	}
	return ok;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		HELP_OPTION, {"chunk", required_argument, NULL, OPT_OWN}, {0}};
	char *standard_input[] = {"-"};
	struct text total = {0};
	double t;
	bool ok;

	for (int opt; (opt = next_option(argc, argv, options)) != -1;)
		chunk_bytes = (size_t)integer("--chunk", optarg, 1, 1000000000);
	argv = arguments(argc, argv, 0, INT_MAX, &argc);

	start();
	t = now();
	ok = argc ? count_files(argv, argc, &total) : count_files(standard_input, 1, &total);
	t = now() - t;
	if (argc > 1)
		print_counts(&total, "total");
	return finish(t, ok);
}
