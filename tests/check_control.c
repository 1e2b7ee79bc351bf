/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that unpacking returns what was packed, and that the launcher's readers (unpackers, orders
 * to agents, lists of hosts) stay within their input, whatever it is, reject what makes no sense,
 * and respect their limits. Inputs are allocated with exactly their size, so that the sanitizers
 * detect a read beyond the end. usage: check_control [SEED]
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/control.h"
#include "kddsrun/run_hosts.h"
#include "kddsrun/run_order.h"

#define ROUNDS 20000

static unsigned seed = 1;
static int failures;
static volatile unsigned sum;

static void expect(int ok, const char *what)
{
	if (ok)
		return;
	printf("FAILED: %s (seed %u)\n", what, seed);
	failures++;
}

static unsigned draw(unsigned n)
{
	return (unsigned)rand() % n;
}

static void check_round_trip(void)
{
	uint8_t *memory = malloc(200);
	struct kd_pack p = {memory, memory + 200, 0};
	struct kd_unpack u;
	struct kd_control_header h;
	uint64_t a = (uint64_t)rand() << 33 | (uint64_t)rand(), b = draw(256);
	const void *block;
	size_t size;

	kd_control_pack_header(&p, 17, KD_CONTROL_VALUE, 0x12345678);
	kd_pack_uint(&p, a, 8);
	kd_pack_uint(&p, b, 1);
	kd_pack_string(&p, "key");
	kd_pack_block(&p, "a\0b", 3);
	expect(!p.bad, "packing fits");
	u = (struct kd_unpack){memory, p.at, 0};
	kd_control_unpack_header(&u, &h);
	expect(h.size == 17 && h.type == KD_CONTROL_VALUE && h.rank == 0x12345678,
	       "a header is unpacked as it was packed");
	expect(kd_unpack_uint(&u, 8) == a && kd_unpack_uint(&u, 1) == b, "numbers are");
	expect(!strcmp(kd_unpack_string(&u), "key"), "a string is");
	block = kd_unpack_block(&u, &size);
	expect(size == 3 && !memcmp(block, "a\0b", 3), "a block is");
	expect(kd_unpack_complete(&u), "that was all");
	kd_unpack_uint(&u, 1);
	expect(u.bad && !kd_unpack_complete(&u), "there is no more");
	p.end = p.at + 6;
	kd_pack_string(&p, "key");
	expect(p.bad, "what does not fit is not packed");
	free(memory);
}

static void check_unpack(void)
{
	size_t size = draw(40), n;
	uint8_t *memory = malloc(size ? size : 1), copy[16];
	struct kd_unpack u = {memory, memory + size, 0};

	for (size_t i = 0; i < size; i++)
		memory[i] = (uint8_t)(draw(2) ? draw(6) : draw(256));
	for (int i = 0; i < 6; i++) {
		const uint8_t *before = u.at;
		const void *block;

		switch (draw(4)) {
		case 0:
			kd_unpack_uint(&u, 1 + draw(8));
			break;
		case 1:
			block = kd_unpack_block(&u, &n);
			for (size_t j = 0; j < n; j++)
				sum += ((const uint8_t *)block)[j]; /* is the memory accessible? */
			break;
		case 2:
			n = strlen(kd_unpack_string(&u));
			expect(n < 40, "a string ends");
			break;
		default:
			kd_unpack_bytes(&u, copy, 1 + draw(16));
		}
		expect(u.at >= before && u.at <= u.end, "unpacking goes forward");
	}
	free(memory);
}

