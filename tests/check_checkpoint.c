/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that kdds_restore brings back, bit by bit, what kdds_checkpoint has saved: variables,
 * arrays, tiles, lists and packed data. A file that is cut at any place, or in which any byte has
 * been changed, is refused with one line and the one before is used; a state of other types or
 * shapes is refused and stays as it is. Every call of the system that a checkpoint makes fails in
 * turn: the program gets an error, the checkpoints before remain usable, and no temporary file
 * remains. Misuse ends the program with one line.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "child.h"

/* The calls of the system, which fail when it is their turn. */

static int fail_at, calls; /* fail_at 0: none fails */
static int fail_with;

static int fails(void)
{
	if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != fail_at)
		return 0;
	errno = fail_with;
	return 1;
}

/* The one before has written half of what it was to write. */
ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
	if (__atomic_load_n(&calls, __ATOMIC_RELAXED) + 1 == fail_at - 1 && n > 1)
		n /= 2;
	return fails() ? -1 : syscall(SYS_pwrite64, fd, from, n, at);
}

/* Reads, likewise: those beyond the first page of a file. */
static int read_fails_at, reads;

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	if (at && __atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED) == read_fails_at) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, n, at);
}

int fsync(int fd)
{
	return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return fails() ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int ftruncate(int fd, off_t size)
{
	return fails() ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

/* The state. */

struct pair {
	int a;
	double b;
};

struct vector {
	size_t n;
	long *x;
};

static size_t vector_bytes(const void *data)
{
	return ((const struct vector *)data)->n * sizeof(long);
}

static void vector_pack(const void *data, void *buffer)
{
	const struct vector *v = data;

	if (v->n)
		memcpy(buffer, v->x, v->n * sizeof(long));
}

static void vector_unpack(void *data, const void *buffer, size_t bytes)
{
	struct vector *v = data;

	free(v->x);
	v->n = bytes / sizeof(long);
	v->x = malloc(bytes + 1);
	memcpy(v->x, buffer, bytes);
}

static const struct kdds_pack vector_functions = {vector_bytes, vector_pack, vector_unpack, NULL};

#define LD 1500
#define ROWS 700 /* several blocks, in which rows have gaps */
#define COLS 1400
#define LISTED 5

static long step;
static double totals[3];
static struct pair pair;
static double grid[ROWS * LD];
static float listed[LISTED][7];
static struct vector vector;
static kdds_array(double) tile;
static kdds_array(float) item[LISTED];
static kdds_array(struct vector) packed;
static float *const *list[LISTED];

static char dir[64], name[100];

static void bind(void)
{
	kdds_bind_tile(tile, grid, ROWS, COLS, LD);
	kdds_bind_packed(packed, &vector, 1, 1, 1, &vector_functions);
	for (int i = 0; i < LISTED; i++) {
		kdds_bind_array(item[i], listed[i], 7);
		list[i] = kdds_ref(item[i]);
	}
}

#define STATE &step, totals, &pair, kdds_ref(tile), kdds_list(list, LISTED), kdds_ref(packed)

KDDS_TASK(fill_tile, VALUE(long, seed), WRITE_ARRAY(double, x))
{
	const struct kdds_shape *s = kdds_shape_of(x);

	for (size_t r = 0; r < s->rows; r++)
		for (size_t c = 0; c < s->cols; c++)
			(*x)[r * s->ld + c] = (double)seed + 1e-3 * (double)(r * s->cols + c);
}

/* The state of a seed; the tile is written by a task. */
static void fill(long seed)
{
	step = seed;
	for (int i = 0; i < 3; i++)
		totals[i] = (double)seed / (i + 3);
	pair = (struct pair){(int)seed, 1.0 / (double)(seed + 7)};
	for (int i = 0; i < LISTED; i++)
		for (int k = 0; k < 7; k++)
			listed[i][k] = (float)(seed * i + k);
	vector.n = (size_t)(seed * 3);
	free(vector.x);
	vector.x = malloc(vector.n * sizeof(long) + 1);
	for (size_t i = 0; i < vector.n; i++)
		vector.x[i] = seed + (long)i;
	for (int r = 0; r < ROWS; r++)
		for (int c = COLS; c < LD; c++)
			grid[r * LD + c] = -1; /* in no tile */
	kdds_spawn(fill_tile, seed, kdds_ref(tile));
}

/* Whether the state is that of the seed. */
static int is(long seed)
{
	int same = step == seed && pair.a == (int)seed && pair.b == 1.0 / (double)(seed + 7);

	kdds_sync();
	for (int i = 0; i < 3; i++)
		same &= totals[i] == (double)seed / (i + 3);
	for (int i = 0; i < LISTED; i++)
		for (int k = 0; k < 7; k++)
			same &= listed[i][k] == (float)(seed * i + k);
	same &= vector.n == (size_t)(seed * 3);
	for (size_t i = 0; same && i < vector.n; i++)
		same &= vector.x[i] == seed + (long)i;
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < LD; c++)
			same &= grid[r * LD + c] ==
				(c < COLS ? (double)seed + 1e-3 * (double)(r * COLS + c) : -1);
	return same;
}

static int save(long seed)
{
	fill(seed);
	return kdds_checkpoint(name, STATE);
}

static int load(void)
{
	fill(99);
	return kdds_restore(name, STATE);
}

static void begin(void)
{
	strcpy(dir, "/tmp/kdds-checkpoint-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/state", dir);
	setenv("KDDS_WORKERS", "2", 1);
	bind();
	ck_assert_int_eq(kdds_init(), 0);
}

/* All files must be gone by then. */
static void end(void)
{
	ck_assert_int_eq(kdds_finalize(), 0);
	ck_assert_int_eq(kdds_checkpoint_remove(name), 0);
	ck_assert_int_eq(rmdir(dir), 0);
	free(vector.x);
	vector.x = NULL;
}

static const char *path(const char *suffix)
{
	static char text[2][128];
	static int i;

	i ^= 1;
	snprintf(text[i], sizeof(text[i]), "%s.%s", name, suffix);
	return text[i];
}

static int exists(const char *suffix)
{
	return !access(path(suffix), F_OK);
}

/* Lines on stderr go to a pipe, from quiet to lines, which returns how many there were. */
static int kept_stderr, caught;
static char last_line[500];

static void quiet(void)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	kept_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	caught = fds[0];
}

