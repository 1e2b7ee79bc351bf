/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that several ranks of a job live in one process: each struct kd_boot is a rank of its own,
 * with a launcher that the caller brings along (the test's, which knows only ranks, so that boot.c
 * determines the rest), with kddsrun's sockets (the test plays kddsrun), and without a launcher.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot/boot.h"
#include "boot/control.h"
#include "boot/published.h"

#define RANKS 3

/* The test's job and its launcher. The state of a kd_boot is its seat. */
static struct {
	pthread_barrier_t barrier;
	pthread_mutex_t lock;
	struct kd_published values;
	int fence_error;
} job = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct seat {
	uint32_t rank;
	int starts, stops, cancels, events;
};

static int start(struct kd_boot *b)
{
	struct seat *seat = b->state;

	seat->starts++;
	b->rank = seat->rank;
	b->size = RANKS;
	return 0;
}

static int put(struct kd_boot *b, const char *key, const void *value, size_t size)
{
	int error;

	pthread_mutex_lock(&job.lock);
	error = kd_published_put(&job.values, b->rank, key, value, size);
	pthread_mutex_unlock(&job.lock);
	return error;
}

static int fence(struct kd_boot *b, int share)
{
	(void)b;
	(void)share;
	if (!job.fence_error)
		pthread_barrier_wait(&job.barrier);
	return job.fence_error;
}

static int get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	const void *found;
	size_t size;

	(void)b;
	pthread_mutex_lock(&job.lock);
	found = kd_published_get(&job.values, rank, key, &size);
	if (found && size <= *size_p)
		memcpy(value, found, size);
	pthread_mutex_unlock(&job.lock);
	if (found && size > *size_p)
		return -EMSGSIZE;
	*size_p = size;
	return found ? 0 : -ENOENT;
}

static int event(struct kd_boot *b)
{
	return ++((struct seat *)b->state)->events;
}

static void stop(struct kd_boot *b)
{
	((struct seat *)b->state)->stops++;
}

static void cancel(struct kd_boot *b)
{
	((struct seat *)b->state)->cancels++;
}

static const struct kd_boot_launcher launcher = {
	.name = "test",
	.start = start,
	.put = put,
	.fence = fence,
	.get = get,
	.event = event,
	.stop = stop,
	.cancel = cancel,
};

/* As if no launcher had started this process. */
static void leave_launcher(void)
{
	unsetenv(KD_CONTROL_ENV);
	unsetenv("PMI_FD");
	unsetenv("PMIX_NAMESPACE");
}

static void *be_rank(void *arg)
{
	struct kd_boot *b = arg;
	uint32_t mine;

	ck_assert_int_eq(kd_boot_start(b, &launcher), 0);
	ck_assert_int_eq(kd_boot_start(b, &launcher), 0); /* already */
	mine = 100 + b->rank;
	ck_assert_int_eq(kd_boot_put(b, "key", &mine, sizeof(mine)), 0);
	ck_assert_int_eq(kd_boot_fence(b, 1), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		uint32_t value = 0;
		size_t size = sizeof(value);

		ck_assert_int_eq(kd_boot_get(b, i, "key", &value, &size), 0);
		ck_assert_uint_eq(value, 100 + i);
		ck_assert_int_eq(kd_boot_get(b, i, "nothing", &value, &size), -ENOENT);
	}
	for (uint32_t i = 0; i <= b->rank; i++)
		ck_assert_int_eq(kd_boot_event(b), (int)i + 1);
	kd_boot_stop(b);
	kd_boot_stop(b); /* has stopped */
	return NULL;
}

/* Twice: a job can be followed by another. */
START_TEST(own_launcher)
{
	struct kd_boot boots[RANKS] = {0};

	pthread_barrier_init(&job.barrier, NULL, RANKS);
	for (int round = 0; round < 2; round++) {
		struct seat seats[RANKS] = {0};
		pthread_t threads[RANKS];

		kd_published_init(&job.values, RANKS);
		for (uint32_t i = 0; i < RANKS; i++) {
			seats[i].rank = i;
			boots[i].state = &seats[i];
			ck_assert_int_eq(pthread_create(&threads[i], NULL, be_rank, &boots[i]), 0);
		}
		for (uint32_t i = 0; i < RANKS; i++)
			pthread_join(threads[i], NULL);
		for (uint32_t i = 0; i < RANKS; i++) {
			ck_assert_uint_eq(boots[i].rank, i);
			ck_assert_uint_eq(boots[i].size, RANKS);
			ck_assert_uint_eq(boots[i].local_rank, i);
			ck_assert_uint_eq(boots[i].local_size, RANKS);
			ck_assert_int_eq(boots[i].one_host, 1);
			ck_assert_mem_eq(boots[i].secret, boots[0].secret, KD_BOOT_SECRET_BYTES);
			ck_assert_ptr_null(boots[i].launcher);
			ck_assert_int_eq(seats[i].starts, 1);
			ck_assert_int_eq(seats[i].events, (int)i + 1);
			ck_assert_int_eq(seats[i].stops, 1);
			ck_assert_int_eq(seats[i].cancels, 0);
		}
		kd_published_fini(&job.values);
	}
	pthread_barrier_destroy(&job.barrier);
}
END_TEST

