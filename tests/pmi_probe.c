/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program for check_launchers.sh that uses a launcher's back end and nothing else of the library.
 *
 *   pmi_probe             publish, fence, get from all, twice; rank 0 prints one line
 *   pmi_probe HOW RANK    the same, but that rank ends after the first round: HOW is kill
 *                         (SIGKILL), exit (status 3) or leave (status 0); the others wait for
 *                         the launcher to end them, as processes at work do
 *   pmi_probe HOW-fence RANK    the same, but the others wait in a fence
 *   pmi_probe wait        all wait to be ended; rank 0 prints a line first
 *
 * Status 0: success; 1: an error, reported on stderr, such as the end of the job; 4: a wrong value;
 * 5: not ended within 60 s; 77: no launcher.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot_launcher.h"

#define KEYS 4
#define UNTOLD_MS 60000

static struct kd_boot boot = {.fd = -1};
static const struct kd_boot_launcher *launcher;

/* 0, 1, 255 or 256 bytes. The longest contains every byte value, including NUL, newline, space and
 * '='. */
static size_t make_value(uint32_t rank, int round, int key, uint8_t value[KD_BOOT_VALUE_BYTES])
{
	static const size_t sizes[KEYS] = {KD_BOOT_VALUE_BYTES, 1, 255, 0};

	for (size_t i = 0; i < sizes[key]; i++)
		value[i] = (uint8_t)(i + 37 * rank + 11 * (uint32_t)round + 5 * (uint32_t)key);
	return sizes[key];
}

static void wrong(const char *what, uint32_t rank, int round, int key)
{
	fprintf(stderr, "pmi_probe: rank %u: %s: of rank %u, round %d, key %d\n",
		(unsigned)boot.rank, what, (unsigned)rank, round, key);
	exit(4);
}

/* An error, which has been reported on stderr. */
static void must(int error)
{
	if (error)
		exit(1);
}

static void check(uint32_t rank, int round, int key)
{
	uint8_t expected[KD_BOOT_VALUE_BYTES], value[KD_BOOT_VALUE_BYTES];
	size_t size = make_value(rank, round, key, expected), got = sizeof(value), less = size - 1;
	char name[16];
	int error;

	snprintf(name, sizeof(name), "r%dk%d", round, key);
	error = launcher->get(&boot, rank, name, value, &got);
	if (error) {
		fprintf(stderr, "pmi_probe: get: error %d\n", -error);
		wrong("no value", rank, round, key);
	}
	if (got != size || memcmp(value, expected, size))
		wrong("another value", rank, round, key);
	if (size && launcher->get(&boot, rank, name, value, &less) != -EMSGSIZE)
		wrong("not -EMSGSIZE", rank, round, key);
}

static void play(int round)
{
	uint8_t value[KD_BOOT_VALUE_BYTES];
	char name[16];
	size_t size = sizeof(value);

	for (int key = 0; key < KEYS; key++) {
		snprintf(name, sizeof(name), "r%dk%d", round, key);
		must(launcher->put(&boot, name, value, make_value(boot.rank, round, key, value)));
	}
	must(launcher->fence(&boot, 1));
	for (uint32_t i = 0; i < boot.size; i++)
		for (int key = 0; key < KEYS; key++)
			check((boot.rank + i) % boot.size, round, key);
	if (launcher->get(&boot, boot.size - 1, "nothing", value, &size) != -ENOENT)
		wrong("not -ENOENT", boot.size - 1, round, -1);
	if (launcher->event && launcher->event(&boot))
		exit(1);
}

static void wait_to_be_told(void)
{
	struct pollfd fd = {.fd = boot.fd, .events = POLLIN};

	while (poll(&fd, 1, UNTOLD_MS) > 0)
		must(launcher->event(&boot));
	fprintf(stderr, "pmi_probe: rank %u: nobody has told that the job has ended\n",
		(unsigned)boot.rank);
	exit(5);
}

static void fail_as_told(const char *how, uint32_t rank)
{
	if (boot.rank == rank) {
		if (!strncmp(how, "kill", 4))
			raise(SIGKILL);
		_exit(strncmp(how, "exit", 4) ? 0 : 3);
	}
	if (strstr(how, "-fence"))
		must(launcher->fence(&boot, 1));
	else
		wait_to_be_told();
}

int main(int argc, char **argv)
{
	uint32_t size;

	launcher = kd_boot_pmi.present(&boot)	 ? &kd_boot_pmi
		   : kd_boot_pmix.present(&boot) ? &kd_boot_pmix
						 : NULL;
	if (!launcher) {
		fprintf(stderr, "pmi_probe: no launcher\n");
		return 77;
	}
	must(launcher->start(&boot));
	if (boot.rank >= boot.size ||
	    (boot.local_size && boot.local_rank >= boot.local_size))
		wrong("no such rank", boot.rank, 0, -1);
	play(0);
	if (argc == 3)
		fail_as_told(argv[1], (uint32_t)atoi(argv[2]));
	if (argc == 2) {
		if (!boot.rank) {
			puts("waiting");
			fflush(stdout);
		}
		wait_to_be_told();
	}
	play(1);
	size = boot.size;
	launcher->stop(&boot);
	if (!boot.rank)
		printf("%u ranks\n", (unsigned)size);
	return 0;
}