static int lines(void)
{
	FILE *f = fdopen(caught, "r");
	int n = 0;

	dup2(kept_stderr, STDERR_FILENO);
	close(kept_stderr);
	while (fgets(last_line, sizeof(last_line), f))
		n++;
	fclose(f);
	return n;
}

START_TEST(round_trip)
{
	begin();
	ck_assert_int_eq(load(), -ENOENT);
	ck_assert(is(99));
	for (long seed = 0; seed < 5; seed++) {
		ck_assert_int_eq(save(seed), 0);
		ck_assert(!exists("kdds.tmp"));
		ck_assert_int_eq(load(), 0);
		ck_assert(is(seed));
	}
	ck_assert(exists("kdds1") && exists("kdds2"));
	/* another run, on other workers */
	ck_assert_int_eq(kdds_finalize(), 0);
	setenv("KDDS_WORKERS", "1", 1);
	ck_assert_int_eq(kdds_init(), 0);
	ck_assert_int_eq(load(), 0);
	ck_assert(is(4));
	ck_assert_int_eq(kdds_checkpoint_remove(name), 0);
	ck_assert(!exists("kdds1") && !exists("kdds2"));
	ck_assert_int_eq(load(), -ENOENT);
	end();
}
END_TEST

/* The file of the newer checkpoint: they are written by turns. */
static void damage(const char *suffix, void (*how)(int fd, off_t size, off_t at), off_t at)
{
	int fd = open(path(suffix), O_RDWR);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	how(fd, st.st_size, at);
	close(fd);
}

static void tear(int fd, off_t size, off_t at)
{
	(void)size;
	ck_assert_int_eq(ftruncate(fd, at), 0);
}

static void alter(int fd, off_t size, off_t at)
{
	char c;

	(void)size;
	ck_assert_int_eq(pread(fd, &c, 1, at), 1);
	c = (char)(c ^ (1 << at % 8));
	ck_assert_int_eq(pwrite(fd, &c, 1, at), 1);
}

static void lengthen(int fd, off_t size, off_t at)
{
	(void)at;
	ck_assert_int_eq(ftruncate(fd, size + 1), 0);
}

static off_t size_of(const char *suffix)
{
	struct stat st;

	ck_assert_int_eq(stat(path(suffix), &st), 0);
	return st.st_size;
}

/* Damages the newer one of two checkpoints, of seeds 1 and 2: the other one is used, and then
 * replaced last. */
