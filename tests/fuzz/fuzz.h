/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a fuzz target gives, and what it may use. With clang's libFuzzer the target is its own program (`make fuzz'); else driver.c
 * mutates the target's own valid inputs by a seed (`make check').
 */
#ifndef KD_TESTS_FUZZ_H
#define KD_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Valid input number i, at most room bytes; returns its size. Any i will do. */
size_t fuzz_valid(unsigned i, uint8_t *data, size_t room);

/* Calls f. Whether it came to kd_die: the process would have ended in good order. */
int fuzz_try(void (*f)(const uint8_t *data, size_t size), const uint8_t *data, size_t size);

#endif