/* A rank that cannot join its job does not say goodbye. */
START_TEST(no_fence)
{
	struct seat seat = {0};
	struct kd_boot boot = {.state = &seat};

	kd_published_init(&job.values, RANKS);
	job.fence_error = -ECONNRESET;
	ck_assert_int_eq(kd_boot_start(&boot, &launcher), -ECONNRESET);
	kd_boot_stop(&boot);
	ck_assert_int_eq(seat.cancels, 1);
	ck_assert_int_eq(seat.stops, 0);
	kd_published_fini(&job.values);
}
END_TEST

START_TEST(alone)
{
	struct kd_boot boots[2] = {0};
	char value[8];
	size_t size = sizeof(value);

	leave_launcher();
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(kd_boot_start(&boots[i], NULL), 0);
		ck_assert_uint_eq(boots[i].rank, 0);
		ck_assert_uint_eq(boots[i].size, 1);
		ck_assert_uint_eq(boots[i].local_size, 1);
		ck_assert_int_eq(boots[i].fd, -1);
		ck_assert_int_eq(kd_boot_put(&boots[i], "key", "value", 5), 0);
		ck_assert_int_eq(kd_boot_fence(&boots[i], 1), 0);
		ck_assert_int_eq(kd_boot_get(&boots[i], 0, "key", value, &size), -ENOENT);
	}
	ck_assert_mem_ne(boots[0].secret, boots[1].secret, KD_BOOT_SECRET_BYTES);
	for (int i = 0; i < 2; i++)
		kd_boot_stop(&boots[i]);
}
END_TEST

/* kddsrun's side. What it answers is sent before the rank asks. */
static void answer(int fd, uint16_t type, uint32_t rank, const struct kd_pack *payload,
		   const uint8_t *from)
{
	uint8_t frame[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {frame, frame + sizeof(frame), 0};
	size_t size = (size_t)(payload->at - from);

	kd_control_pack_header(&p, (uint32_t)size, type, rank);
	kd_pack_bytes(&p, from, size);
	ck_assert(!p.bad);
	ck_assert_int_eq(send(fd, frame, (size_t)(p.at - frame), 0), p.at - frame);
}

static void welcome(int fd, uint32_t rank)
{
	static const uint8_t secret[KD_BOOT_SECRET_BYTES] = "secret";
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, KD_CONTROL_PROTOCOL, 4);
	kd_pack_uint(&p, rank, 4);
	kd_pack_uint(&p, 2, 4); /* size */
	kd_pack_uint(&p, rank, 4);
	kd_pack_uint(&p, 2, 4);
	kd_pack_uint(&p, rank, 1);     /* one host */
	kd_pack_uint(&p, 5 * rank, 4); /* incarnation */
	kd_pack_bytes(&p, secret, sizeof(secret));
	answer(fd, KD_CONTROL_WELCOME, 0, &p, payload);
}

/* The fence shares a value of rank 0 that differs from socket to socket. */
static void share(int fd, const char *text)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, 0, 4);
	kd_pack_string(&p, "key");
	kd_pack_block(&p, text, strlen(text));
	answer(fd, KD_CONTROL_VALUE, 0, &p, payload);
	p.at = payload;
	answer(fd, KD_CONTROL_FENCED, 0, &p, payload);
}

/* What the launcher says unrequested. */
static void tell_changes(int fd)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES] = {0};
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	answer(fd, KD_CONTROL_LOST, 1, &p, payload);
	kd_pack_uint(&p, 7, 4);
	kd_pack_uint(&p, 1, 1);
	kd_pack_block(&p, "card", 4);
	answer(fd, KD_CONTROL_MEMBER, 1, &p, payload);
	p.at = payload;
	kd_pack_uint(&p, 0, 4);
	kd_pack_uint(&p, 0, 1);
	kd_pack_block(&p, NULL, 0);
	answer(fd, KD_CONTROL_MEMBER, 0, &p, payload);
	p.at = payload;
	answer(fd, KD_CONTROL_OVER, 0, &p, payload);
}