static void refused(void (*how)(int fd, off_t size, off_t at), off_t at)
{
	quiet();
	ck_assert_int_eq(save(1), 0);
	ck_assert_int_eq(save(2), 0);
	ck_assert_int_eq(lines(), 0);
	damage("kdds2", how, at);
	quiet();
	ck_assert_int_eq(load(), 0);
	ck_assert_int_eq(lines(), 1);
	ck_assert_msg(strstr(last_line, "state.kdds2 is not used"), "%s", last_line);
	ck_assert(is(1));
	/* The next one replaces the bad one, not the good one. */
	ck_assert_int_eq(save(3), 0);
	damage("kdds2", tear, 10);
	quiet();
	ck_assert_int_eq(load(), 0);
	ck_assert_int_eq(lines(), 1);
	ck_assert(is(1));
	ck_assert_int_eq(kdds_checkpoint_remove(name), 0);
}

START_TEST(damaged)
{
	unsigned seed = (unsigned)time(NULL);
	off_t size;

	printf("damaged: seed %u\n", seed);
	srandom(seed);
	begin();
	ck_assert_int_eq(save(1), 0);
	size = size_of("kdds1");
	ck_assert_int_eq(kdds_checkpoint_remove(name), 0);
	refused(tear, 0);
	refused(tear, size - 1);
	refused(lengthen, 0);
	refused(alter, 0);
	refused(alter, size - 1);
	for (int i = 0; i < 20; i++) {
		off_t at = random() % (i % 2 ? 5000 : size);

		refused(i % 3 ? alter : tear, at);
	}
	end();
}
END_TEST

/* Every byte before the values, and the file cut after each of them. */
START_TEST(every_byte)
{
	long x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8};
	off_t size;

	begin();
	KDDS_OVER_ARRAY(long, data, x, 4);
	KDDS_OVER_ARRAY(long, other, y, 4);
	ck_assert_int_eq(kdds_checkpoint(name, data), 0);
	size = size_of("kdds1");
	for (off_t at = 0; at < size; at++) {
		damage("kdds1", alter, at);
		quiet();
		ck_assert_int_eq(kdds_restore(name, other), -EBADMSG);
		ck_assert_int_eq(lines(), 1);
		ck_assert(y[0] == 5 && y[3] == 8);
		damage("kdds1", alter, at);
	}
	ck_assert_int_eq(kdds_restore(name, other), 0);
	ck_assert(y[0] == 1 && y[3] == 4);
	for (off_t at = size - 1; at >= 0; at--) {
		damage("kdds1", tear, at);
		quiet();
		ck_assert_int_eq(kdds_restore(name, other), -EBADMSG);
		ck_assert_int_eq(lines(), 1);
	}
	end();
}
END_TEST

START_TEST(foreign)
{
	FILE *f;

	begin();
	for (int i = 0; i < 2; i++) {
		f = fopen(path(i ? "kdds2" : "kdds1"), "w");
		for (int k = 0; k < 2000; k++)
			fputs("not a checkpoint\n", f);
		fclose(f);
	}
	quiet();
	ck_assert_int_eq(load(), -EBADMSG);
	ck_assert_int_eq(lines(), 2);
	ck_assert_msg(strstr(last_line, "is no checkpoint"), "%s", last_line);
	ck_assert(is(99));
	unlink(path("kdds1"));
	ck_assert_int_eq(mkdir(path("kdds1"), 0777), 0);
	quiet();
	ck_assert_int_eq(load(), -EBADMSG);
	ck_assert_int_eq(lines(), 2);
	rmdir(path("kdds1"));
	ck_assert_int_eq(save(5), 0);
	end();
}
END_TEST

START_TEST(names)
{
	long x = 1;

	begin();
	quiet();
	ck_assert_int_eq(kdds_restore("/nowhere/at/all", &x), -ENOENT);
	ck_assert_int_eq(lines(), 0);
	quiet();
	ck_assert_int_eq(kdds_checkpoint("/nowhere/at/all", &x), -ENOENT);
	ck_assert_int_eq(lines(), 1);
	quiet();
	ck_assert_int_eq(kdds_checkpoint("/tmp/", &x), -EISDIR);
	ck_assert_int_eq(lines(), 1);
	ck_assert_int_eq(kdds_checkpoint_remove("/nowhere/at/all"), 0);
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(kdds_checkpoint("plain", &x), 0);
	x = 2;
	ck_assert_int_eq(kdds_restore("./plain", &x), 0);
	ck_assert_int_eq(x, 1);
	ck_assert_int_eq(kdds_checkpoint_remove("plain"), 0);
	ck_assert_int_eq(chdir("/"), 0);
	end();
}
END_TEST

