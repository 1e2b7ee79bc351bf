/* SPDX-License-Identifier: BSD-3-Clause */
/* Under libFuzzer mutations start from the target's own valid inputs: they contain names of objects
 * of this very program, so a stored corpus would not do. */
#include "fuzz.h"

#include <stdlib.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	if (size < 8 || seed % 32 == 0) {
		static uint8_t valid[1 << 18];
		size_t n = fuzz_valid(seed >> 8, valid, sizeof(valid) / 2);

		size = n < room ? n : room;
		for (size_t i = 0; i < size; i++)
			data[i] = valid[i];
	}
	return LLVMFuzzerMutate(data, size, room);
}