static void expect_changes(struct kd_boot *b)
{
	struct kd_boot_change c;

	ck_assert_int_eq(kd_boot_changed(b, &c), 1);
	ck_assert_int_eq(c.kind, KD_BOOT_LOST);
	ck_assert_uint_eq(c.rank, 1);
	ck_assert_int_eq(kd_boot_changed(b, &c), 1);
	ck_assert_int_eq(c.kind, KD_BOOT_JOINED);
	ck_assert_uint_eq(c.rank, 1);
	ck_assert_uint_eq(c.incarnation, 7);
	ck_assert_uint_eq(c.size, 4);
	ck_assert_mem_eq(c.card, "card", 4);
	ck_assert_int_eq(kd_boot_changed(b, &c), 1);
	ck_assert_int_eq(c.kind, KD_BOOT_ABSENT);
	ck_assert_uint_eq(c.rank, 0);
	ck_assert_int_eq(kd_boot_changed(b, &c), 1);
	ck_assert_int_eq(c.kind, KD_BOOT_OVER);
	ck_assert_int_eq(kd_boot_changed(b, &c), 0);
}

/* The next frame of the rank. */
static void expect(int fd, uint16_t type)
{
	uint8_t frame[KD_CONTROL_RANK_BYTES];
	struct kd_unpack u = {frame, frame + KD_CONTROL_HEADER_BYTES, 0};
	struct kd_control_header h;

	ck_assert_int_eq(recv(fd, frame, KD_CONTROL_HEADER_BYTES, MSG_WAITALL | MSG_DONTWAIT),
			 KD_CONTROL_HEADER_BYTES);
	kd_control_unpack_header(&u, &h);
	ck_assert_int_eq(h.type, type);
	if (h.size)
		ck_assert_int_eq(recv(fd, frame, h.size, MSG_DONTWAIT), h.size);
}

/* Two ranks adopt a socket each. They keep it over a stop; other objects do not get it. */
START_TEST(kddsrun)
{
	static struct kd_boot boots[3]; /* they live as long as the process */
	static const char *const shared[2] = {"one", "other"};
	int fds[2][2];

	leave_launcher();
	for (uint32_t i = 0; i < 2; i++) {
		char text[64];
		struct stat s;

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
		ck_assert_int_eq(fstat(fds[i][1], &s), 0);
		snprintf(text, sizeof(text), "%d:%ju", fds[i][1], (uintmax_t)s.st_ino);
		setenv(KD_CONTROL_ENV, text, 1);
		tell_changes(fds[i][0]); /* to the program before, which has ended meanwhile */
		welcome(fds[i][0], i);
		ck_assert_int_eq(kd_boot_start(&boots[i], NULL), 0);
		ck_assert_int_eq(kd_boot_changed(&boots[i], &(struct kd_boot_change){0}), 0);
		ck_assert_ptr_null(getenv(KD_CONTROL_ENV));
	}
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 2; i++) {
			ck_assert_uint_eq(boots[i].rank, i);
			ck_assert_uint_eq(boots[i].size, 2);
			ck_assert_int_eq(boots[i].fd, fds[i][1]);
			ck_assert_uint_eq(boots[i].incarnation, 5 * i);
			ck_assert_int_eq(boots[i].one_host, (int)i);
			tell_changes(fds[i][0]); /* while it waits for something else; */
			share(fds[i][0], shared[i]);
			ck_assert_int_eq(kd_boot_fence(&boots[i], 1), 0);
			expect_changes(&boots[i]);
			tell_changes(fds[i][0]); /* and for nothing else */
			ck_assert_int_eq(kd_boot_event(&boots[i]), 0);
			expect_changes(&boots[i]);
			kd_boot_over(&boots[i]);
		}
		for (uint32_t i = 0; i < 2; i++) {
			char text[8];
			size_t size = sizeof(text);

			ck_assert_int_eq(kd_boot_get(&boots[i], 0, "key", text, &size), 0);
			ck_assert_uint_eq(size, strlen(shared[i]));
			ck_assert_mem_eq(text, shared[i], size);
			kd_boot_stop(&boots[i]);
			expect(fds[i][0], KD_CONTROL_HELLO);
			expect(fds[i][0], KD_CONTROL_FENCE);
			expect(fds[i][0], KD_CONTROL_OVER);
			expect(fds[i][0], KD_CONTROL_BYE);
			welcome(fds[i][0], i);
			ck_assert_int_eq(kd_boot_start(&boots[i], NULL), 0);
		}
	}
	ck_assert_int_eq(kd_boot_start(&boots[2], NULL), 0);
	ck_assert_uint_eq(boots[2].size, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("boot");
	TCase *tests = tcase_create("boot");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, own_launcher);
	tcase_add_test(tests, no_fence);
	tcase_add_test(tests, alone);
	tcase_add_test(tests, kddsrun);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
