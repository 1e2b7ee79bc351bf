/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank for the tests of the launcher. It starts, publishes values, enters the fence, gets and
 * checks the values of all ranks, and stops. It prints the outcome as one line.
 *
 *   boot_probe [STEP:RANK:ACTION[:ARGUMENT]]...
 *
 * performs an action at a step (0: before kd_boot_start, 1: after it, 2: after put, 3: after the
 * fence, 4: after the gets, 5: after kd_boot_stop) on a rank (*: all). The actions are: exit
 * STATUS, kill SIGNAL, sleep SECONDS, wait (until the launcher ends the rank), noise SEED (on the
 * control socket; without a seed the bytes do not even form frames), close (that socket), build
 * NUMBER, again (all steps a second time), start (a second time, without a stop), say TEXT, fence,
 * alone (check the values of all ranks while the launcher on this host is stopped), run COMMAND,
 * suspect RANK.INCARNATION.
 *
 *   boot_probe --marked VARIABLE=VALUE
 *
 * prints the processes that were started with this setting in their environment.
 *
 *   boot_probe --hold FILE SECONDS
 *
 * makes FILE slow to open: the first process that opens it waits that long. It prints "held" once
 * this is set up, and exits with 77 where it cannot be done.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/boot.h"

static struct kd_boot boot = {.fd = -1};
static char **plans;
static int round_number;

static void wait_for_launcher(void)
{
	for (;;) {
		struct pollfd p = {boot.fd, POLLIN, 0};
		int error;

		poll(&p, 1, 60000);
		error = kd_boot_event(&boot);
		if (error) {
			printf("rank %u: told to end: %d\n", boot.rank, error);
			fflush(stdout);
			exit(3);
		}
	}
}

static int control_fd(void)
{
	const char *text = getenv("KDDS_CONTROL_FD");

	return boot.fd >= 0 ? boot.fd : text ? atoi(text) : -1;
}

/* With a seed: frames of valid form with random content. Without: bytes that form no frames. */
static void make_noise(unsigned seed)
{
	unsigned char noise[512];

	for (int n = 0; n < (seed ? 200 : 1); n++) {
		size_t size = seed ? 12 + (size_t)rand_r(&seed) % 300 : sizeof(noise);

		memset(noise, 0x5a, sizeof(noise));
		if (seed) {
			for (size_t i = 12; i < size; i++)
				noise[i] = (unsigned char)(rand_r(&seed) % 3 ? rand_r(&seed) % 8
									     : rand_r(&seed));
			memset(noise, 0, 12);
			noise[0] = (unsigned char)(size - 12);
			noise[1] = (unsigned char)((size - 12) >> 8);
			noise[4] = (unsigned char)(rand_r(&seed) % 8);
			noise[8] = (unsigned char)(rand_r(&seed) % 10);
		}
		if (send(control_fd(), noise, size, MSG_NOSIGNAL) < 0)
			break;
	}
}

static uint64_t value_of(uint32_t rank, uint64_t i)
{
	return (rank + 1) * 1000003u + i + (uint64_t)round_number * 17;
}

static int check_values(void)
{
	uint64_t sum = 0;

	for (uint32_t n = 0; n < boot.size; n++) {
		uint32_t rank = (boot.rank + n) % boot.size;
		uint64_t value[4];
		size_t size = sizeof(value);
		int error = kd_boot_get(&boot, rank, "probe", value, &size);

		if (boot.size == 1 && error == -ENOENT)
			return 0; /* no launcher: there are no other ranks to publish for */
		if (error || size != sizeof(value) || value[0] != value_of(rank, 0) ||
		    value[3] != value_of(rank, 3)) {
			printf("rank %u: the value of rank %u is wrong: %d\n", boot.rank, rank,
			       error);
			return 1;
		}
		sum += value[1];
	}
	return sum == 0;
}

static int be_alone(void)
{
	int wrong = kill(getppid(), SIGSTOP) || check_values();

	kill(getppid(), SIGCONT);
	return wrong ? -1 : 0;
}

