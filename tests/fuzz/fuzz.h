/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a fuzz target provides and may use. With clang's libFuzzer each target is a program of its
 * own (`make fuzz'). Otherwise driver.c mutates the target's own valid inputs at random (`make
 * check').
 */
#ifndef KD_TESTS_FUZZ_H
#define KD_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry point. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes valid input number i, at most room bytes. Returns its size. Any i is allowed. */
size_t fuzz_valid(unsigned i, uint8_t *data, size_t room);

/* Calls f. Returns whether f reached kd_die, which would have ended the process with an error
 * message. */
int fuzz_try(void (*f)(const uint8_t *data, size_t size), const uint8_t *data, size_t size);

#endif
