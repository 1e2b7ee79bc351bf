/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that a push that finds the window full preserves the registers of its caller, vector and
 * x87 registers included, and the red zone, although the tasks that run meanwhile use all of them;
 * both with xsave and with fxsave.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/keep.h"
#include "kdds.h"

#ifdef KD_KEEP
#include <cpuid.h>

#define FXSAVE_BYTES 512

extern uint32_t kd_keep_bytes;
extern uint64_t kd_keep_parts;

struct registers {
	uint64_t general[7];
	uint64_t red_zone;
	long double x87;
	uint64_t vector[16][4];
	char *place; /* what the push returned */
};

#define SIXTEEN(x) \
	x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15)
#define LOAD_X(n) "movups 80+32*" #n "(%%rax), %%xmm" #n "\n\t"
#define LOAD_Y(n) "vmovups 80+32*" #n "(%%rax), %%ymm" #n "\n\t"
#define STORE_X(n) "movups %%xmm" #n ", 80+32*" #n "(%%rbx)\n\t"
#define STORE_Y(n) "vmovups %%ymm" #n ", 80+32*" #n "(%%rbx)\n\t"

/* Pushes with the registers loaded from `before`, and then stores them to `after`. */
#define PUSH(load, store) \
	__asm__ volatile( \
		"lea -256(%%rsp), %%rsp\n\t" \
		SIXTEEN(load) \
		"fldt 64(%%rax)\n\t" \
		"mov 0(%%rax), %%rcx\n\t" \
		"mov 8(%%rax), %%rdx\n\t" \
		"mov 16(%%rax), %%rsi\n\t" \
		"mov 24(%%rax), %%rdi\n\t" \
		"mov 32(%%rax), %%r8\n\t" \
		"mov 40(%%rax), %%r9\n\t" \
		"mov 48(%%rax), %%r10\n\t" \
		"mov 56(%%rax), %%r11\n\t" \
		"mov %%r11, -128(%%rsp)\n\t" \
		"mov %%r12, %%rax\n\t" \
		"lea 1f(%%rip), %%r11\n\t" \
		"jmp *kdds_push_keep@GOTPCREL(%%rip)\n" \
		"1:	mov %%rax, 592(%%rbx)\n\t" \
		"mov -128(%%rsp), %%rax\n\t" \
		"mov %%rax, 56(%%rbx)\n\t" \
		"mov %%rcx, 0(%%rbx)\n\t" \
		"mov %%rdx, 8(%%rbx)\n\t" \
		"mov %%rsi, 16(%%rbx)\n\t" \
		"mov %%rdi, 24(%%rbx)\n\t" \
		"mov %%r8, 32(%%rbx)\n\t" \
		"mov %%r9, 40(%%rbx)\n\t" \
		"mov %%r10, 48(%%rbx)\n\t" \
		"fstpt 64(%%rbx)\n\t" \
		SIXTEEN(store) \
		"lea 256(%%rsp), %%rsp" \
		: "+a"(in), "+b"(out), "+r"(r12) \
		: \
		: "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory", \
		  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
		  "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

_Static_assert(offsetof(struct registers, vector) == 80 &&
	       offsetof(struct registers, place) == 592, "PUSH has these offsets");

static void push(const struct registers *before, struct registers *after, char *end, int wide)
{
	const struct registers *in = before;
	struct registers *out = after;
	register char *r12 __asm__("r12") = end;

	if (wide)
		PUSH(LOAD_Y, STORE_Y);
	else
		PUSH(LOAD_X, STORE_X);
}

static int ran;

/* Its caller, the library, does not expect any of these registers to survive. */
KDDS_TASK(spoil, UPDATE(int, x))
{
	++**x;
	__asm__ volatile("fninit\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\t"
			 "fldpi\n\tfninit" ::: "memory");
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroall" ::: "memory");
	__asm__ volatile("xor %%eax, %%eax\n\t"
			 "mov %%rax, %%rcx\n\tmov %%rax, %%rdx\n\t"
			 "mov %%rax, %%rsi\n\tmov %%rax, %%rdi\n\t"
			 "mov %%rax, %%r8\n\tmov %%rax, %%r9\n\t"
			 "mov %%rax, %%r10\n\tmov %%rax, %%r11\n\t"
			 "pxor %%xmm0, %%xmm0\n\tpxor %%xmm7, %%xmm7\n\tpxor %%xmm15, %%xmm15"
			 ::: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
			     "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
			     "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
			     "xmm14", "xmm15");
}

/* i = 0: fxsave. */
START_TEST(registers)
{
	int wide = _i && __builtin_cpu_supports("avx"), pushed = 0;
	KDDS_OVER(int, x, &ran);
	struct registers before, after;
	struct kdds_frame *f;

	setenv("KDDS_WORKERS", "1", 1);
	setenv("KDDS_WINDOW", "64K", 1);
	ck_assert_int_eq(kdds_init(), 0);
	if (!_i)
		kd_keep_bytes = FXSAVE_BYTES;
	else if (wide)
		ck_assert_uint_gt(kd_keep_bytes, FXSAVE_BYTES);
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	for (size_t i = 0; i < 7; i++)
		before.general[i] = 0x1111111111111111u * (i + 1);
	before.red_zone = 0x0123456789abcdefu;
	before.x87 = 1.0L / 3;
	for (size_t i = 0; i < 16; i++)
		for (size_t j = 0; j < (wide ? 4 : 2); j++)
			before.vector[i][j] = 0x0101010101010101u * (16 * i + j + 1);
	f = kdds_frame_current();
	for (; f->tail + kd_type_spoil.size <= f->limit; pushed++)
		kdds_spawn(spoil, x);
	push(&before, &after, f->tail + kd_type_spoil.size, wide);
	ck_assert_int_gt(pushed, 1000);
	ck_assert_int_eq(ran, pushed);
	ck_assert_ptr_eq(after.place, kd_frame_first(f));
	before.place = after.place;
	ck_assert(after.x87 == before.x87);
	memset(&before.x87, 0, sizeof(before.x87)); /* it has padding */
	memset(&after.x87, 0, sizeof(after.x87));
	ck_assert_mem_eq(&after, &before, sizeof(before));
	ck_assert_int_eq(kdds_finalize(), 0);
}
END_TEST

/* Every state component that the kernel lets programs use is saved, the tiles of AMX included, and
 * fits into the area. The exception is component 9, the protection keys. */
START_TEST(parts)
{
	unsigned a, b, c, d, low, high;

	kd_keep_init();
	if (kd_keep_bytes == FXSAVE_BYTES)
		return;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	for (unsigned i = 0; i < 63; i++) {
		uint64_t enabled = ((uint64_t)high << 32 | low) >> i & 1;

		if (i == 9 || !enabled)
			continue;
		ck_assert_msg(kd_keep_parts >> i & 1, "part %u is not saved", i);
		if (i < 2) /* x87 and SSE have fixed places */
			continue;
		ck_assert(__get_cpuid_count(13, i, &a, &b, &c, &d));
		ck_assert_uint_le(b + a, kd_keep_bytes);
	}
	ck_assert_uint_eq(kd_keep_parts >> 9 & 1, 0);
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("keep");
	TCase *tcase = tcase_create("keep");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
#ifdef KD_KEEP
	tcase_add_loop_test(tcase, registers, 0, 2);
	tcase_add_test(tcase, parts);
#endif
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