/* Refused, with one line, and x, y stay as they are. */
#define OTHER(...) \
	do { \
		quiet(); \
		ck_assert_int_eq(kdds_restore(name, __VA_ARGS__), -EINVAL); \
		ck_assert_int_eq(lines(), 1); \
		ck_assert(n == 5 && d == 0.5 && a[5] == 6); \
	} while (0)

START_TEST(other_states)
{
	long n = 1, a[6] = {1, 2, 3, 4, 5, 6};
	double d = 0.25;
	float f = 0;
	struct pair p = {1, 2};
	struct { double x; } one = {1};
	kdds_array(long) t;

	begin();
	KDDS_OVER_ARRAY(long, six, a, 6);
	KDDS_OVER_ARRAY(long, five, a, 5);
	KDDS_OVER_TILE(long, rows, a, 2, 3, 3);
	KDDS_OVER_TILE(long, columns, a, 3, 2, 2);
	kdds_bind_packed(t, a, 1, 6, 6, &vector_functions);
	ck_assert_int_eq(kdds_checkpoint(name, &n, &d, six), 0);
	n = 5;
	d = 0.5;
	OTHER(&n, &d);
	OTHER(&n, &d, six, &n);
	OTHER(&d, &n, six);
	OTHER(&n, &f, six);
	OTHER(&n, &n, six);
	OTHER(&n, &one, six);
	OTHER(&n, &p, six);
	OTHER(&n, &d, five);
	OTHER(&n, &d, rows);
	OTHER(&n, &d, columns);
	OTHER(&n, &d, kdds_ref(t));
	ck_assert_int_eq(kdds_restore(name, &n, &d, six), 0);
	ck_assert(n == 1 && d == 0.25);
	ck_assert_int_eq(kdds_checkpoint(name, &n, &d, rows), 0);
	n = 5;
	d = 0.5;
	OTHER(&n, &d, columns);
	ck_assert_int_eq(kdds_restore(name, &n, &d, rows), 0);
	end();
}
END_TEST

START_TEST(shapes)
{
	double x[4] = {1, 2, 3, 4}, cell = 7;

	begin();
	KDDS_NONE(double, none);
	KDDS_DATA_TILE(float, fresh, 30, 50);
	KDDS_OVER_ARRAY(double, all, x, 4);
	KDDS_SLICE(half, all, 2, 2);
	KDDS_OVER(double, single, &cell);
	for (int i = 0; i < 1500; i++)
		(*fresh)[i] = (float)i;
	ck_assert_int_eq(kdds_checkpoint(name, none, fresh, half, single, none), 0);
	memset(x, 0, sizeof(x));
	memset(*fresh, 0, 1500 * sizeof(float));
	cell = 0;
	ck_assert_int_eq(kdds_restore(name, none, fresh, half, single, none), 0);
	ck_assert(x[0] == 0 && x[1] == 0 && x[2] == 3 && x[3] == 4 && cell == 7);
	for (int i = 0; i < 1500; i++)
		ck_assert((*fresh)[i] == (float)i);
	ck_assert_int_eq(kdds_checkpoint(name, none), 0);
	ck_assert_int_eq(kdds_restore(name, none), 0);
	ck_assert_int_eq(kdds_checkpoint(name, kdds_list(list, 0)), 0);
	end();
}
END_TEST

static int saved_while_failing(int n, int with, long seed)
{
	int error;

	calls = 0;
	fail_with = with;
	fail_at = n;
	quiet();
	error = save(seed);
	fail_at = 0;
	ck_assert_int_eq(lines(), error != 0);
	return error;
}

START_TEST(failing_calls)
{
	static const int errors[] = {ENOSPC, EIO, EDQUOT};
	long last = 2;

	begin();
	ck_assert_int_eq(save(1), 0);
	ck_assert_int_eq(save(2), 0);
	for (int e = 0; e < 3; e++)
		for (int n = 1;; n++) {
			int error = saved_while_failing(n, errors[e], 50), total = calls;

			ck_assert(!exists("kdds.tmp"));
			ck_assert(exists("kdds1") && exists("kdds2"));
			ck_assert_int_eq(load(), 0);
			/* It may be there if only its directory could not be synchronised. */
			ck_assert(is(last) || is(50));
			if (n > total) {
				ck_assert_int_eq(error, 0);
				ck_assert_int_gt(n, 5);
				break;
			}
			ck_assert_int_eq(error, -errors[e]);
			ck_assert_int_eq(save(++last), 0);
		}
	end();
}
END_TEST

