/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that a decoder stays within its input, whatever that contains: a sanitizer or a crash
 * shows an access outside of it. The inputs are valid ones, damaged at random, in memory of exactly
 * their size. usage: fuzz_TARGET [ROUNDS [SEED]]
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROOM (256u << 10)

static uint64_t state;

static unsigned draw(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

/* Numbers that are typical limits. */
static uint64_t odd_number(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256,
					   2048, 4096, 8192, 65535, 65536, 0x7fffffff, 0x80000000u,
					   0xffffffffu, (uint64_t)1 << 32, (uint64_t)1 << 46,
					   INT64_MAX, UINT64_MAX};
	uint64_t x = numbers[draw(sizeof(numbers) / sizeof(*numbers))];

	return x + draw(5) - 2;
}

static size_t damage(uint8_t *data, size_t size)
{
	for (unsigned n = 1 + draw(4); n && size; n--) {
		size_t at = draw((unsigned)size), width = (size_t)1 << draw(4);
		uint64_t x = odd_number();

		switch (draw(6)) {
		case 0:
			data[at] ^= (uint8_t)(1 << draw(8));
			break;
		case 1: /* a field */
		case 2:
			at = at / width * width;
			memcpy(data + at, &x, width < size - at ? width : size - at);
			break;
		case 3: /* a piece from elsewhere */
			memmove(data + at, data + draw((unsigned)size),
				1 + draw((unsigned)(size - at)) / 4 < size - at ? 1 : 0);
			break;
		case 4:
			if (!draw(4))
				size = draw((unsigned)size + 1);
			break;
		case 5:
			if (!draw(4) && size + 64 < ROOM) {
				size_t more = draw(64);

				memset(data + size, (int)draw(256), more);
				size += more;
			}
			break;
		}
	}
	return size;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 20000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	static uint8_t data[ROOM];

	printf("%lu rounds, seed %llu\n", rounds, (unsigned long long)seed);
	fflush(stdout);
	state = seed;
	for (unsigned long i = 0; i < rounds; i++) {
		size_t size = fuzz_valid(draw(1000), data, ROOM / 2);
		uint8_t *exact;

		if (i % 16)
			size = damage(data, size);
		exact = malloc(size ? size : 1);
		if (!exact)
			return 1;
		memcpy(exact, data, size);
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	return 0;
}