static void check_order(void)
{
	char secret[KD_BOOT_SECRET_BYTES] = "";
	char *arguments[] = {"program", "argument", "", NULL}, *settings[] = {"A=1", "B="};
	int idle = draw(2) == 0; /* then it may have more slots than the job has ranks */
	struct run_order in = {.size = 4, .first = 2, .ranks = idle ? 7 : 2, .idle = (uint32_t)idle,
			       .one_host = 1, .heartbeat_ms = 5, .bind = 1,
			       .secret = secret, .directory = "/x", .arguments = 3, .settings = 2,
			       .argument = arguments, .setting = settings};
	struct run_order out;
	size_t size;
	uint8_t *payload = run_order_pack(&in, &size), *exact;
	struct kd_unpack u = {payload, payload + size, 0};

	expect(!run_order_unpack(&out, &u), "an order is understood");
	expect(out.size == 4 && out.first == 2 && out.ranks == in.ranks &&
		       out.idle == in.idle && out.one_host == 1 && out.arguments == 3 &&
		       !strcmp(out.argument[1], "argument") && !out.argument[3] &&
		       !strcmp(out.setting[1], "B=") && !strcmp(out.directory, "/x"),
	       "an order is the same");
	run_order_free(&out);
	for (unsigned n = draw(4); n--;)
		payload[draw((unsigned)size)] = (uint8_t)(draw(2) ? draw(4) : draw(256));
	size -= draw(3) ? 0 : draw((unsigned)size);
	exact = memcpy(malloc(size ? size : 1), payload, size);
	u = (struct kd_unpack){exact, exact + size, 0};
	if (!run_order_unpack(&out, &u))
		for (uint32_t i = 0; i < out.arguments; i++)
			failures += strlen(out.argument[i]) > size;
	run_order_free(&out);
	free(exact);
	free(payload);
}

/* What is sent by kddsrun --join is what was dealt. */
static void check_text(const struct run_places *p)
{
	char *text = run_places_text(p, "join ");
	struct run_places q = {NULL, 0};

	expect(!strncmp(text, "join ", 5) && !run_places_parse(&q, text + 5) &&
		       q.count == p->count, "a list of hosts is understood");
	for (size_t i = 0; i < q.count && q.count == p->count; i++)
		expect(!strcmp(q.place[i].name, p->place[i].name) &&
			       q.place[i].slots == p->place[i].ranks, "and is the same");
	run_places_free(&q);
	free(text);
}

static void check_places(void)
{
	static const char letters[] = "[[]]--,,,::0123ab.x()#= ";
	size_t length = draw(16);
	char *text = malloc(length + 1), *tasks = malloc(length + 1);
	struct run_places p = {NULL, 0};
	uint32_t size, next = 0;

	for (size_t i = 0; i < length; i++) {
		text[i] = letters[draw(sizeof(letters) - 1)];
		tasks[i] = letters[draw(sizeof(letters) - 1)];
	}
	text[length] = tasks[length] = 0;
	if (draw(2))
		run_places_parse(&p, text);
	else
		run_places_slurm(&p, text, draw(2) ? tasks : NULL);
	expect(p.count <= 16384, "a list of hosts has an end");
	size = p.count ? run_places_deal(&p, draw(2) ? 1 + draw(100) : 0) : 0;
	for (size_t i = 0; i < p.count && size; i++) {
		expect(p.place[i].first == next && p.place[i].ranks,
		       "every host listed gets ranks");
		expect(p.place[i].name[0] != '-', "no host looks like an option");
		next += p.place[i].ranks;
	}
	expect(next == size, "every rank gets a host");
	if (size)
		check_text(&p);
	run_places_free(&p);
	free(text);
	free(tasks);
}

/* Short texts that stand for many hosts. */
static void check_great_places(void)
{
	struct run_places p = {NULL, 0};
	char text[256] = "n";

	for (int i = 0; i < 40; i++)
		strcat(text, "[1,1]");
	expect(run_places_slurm(&p, text, NULL), "2^40 times the same node is too much");
	run_places_free(&p);
	expect(!run_places_slurm(&p, "n[1-9][0-9],m[1,1]", NULL) && p.count == 91 &&
		       p.place[90].slots == 2,
	       "91 nodes");
	run_places_free(&p);
	for (int i = 0; i < 4295; i++)
		run_places_add(&p, "a", 1, RUN_MOST_RANKS, 1);
	expect(p.count == 1 && p.place[0].slots > RUN_MOST_RANKS && !run_places_deal(&p, 0),
	       "2^32 slots and some do not wrap");
	run_places_free(&p);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seed = (unsigned)atoi(argv[1]);
	printf("seed %u\n", seed);
	fflush(stdout);
	srand(seed);
	for (int i = 0; i < ROUNDS && failures < 10; i++) {
		check_round_trip();
		check_unpack();
		check_order();
	}
	/* errors about lists of hosts go to stderr */
	if (!freopen("/dev/null", "w", stderr))
		return 1;
	for (int i = 0; i < ROUNDS && failures < 10; i++)
		check_places();
	check_great_places();
	return failures != 0;
}
