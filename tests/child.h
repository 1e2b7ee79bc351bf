/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of errors that end a program or print to stderr: runs a function in a child process and
 * keeps the end of its stderr. */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

struct child {
	int status; /* exit status, or 128 + the signal that ended the child */
	char err[8192];
};

/* Runs f(arg) in a child process. Within `seconds`, f must return, which gives status 0, or end the
 * process. */
static inline void child_run(struct child *c, void (*f)(void *arg), void *arg, unsigned seconds)
{
	size_t n = 0;
	ssize_t got;
	int fds[2], status;
	pid_t pid;

	fflush(NULL);
	if (pipe(fds) || (pid = fork()) < 0) {
		perror("child_run");
		abort();
	}
	if (!pid) {
		close(fds[0]);
		dup2(fds[1], STDERR_FILENO);
		close(fds[1]);
		alarm(seconds);
		f(arg);
		fflush(NULL);
		_exit(0);
	}
	close(fds[1]);
	while ((got = read(fds[0], c->err + n, sizeof(c->err) - 1 - n)) > 0)
		n += (size_t)got;
	c->err[n] = 0;
	close(fds[0]);
	waitpid(pid, &status, 0);
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether text is one whole line, "kdds: ...", that contains word. */
static inline int one_line(const char *text, const char *word)
{
	const char *end = strchr(text, '\n');

	return !strncmp(text, "kdds: ", 6) && end && !end[1] && strstr(text, word);
}

#endif