static int act(const char *action, const char *argument)
{
	int number = argument ? atoi(argument) : 0;

	if (!strcmp(action, "exit"))
		exit(number);
	else if (!strcmp(action, "kill"))
		signal(number, SIG_DFL), raise(number); /* sanitizers catch some signals */
	else if (!strcmp(action, "sleep"))
		usleep((useconds_t)(atof(argument) * 1e6));
	else if (!strcmp(action, "wait"))
		wait_for_launcher();
	else if (!strcmp(action, "noise"))
		make_noise((unsigned)number);
	else if (!strcmp(action, "close"))
		close(control_fd());
	else if (!strcmp(action, "run"))
		return system(argument) ? -1 : 0;
	else if (!strcmp(action, "build"))
		boot.build = (uint64_t)number;
	else if (!strcmp(action, "say"))
		printf("%s\n", argument), fflush(stdout);
	else if (!strcmp(action, "start"))
		return kd_boot_start(&boot, NULL) ? -1 : 0;
	else if (!strcmp(action, "fence"))
		return kd_boot_fence(&boot, 1) ? -1 : 0;
	else if (!strcmp(action, "alone"))
		return be_alone();
	else if (!strcmp(action, "suspect"))
		kd_boot_suspect(&boot, (uint32_t)number, (uint32_t)atoi(strchr(argument, '.') + 1),
				"a test");
	else if (!strcmp(action, "again"))
		return round_number ? 0 : 1;
	else
		exit(99);
	return 0;
}

/* Performs the actions of this step. 1: start again from step 0. */
static int at(int step)
{
	int again = 0;

	for (char **p = plans; *p; p++) {
		char plan[256], *rest = plan;
		const char *when, *who, *what, *rank = getenv("KDDS_RANK");
		char own[16];

		if (step)
			snprintf(own, sizeof(own), "%u", boot.rank);
		else
			snprintf(own, sizeof(own), "%s", rank ? rank : "0");
		snprintf(plan, sizeof(plan), "%s", *p);
		when = strsep(&rest, ":");
		who = strsep(&rest, ":");
		what = strsep(&rest, ":");
		if (!what)
			exit(99);
		if (atoi(when) == step && (!strcmp(who, "*") || !strcmp(who, own))) {
			int result = act(what, rest);

			if (result < 0)
				exit(98);
			again |= result;
		}
	}
	return again;
}

static int check_refusals(void)
{
	char value[4];
	size_t size = sizeof(value);
	int none = kd_boot_get(&boot, 0, "nothing", value, &size), small;

	size = sizeof(value);
	small = kd_boot_get(&boot, 0, "probe", value, &size);
	if (none == -ENOENT && (small == -EMSGSIZE || (boot.size == 1 && small == -ENOENT)))
		return 0;
	printf("rank %u: get answers %d, %d\n", boot.rank, none, small);
	return 1;
}

static int has(const char *path, const char *mark)
{
	static char text[1 << 20];
	size_t n = 0, length = strlen(mark) + 1;
	ssize_t got;
	int fd = open(path, O_RDONLY);

	while (fd >= 0 && n < sizeof(text) && (got = read(fd, text + n, sizeof(text) - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	for (const char *at = text; at + length <= text + n;
	     at += strnlen(at, (size_t)(text + n - at)) + 1)
		if (!memcmp(at, mark, length))
			return 1;
	return 0;
}

static int print_marked(const char *mark)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char path[300];

		snprintf(path, sizeof(path), "/proc/%s/environ", e->d_name);
		if (atoi(e->d_name) && atoi(e->d_name) != getpid() && has(path, mark))
			printf("%s\n", e->d_name);
	}
	if (dir)
		closedir(dir);
	return !dir;
}

/* The kernel asks the holder of a lease to release it, and makes the process that opens the file
 * wait until then. */
static int hold(const char *path, const char *seconds)
{
	int fd = open(path, O_RDWR), number;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK))
		return 77;
	printf("held\n");
	fflush(stdout);
	alarm(60);
	sigwait(&set, &number);
	usleep((useconds_t)(atof(seconds) * 1e6));
	return 0;
}

int main(int argc, char **argv)
{
	int wrong = 0;
	uint64_t secret = 0;

	if (argc == 3 && !strcmp(argv[1], "--marked"))
		return print_marked(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "--hold"))
		return hold(argv[2], argv[3]);

	plans = argv + (argc > 0);
	for (;; round_number++) {
		uint64_t value[4];

		at(0);
		if (kd_boot_start(&boot, NULL))
			return 97;
		at(1);
		for (uint64_t i = 0; i < 4; i++)
			value[i] = value_of(boot.rank, i);
		if (kd_boot_put(&boot, "probe", value, sizeof(value)))
			return 96;
		at(2);
		if (kd_boot_fence(&boot, 1))
			return 95;
		at(3);
		wrong |= check_values() | check_refusals();
		if (at(4)) {
			kd_boot_fence(&boot, 1);
			kd_boot_stop(&boot);
			continue;
		}
		break;
	}
	for (size_t i = 0; i < sizeof(boot.secret); i++)
		secret = secret * 31 + boot.secret[i];
	printf("rank %u of %u, %u of %u here, secret %llx, %s\n", boot.rank, boot.size,
	       boot.local_rank, boot.local_size, (unsigned long long)secret,
	       wrong ? "WRONG" : "ok");
	fflush(stdout);
	kd_boot_stop(&boot);
	at(5);
	return wrong;
}
