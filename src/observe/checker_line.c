/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "observe/checker_line.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/module.h"

#define FRAMES_MOST 32 /* of the library and the program */
#define CALLS 3        /* of the program: a body calls the library by functions of the task */
#define LINES 4096u    /* places; of further ones nothing is known */
#define TEXT_BYTES 512

extern char **environ;

static struct line {
	void *calls[CALLS];
	char *text;
	int sought;
} lines[LINES]; /* by hash; 0 is not used */

uint32_t kd_checker_line_here(void)
{
	void *frames[FRAMES_MOST], *calls[CALLS] = {NULL};
	int n = backtrace(frames, FRAMES_MOST), i = 0, k = 0;
	uint64_t h = 0;

	while (i < n && kd_module_is_own(frames[i]))
		i++;
	for (; i < n && k < CALLS && !kd_module_is_own(frames[i]); i++) {
		calls[k++] = frames[i];
		h = (h ^ (uintptr_t)frames[i]) * 0x9e3779b97f4a7c15u;
	}
	if (!k)
		return 0;
	for (uint32_t at = (uint32_t)(h >> 40), tries = 0; tries < LINES; tries++, at++) {
		struct line *l = &lines[at % LINES];

		if (!(at % LINES))
			continue;
		if (!l->calls[0])
			memcpy(l->calls, calls, sizeof(calls));
		if (!memcmp(l->calls, calls, sizeof(calls)))
			return at % LINES;
	}
	return 0;
}

/* Runs a command whose output can be read from the result; NULL: that is not possible. */
static FILE *run(char **args, pid_t *pid_p)
{
	posix_spawn_file_actions_t actions;
	int ends[2], error;
	FILE *out;

	if (pipe(ends))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	error = posix_spawnp(pid_p, args[0], &actions, NULL, args, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	out = error ? NULL : fdopen(ends[0], "r");
	if (!out)
		close(ends[0]);
	return out;
}

/* Whether the line is one of the library's headers, or of a function that KDDS_TASK defines there,
 * but not of a body. */
static int is_ours(const char *function, const char *place)
{
	return !strncmp(function, "kdds_", 5) || strstr(place, "kdds/inline.h:") ||
	       strstr(place, "kdds/task.h:") || strstr(place, "/kdds.h:") ||
	       (!strncmp(function, "kd_", 3) && strncmp(function, "kd_body_", 8));
}

/* The innermost function of the program in what addr2line prints: pairs of a function and a line,
 * "??" if it does not know. A body that appears twice has, first, what is inlined into it. NULL:
 * there is no such function. */
static char *program_line(FILE *out)
{
	char function[TEXT_BYTES], place[TEXT_BYTES], *text = NULL;
	int body = 0;

	while (fgets(function, sizeof(function), out) && fgets(place, sizeof(place), out)) {
		const char *name = strrchr(place, '/');

		place[strcspn(place, " \n")] = 0;
		if (is_ours(function, place) || strchr(place, '?') ||
		    !strcmp(strchrnul(place, ':'), ":0") || (text && !body))
			continue; /* to the end */
		free(text);
		text = strdup(name ? name + 1 : place);
		body = !strncmp(function, "kd_body_", 8);
	}
	return text;
}

static char *look_up(const struct line *l, const char *tool)
{
	char name[32], program[32], addresses[CALLS][24], *text;
	char *args[CALLS + 7] = {name, "-C", "-f", "-i", "-e", program};
	struct link_map *map;
	Dl_info info;
	FILE *out;
	pid_t pid;

	if (!dladdr1(l->calls[0], &info, (void **)&map, RTLD_DL_LINKMAP))
		return NULL;
	snprintf(name, sizeof(name), "%s", tool);
	snprintf(program, sizeof(program), "/proc/%d/exe", (int)getpid());
	if (*map->l_name)
		args[5] = map->l_name;
	for (int i = 0; i < CALLS && l->calls[i]; i++) {
		snprintf(addresses[i], sizeof(addresses[i]), "%#lx",
			 (unsigned long)((uintptr_t)l->calls[i] - 1 - map->l_addr));
		args[6 + i] = addresses[i];
	}
	out = run(args, &pid);
	if (!out)
		return NULL;
	text = program_line(out);
	fclose(out);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return text;
}

const char *kd_checker_line_text(uint32_t line)
{
	struct line *l = &lines[line];

	if (line && !l->sought) {
		l->sought = 1;
		l->text = look_up(l, "addr2line");
		if (!l->text) /* it does not understand all that clang writes */
			l->text = look_up(l, "llvm-addr2line");
	}
	return l->text;
}

void kd_checker_line_free(void)
{
	for (uint32_t i = 0; i < LINES; i++)
		free(lines[i].text);
	memset(lines, 0, sizeof(lines));
}