/* A read of the newer file fails: the one before is used, unless the state has changed already. */
START_TEST(failing_reads)
{
	int total, error;

	begin();
	ck_assert_int_eq(save(1), 0);
	ck_assert_int_eq(save(2), 0);
	reads = 0;
	ck_assert_int_eq(load(), 0);
	total = reads;
	ck_assert_int_gt(total, 10);
	for (int n = 1; n <= total; n++) {
		reads = 0;
		read_fails_at = n;
		quiet();
		error = load();
		read_fails_at = 0;
		ck_assert_int_eq(lines(), 1);
		if (error)
			ck_assert(error == -EIO && strstr(last_line, "the state is undefined"));
		else
			ck_assert(strstr(last_line, "kdds2 is not used") && is(1));
		ck_assert_int_eq(error, n <= total / 2 ? 0 : -EIO);
	}
	ck_assert_int_eq(load(), 0);
	ck_assert(is(2));
	end();
}
END_TEST

static int load_with(rlim_t descriptors)
{
	struct rlimit before, small;
	int error;

	getrlimit(RLIMIT_NOFILE, &before);
	small = (struct rlimit){descriptors, before.rlim_max};
	quiet();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &small), 0);
	error = load();
	setrlimit(RLIMIT_NOFILE, &before);
	lines();
	return error;
}

/* The newer file may be whole: the one before is not used in its place. */
START_TEST(no_descriptors)
{
	int error = 0;

	begin();
	ck_assert_int_eq(save(1), 0);
	ck_assert_int_eq(save(2), 0);
	for (rlim_t limit = 40; limit > 2 && error != -EMFILE; limit--) {
		error = load_with(limit);
		ck_assert(error == -EMFILE || is(2));
	}
	ck_assert_int_eq(error, -EMFILE);
	for (rlim_t limit = 40; limit > 2; limit--) {
		ck_assert_int_eq(save(3), 0);
		error = load_with(limit);
		ck_assert(error ? error == -EMFILE : is(3));
	}
	end();
}
END_TEST

START_TEST(file_limit)
{
	struct rlimit before, small;

	begin();
	ck_assert_int_eq(save(1), 0);
	getrlimit(RLIMIT_FSIZE, &before);
	for (rlim_t limit = 0; limit < 12000000; limit = limit * 3 + 1) {
		int error, n;

		small = (struct rlimit){limit, before.rlim_max};
		quiet();
		n = setrlimit(RLIMIT_FSIZE, &small);
		error = save(2);
		setrlimit(RLIMIT_FSIZE, &before);
		lines();
		ck_assert_int_eq(n, 0);
		ck_assert(!exists("kdds.tmp"));
		if (limit > 9000000)
			break;
		ck_assert_int_eq(error, -EFBIG);
		ck_assert_int_eq(load(), 0);
		ck_assert(is(1));
	}
	end();
}
END_TEST

/* A process that was killed has left its temporary file; another one still writes it. */
START_TEST(stale)
{
	int pipe_fd[2];
	FILE *f;
	pid_t pid;
	char c;

	begin();
	for (int i = 0; i < 2; i++) {
		f = fopen(path("kdds.tmp"), "w");
		fputs("half a checkpoint", f);
		fclose(f);
		ck_assert_int_eq(i ? save(3) : load(), i ? 0 : -ENOENT);
		ck_assert(!exists("kdds.tmp"));
	}
	ck_assert_int_eq(pipe(pipe_fd), 0);
	pid = fork();
	if (!pid) {
		int fd = open(path("kdds.tmp"), O_RDWR | O_CREAT, 0666);

		if (fd < 0 || flock(fd, LOCK_EX) || write(pipe_fd[1], "x", 1) != 1)
			_exit(1);
		usleep(300000);
		_exit(0);
	}
	ck_assert_int_eq(read(pipe_fd[0], &c, 1), 1);
	ck_assert_int_eq(load(), 0); /* it is not removed */
	ck_assert_int_eq(save(4), 0); /* waits */
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(load(), 0);
	ck_assert(is(4));
	/* a link that another user has put there, say */
	ck_assert_int_eq(symlink("/dev/null", path("kdds.tmp")), 0);
	quiet();
	ck_assert_int_eq(save(5), -EACCES);
	ck_assert_int_eq(lines(), 1);
	ck_assert_int_eq(unlink(path("kdds.tmp")), 0);
	end();
}
END_TEST

