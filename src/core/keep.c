/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kdds_push_keep: kdds_push_slow for a caller whose compiler has been told that only rax and r11
 * change. The caller jumps here:
 *
 *   rax  the end of the closure to be pushed; on return its place
 *   r11  the return address
 *
 * Tasks may run before it returns, so it saves every register that they may change: the vector and
 * x87 registers by xsave, in an area of the size that the processor reports. It leaves the caller's
 * red zone alone. The unwind information says where the caller is, so that debuggers can show it.
 *
 * kdds_count_keep: kdds_frame_count for such a caller. It changes no other registers anyway.
 */
#include "core/keep.h"

#ifdef KD_KEEP
#include <cpuid.h>

#define OSXSAVE (1u << 27)
#define FXSAVE_BYTES 512
#define PKRU (1u << 9)

/* Size of the xsave area; FXSAVE_BYTES: there is no xsave. Marked used for -flto, because only the
 * assembly below refers to it. */
uint32_t kd_keep_bytes __attribute__((visibility("hidden"), used)) = FXSAVE_BYTES;
/* What xsave saves, if the kernel lets programs use it: everything the processor has, so that the
 * tiles of AMX, the general registers of APX, and future state are preserved, too. Protection keys
 * are excluded: no compiler keeps anything there, and a task's change to them must last. */
uint64_t kd_keep_parts __attribute__((visibility("hidden"), used));

void kd_keep_init(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE) ||
	    !__get_cpuid_count(13, 0, &a, &b, &c, &d))
		return;
	kd_keep_parts = (uint64_t)d << 32 | (a & ~PKRU);
	kd_keep_bytes = (b + 63) / 64 * 64;
}

/* xsave requires its header, after the first 512 bytes, to be zero. */
__asm__(".pushsection .text\n"
	".balign 16\n"
	".globl kdds_push_keep\n"
	".type kdds_push_keep, @function\n"
	"kdds_push_keep:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa rsp, 0\n"
	"	.cfi_register rip, r11\n"
	"	lea -128(%rsp), %rsp\n"
	"	.cfi_adjust_cfa_offset 128\n"
	"	push %r11\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset rip, -136\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset rbp, -144\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	push %rcx\n"
	"	push %rdx\n"
	"	push %rsi\n"
	"	push %rdi\n"
	"	push %r8\n"
	"	push %r9\n"
	"	push %r10\n"
	"	mov %rax, %rdi\n"
	"	mov kd_keep_bytes(%rip), %ecx\n"
	"	sub %rcx, %rsp\n"
	"	and $-64, %rsp\n"
	"	cmp $512, %ecx\n"
	"	je 1f\n"
	"	xor %eax, %eax\n"
	"	mov %rax, 512(%rsp)\n"
	"	mov %rax, 520(%rsp)\n"
	"	mov %rax, 528(%rsp)\n"
	"	mov %rax, 536(%rsp)\n"
	"	mov %rax, 544(%rsp)\n"
	"	mov %rax, 552(%rsp)\n"
	"	mov %rax, 560(%rsp)\n"
	"	mov %rax, 568(%rsp)\n"
	"	mov kd_keep_parts(%rip), %eax\n"
	"	mov 4+kd_keep_parts(%rip), %edx\n"
	"	xsave64 (%rsp)\n"
	"	jmp 2f\n"
	"1:	fxsave64 (%rsp)\n"
	"2:	fninit\n" /* the x87 stack may be in use */
	"	fldcw (%rsp)\n"
	"	call kdds_push_slow@PLT\n"
	"	mov %rax, %rdi\n"
	"	cmpl $512, kd_keep_bytes(%rip)\n"
	"	je 3f\n"
	"	mov kd_keep_parts(%rip), %eax\n"
	"	mov 4+kd_keep_parts(%rip), %edx\n"
	"	xrstor64 (%rsp)\n"
	"	jmp 4f\n"
	"3:	fxrstor64 (%rsp)\n"
	"4:	mov %rdi, %rax\n"
	"	lea -56(%rbp), %rsp\n"
	"	pop %r10\n"
	"	pop %r9\n"
	"	pop %r8\n"
	"	pop %rdi\n"
	"	pop %rsi\n"
	"	pop %rdx\n"
	"	pop %rcx\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa rsp, 136\n"
	"	.cfi_restore rbp\n"
	"	pop %r11\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_register rip, r11\n"
	"	lea 128(%rsp), %rsp\n"
	"	.cfi_adjust_cfa_offset -128\n"
	"	jmp *%r11\n"
	"	.cfi_endproc\n"
	".size kdds_push_keep, . - kdds_push_keep\n"
	/* kdds_frame_count: rax is the address of the floor, and on return not 0 if the call has
	 * been counted */
	".balign 16\n"
	".globl kdds_count_keep\n"
	".type kdds_count_keep, @function\n"
	"kdds_count_keep:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa rsp, 0\n"
	"	.cfi_register rip, r11\n"
	"	mov (%rax), %rax\n"
	"	btr $63, %rax\n"
	"	jnc 1f\n"
	"	bts $63, %rax\n"
	"	cmp $-1, %rax\n"
	"	je 1f\n"
	"	btr $63, %rax\n"
	"	cmp 8(%rax), %rsp\n"
	"	jbe 1f\n"
	"	incq (%rax)\n"
	"	jmp *%r11\n"
	"1:	xor %eax, %eax\n"
	"	jmp *%r11\n"
	"	.cfi_endproc\n"
	".size kdds_count_keep, . - kdds_count_keep\n"
	".popsection\n");
#endif
