/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: without_membarrier PROGRAM [ARGUMENT...]
 *
 * Runs PROGRAM with a system call filter that makes membarrier(2) fail with ENOSYS, as on old
 * kernels and in some containers. Exits with 77 where filters are not available. In front of an
 * emulator it has the same effect on the emulated program.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	if (argc < 2) {
		fprintf(stderr, "usage: without_membarrier PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "skipped: no system call filters: %s\n", strerror(errno));
		return 77;
	}
	if (syscall(SYS_membarrier, 0, 0, 0) != -1 || errno != ENOSYS) {
		fprintf(stderr, "the filter does not refuse membarrier\n");
		return 1;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "cannot run %s: %s\n", argv[1], strerror(errno));
	return 1;
}