KDDS_TASK(fail_it, WRITE_ARRAY(double, x))
{
	(*x)[0] = 1;
	kdds_fail(-7, "on purpose");
}

START_TEST(failed_tasks)
{
	struct kdds_failure failure;

	begin();
	ck_assert_int_eq(save(1), 0);
	kdds_spawn(fail_it, kdds_ref(tile));
	ck_assert_int_eq(kdds_checkpoint(name, STATE), -7);
	ck_assert(!exists("kdds2") && !exists("kdds.tmp"));
	kdds_spawn(fail_it, kdds_ref(tile));
	ck_assert_int_eq(kdds_restore(name, STATE), -7);
	ck_assert_int_eq(load(), 0);
	ck_assert(is(1));
	ck_assert_int_eq(kdds_failure(&failure), -7);
	end();
}
END_TEST

/* Misuse, each in a process of its own. */

KDDS_TASK(saves, VALUE(int, restores))
{
	long x = 0;

	if (restores)
		kdds_restore("x", &x);
	else
		kdds_checkpoint("x", &x);
}

static void by_task(void *arg)
{
	kdds_spawn(saves, arg != NULL);
	kdds_sync();
}

static void a_number(void *arg)
{
	long x = 3;

	(void)arg;
	kdds_checkpoint("x", x);
}

static void no_list(void *arg)
{
	(void)arg;
	kdds_checkpoint("x", list, &step);
}

static void negative(void *arg)
{
	(void)arg;
	kdds_checkpoint("x", &step, kdds_list(list, -1));
}

static void not_bound(void *arg)
{
	static kdds_data(double) d;

	(void)arg;
	kdds_checkpoint("x", kdds_ref(d));
}

static void constant(void *arg)
{
	static const long x = 3;

	(void)arg;
	kdds_restore("x", &x);
}

static void pointers(void *arg)
{
	static char *text[4];
	static kdds_array(char *) d;

	(void)arg;
	kdds_bind_array(d, text, 4);
	kdds_checkpoint("x", kdds_ref(d));
}

static void nothing(void *arg)
{
	long *x = arg;

	kdds_checkpoint("x", x);
}

static void no_name(void *arg)
{
	kdds_checkpoint((char *)arg, &step);
}

static const struct {
	void (*f)(void *arg);
	const char *word;
	int started;
} misuses[] = {
	{by_task, "called by a task", 1},
	{by_task, "called by a task", 1},
	{a_number, "argument 1 (x) is a number", 1},
	{no_list, "write kdds_list(list, n)", 1},
	{negative, "a list of -1 references", 1},
	{not_bound, "needs a reference", 1},
	{constant, "argument 1 (&x) is const", 1},
	{pointers, "kdds_bind_packed", 1},
	{nothing, "is NULL", 1},
	{no_name, "needs the name", 1},
	{no_name, "called before kdds_init", 0},
};
#define MISUSES (int)(sizeof(misuses) / sizeof(*misuses))

static void misused(void *arg)
{
	const int *i = arg;

	bind();
	setenv("KDDS_WORKERS", "1", 1);
	if (misuses[*i].started)
		kdds_init();
	misuses[*i].f(*i == 1 ? arg : NULL);
}

START_TEST(misuse)
{
	struct child c;
	int i = _i;

	child_run(&c, misused, &i, 30);
	ck_assert_msg(c.status == 1, "status %d: %s", c.status, c.err);
	ck_assert_msg(one_line(c.err, misuses[i].word), "wanted '%s': %s", misuses[i].word, c.err);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("checkpoint");
	TCase *tcase = tcase_create("checkpoint");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 200);
	tcase_add_test(tcase, round_trip);
	tcase_add_test(tcase, damaged);
	tcase_add_test(tcase, every_byte);
	tcase_add_test(tcase, foreign);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, other_states);
	tcase_add_test(tcase, shapes);
	tcase_add_test(tcase, failing_calls);
	tcase_add_test(tcase, failing_reads);
	tcase_add_test(tcase, no_descriptors);
	tcase_add_test(tcase, file_limit);
	tcase_add_test(tcase, stale);
	tcase_add_test(tcase, failed_tasks);
	tcase_add_loop_test(tcase, misuse, 0, MISUSES);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
