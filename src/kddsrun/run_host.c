/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_say.h"
#include "kddsrun/run_tree.h"

#define SECOND_NS 1000000000ull
#define START_NS (60 * SECOND_NS)       /* for an agent to answer */
#define LAST_WORDS_NS (2 * SECOND_NS)   /* for the status of an ssh whose link has ended */
/* agents being started; an sshd refuses many connections at once, but these go to many hosts */
#define STARTS_AT_ONCE 64
#define LAST_BLOCKS 256                 /* a full pipe of ssh's stderr */
#define BEATS 5                         /* per heartbeat */

#define SSH "ssh -x -o BatchMode=yes -o ConnectTimeout=20"
#define SRUN \
	"srun --quiet --unbuffered --nodes=1 --ntasks=1 --overlap --cpu-bind=none --mpi=none " \
	"--export=ALL --nodelist"

struct run_host **run_hosts;
size_t run_hosts_count;
static const struct run_options *options;
static const struct run_host_events *events;
static size_t started;  /* the first so many hosts */
static size_t starting; /* agents that have not answered */
static int stopping;
static struct run_timer beat_timer;
static char self[4096]; /* this program's path */

static void start_some(void);

#define TO(state) (1u << RUN_HOST_##state)

void run_host_enter(struct run_host *h, enum run_host_state next)
{
	/* tests/check_states.sh compares this table with the drawing in doc/protocol.md */
	static const unsigned allowed[] = {
		[RUN_HOST_WAITING] = TO(STARTING) | TO(LOST),
		[RUN_HOST_STARTING] = TO(SERVING) | TO(LOST),
		[RUN_HOST_SERVING] = TO(DONE) | TO(LOST),
		[RUN_HOST_DONE] = TO(LOST),
		[RUN_HOST_LOST] = 0,
	};

	kd_assert(allowed[h->state] & 1u << next);
	starting += next == RUN_HOST_STARTING;
	starting -= h->state == RUN_HOST_STARTING;
	h->state = next;
}

static int is_serving(const struct run_host *h)
{
	return h->state == RUN_HOST_SERVING || h->state == RUN_HOST_DONE;
}

void run_host_send(struct run_host *host, uint16_t type, uint32_t argument)
{
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, argument, 4);
	run_link_send(&host->link, type, 0, payload, sizeof(payload));
}

void run_hosts_send(uint16_t type, uint32_t argument)
{
	for (size_t i = 0; i < run_hosts_count; i++)
		if (is_serving(run_hosts[i]))
			run_host_send(run_hosts[i], type, argument);
}

void run_hosts_send_frame(uint16_t type, uint32_t rank, const void *payload, size_t size)
{
	for (size_t i = 0; i < run_hosts_count; i++)
		if (is_serving(run_hosts[i]))
			run_link_send(&run_hosts[i]->link, type, rank, payload, size);
}

static void host_kill(struct run_host *h)
{
	/* An --rsh that does not exec has children in its group. The group may not exist yet. */
	if (h->pid && kill(-h->pid, SIGKILL))
		kill(h->pid, SIGKILL);
}

void run_hosts_kill(int all)
{
	stopping = 1;
	for (size_t i = 0; i < run_hosts_count; i++)
		if (all || run_hosts[i]->state < RUN_HOST_SERVING)
			host_kill(run_hosts[i]);
}

int run_hosts_left(void)
{
	for (size_t i = 0; i < started; i++)
		if (run_hosts[i]->pid || run_hosts[i]->state != RUN_HOST_LOST)
			return 1;
	return 0;
}

/* Losing agents. The reason is reported once ssh's status and last line are known, or after
 * LAST_WORDS_NS without them. */

static void failed(struct run_host *h, const char *format, ...) kd_printf(2, 3);
static void failed(struct run_host *h, const char *format, ...)
{
	char text[1200];
	int n = snprintf(text, sizeof(text), "host %s: ", h->place->name);
	va_list args;

	va_start(args, format);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	if (h->complaint[0] && n < (int)sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, ": %s", h->complaint);
	events->failed(h, text);
}

static const char *status_text(const struct run_host *h, char *text, size_t size)
{
	if (h->pid)
		return "closed its connection";
	if (WIFSIGNALED(h->status))
		snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(h->status),
			 strsignal(WTERMSIG(h->status)));
	else if (WEXITSTATUS(h->status) > 128 && WEXITSTATUS(h->status) <= 128 + SIGSYS)
		snprintf(text, size, "ended with status %d, as after signal %d (%s)",
			 WEXITSTATUS(h->status), WEXITSTATUS(h->status) - 128,
			 strsignal(WEXITSTATUS(h->status) - 128));
	else
		snprintf(text, size, "ended with status %d", WEXITSTATUS(h->status));
	return text;
}

static const char *shell_name(const struct run_host *h)
{
	if (h->place->near)
		return "the agent";
	return options->rsh ? options->rsh : options->srun ? "srun" : "ssh";
}

static void tell_leaving(struct run_host *h)
{
	if (h->leaving[0])
		failed(h, "its agent has ended the ranks there: %s", h->leaving);
	h->leaving[0] = 0;
}

static void lose(struct run_host *h)
{
	enum run_host_state before = h->state;
	char status[128];

	run_timer_stop(&h->timer);
	if (before == RUN_HOST_LOST)
		return;
	run_host_enter(h, RUN_HOST_LOST);
	tell_leaving(h);
	status_text(h, status, sizeof(status));
	if (before < RUN_HOST_SERVING)
		failed(h, "cannot start the agent: %s %s", shell_name(h),
		       status_text(h, status, sizeof(status)));
	else if (before != RUN_HOST_DONE && h->place->near)
		failed(h, "the agent %s", status_text(h, status, sizeof(status)));
	else if (before != RUN_HOST_DONE)
		failed(h, "its agent is lost: %s %s", shell_name(h),
		       status_text(h, status, sizeof(status)));
	host_kill(h);
	start_some();
}

static void check_lost(struct run_host *h)
{
	if (run_link_is_open(&h->link))
		return;
	if (!h->pid && (h->state == RUN_HOST_DONE || h->errors.fd < 0))
		lose(h);
	else if (!h->timer.at_ns && h->state != RUN_HOST_LOST)
		run_timer_set(&h->timer, LAST_WORDS_NS);
}

static void due(struct run_timer *timer)
{
	struct run_host *h = container_of(timer, struct run_host, timer);

	if (!run_link_is_open(&h->link)) {
		lose(h);
		return;
	}
	if (h->leaving[0]) {
		tell_leaving(h);
		return;
	}
	failed(h, "no answer within %u s", (unsigned)(START_NS / SECOND_NS));
	host_kill(h);
}

static void closed(struct run_link *link, int error)
{
	struct run_host *h = container_of(link, struct run_host, link);

	if (error == -EPROTO)
		failed(h, "its agent sends something that is no message");
	h->fenced = 0;
	run_timer_stop(&h->timer);
	check_lost(h);
}

const char *run_host_cancelled(const struct run_host *h)
{
	return strstr(h->complaint, " CANCELLED AT ") ? h->complaint : NULL;
}

/* Returns whether there was something to read. */
static int errors_take(struct run_host *h)
{
	char block[sizeof(h->complaint)], *line;
	ssize_t n = h->errors.fd < 0 ? -1 : read(h->errors.fd, block, sizeof(block) - 1);

	if (h->errors.fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	if (n <= 0) {
		run_watch_remove(&h->errors);
		close(h->errors.fd);
		h->errors.fd = -1;
		check_lost(h);
		return 0;
	}
	block[n] = 0;
	for (char *rest = block; (line = strsep(&rest, "\r\n"));)
		if (*line) {
			/* srun's lines after slurmstepd's only say that a task was killed, not
			 * why. */
			if (!run_host_cancelled(h))
				snprintf(h->complaint, sizeof(h->complaint), "%s", line);
			run_tell("host %s: %s", h->place->name, line);
		}
	return 1;
}

static void errors_ready(struct run_watch *watch, short ready)
{
	(void)ready;
	errors_take(container_of(watch, struct run_host, errors));
}

void run_hosts_child(pid_t pid, int status)
{
	for (size_t i = 0; i < run_hosts_count; i++) {
		struct run_host *h = run_hosts[i];

		if (h->pid != pid)
			continue;
		h->pid = 0;
		h->status = status;
		run_link_drain(&h->link);
		for (int n = 0; n < LAST_BLOCKS && errors_take(h); n++)
			;
		/* Its children may still have the other end open; they are not waited for. */
		run_link_close(&h->link);
		run_timer_stop(&h->timer);
		check_lost(h);
	}
}

void run_host_give_up(struct run_host *h, const char *format, ...)
{
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	run_host_enter(h, RUN_HOST_LOST);
	failed(h, "%s", text);
	run_link_close(&h->link);
	host_kill(h);
}

/* Heartbeats. Both sides send them, and any message counts as one. */

static void beat(struct run_timer *timer)
{
	uint64_t now_ns = kd_os_now_ns(), period_ns = options->heartbeat_ms * 1000000ull;

	for (size_t i = 0; i < run_hosts_count; i++) {
		struct run_host *h = run_hosts[i];

		if (h->place->near || !is_serving(h) || !run_link_is_open(&h->link))
			continue;
		if (now_ns - h->link.heard_ns <= period_ns) {
			run_link_send(&h->link, KD_CONTROL_BEAT, 0, NULL, 0);
			continue;
		}
		run_host_give_up(h, "no sign of life for %g s (--heartbeat): the host or the "
				 "network is down", options->heartbeat_ms / 1000.0);
	}
	run_timer_set(timer, period_ns / BEATS);
}

void run_hosts_forgive(void)
{
	for (size_t i = 0; i < run_hosts_count; i++)
		run_hosts[i]->link.heard_ns = kd_os_now_ns();
}

/* Messages from agents. */

static int handle_agent(struct run_host *h, struct kd_unpack *u)
{
	uint32_t magic = (uint32_t)kd_unpack_uint(u, 4), protocol = (uint32_t)kd_unpack_uint(u, 4);
	uint32_t version = (uint32_t)kd_unpack_uint(u, 4), pid;

	if (u->bad || magic != KD_CONTROL_MAGIC)
		return -1;
	run_timer_stop(&h->timer);
	if (protocol != KD_CONTROL_PROTOCOL || version != KDDS_VERSION) {
		run_host_enter(h, RUN_HOST_LOST);
		failed(h,
		       "kddsrun there is version %u.%u.%u (protocol %u), here " RUN_VERSION
		       " (%u): install one version on all hosts",
		       version / 10000, version / 100 % 100, version % 100, protocol,
		       KD_CONTROL_PROTOCOL);
		run_link_close(&h->link);
		host_kill(h);
		start_some();
		return 0;
	}
	pid = (uint32_t)kd_unpack_uint(u, 4);
	run_tell("host %s answers: agent %u on %s", h->place->name, pid, kd_unpack_string(u));
	if (!kd_unpack_complete(u))
		return -1;
	run_host_enter(h, RUN_HOST_SERVING);
	h->complaint[0] = 0; /* so far it was of no importance */
	events->answered(h);
	start_some();
	return 0;
}

static int handle_leaving(struct run_host *h, struct kd_unpack *u)
{
	const char *why = kd_unpack_string(u);

	if (!kd_unpack_complete(u))
		return -1;
	snprintf(h->leaving, sizeof(h->leaving), "%s", why);
	/* where the job goes on, its ranks are lost before they can report that they were ended */
	if (h->place->near || events->dispensable(h))
		tell_leaving(h);
	else
		run_timer_set(&h->timer, LAST_WORDS_NS);
	return 0;
}

static int message(struct run_link *link, const struct kd_control_header *head, struct kd_unpack *u)
{
	struct run_host *h = container_of(link, struct run_host, link);

	if (h->state == RUN_HOST_STARTING)
		return head->type == KD_CONTROL_AGENT ? handle_agent(h, u) : -1;
	if (head->type == KD_CONTROL_LEAVING)
		return handle_leaving(h, u);
	return head->type == KD_CONTROL_BEAT ? 0 : events->message(h, head, u);
}

/* Starting agents. */

/* What the remote shell, of whatever kind, runs: this program's path there or, if it does not
 * exist, its name. */
static const char script[] =
	"if [ -x \"$0\" ]; then exec \"$0\" --agent; else exec kddsrun --agent; fi";

static char *remote_command(void)
{
	char *command = run_alloc(NULL, sizeof(script) + 64 + 4 * sizeof(self)), *to;

	to = stpcpy(stpcpy(stpcpy(command, "exec /bin/sh -c '"), script), "' '");
	for (const char *from = self; *from; from++)
		if (*from == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *from;
	strcpy(to, "'");
	return command;
}

/* In the child. --rsh is shell code, as GIT_SSH_COMMAND is for git: words, quotes and variables
 * mean what they do in a shell. */
static void exec_far(const struct run_host *h)
{
	const char *rsh = options->rsh ? options->rsh : options->srun ? SRUN : SSH;
	char *line;

	if (asprintf(&line, "exec %s \"$@\"", rsh) < 0)
		return;
	if (options->srun)
		execl("/bin/sh", "sh", "-c", line, "kddsrun", h->place->name, "/bin/sh", "-c",
		      script, self, (char *)NULL);
	else
		execl("/bin/sh", "sh", "-c", line, "kddsrun", h->place->name, remote_command(),
		      (char *)NULL);
}

/* In the child. */
static kd_noreturn void become_agent(const struct run_host *h, pid_t parent, int link, int errors)
{
	if (run_tree_die_with(parent, SIGTERM))
		_exit(1);
	setsid(); /* the terminal's signals go to kddsrun only */
	run_loop_restore();
	dup2(link, STDIN_FILENO);
	dup2(link, STDOUT_FILENO);
	if (!h->place->near) {
		dup2(errors, STDERR_FILENO);
		exec_far(h);
	} else {
		execl("/proc/self/exe", "kddsrun", "--agent=near", (char *)NULL);
	}
	run_say("%s", kd_errno_text(errno));
	_exit(127);
}

static int start(struct run_host *h)
{
	int pair[2], errors[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (pipe2(errors, O_CLOEXEC)) {
		close(pair[0]);
		close(pair[1]);
		return -errno;
	}
	h->pid = fork();
	if (!h->pid)
		become_agent(h, parent, pair[1], errors[1]);
	close(pair[1]);
	close(errors[1]);
	if (h->pid < 0) {
		h->pid = 0;
		close(pair[0]);
		close(errors[0]);
		return -EAGAIN;
	}
	run_host_enter(h, RUN_HOST_STARTING);
	run_link_open(&h->link, pair[0], pair[0]);
	fcntl(errors[0], F_SETFL, O_NONBLOCK);
	h->errors = (struct run_watch){errors[0], POLLIN, 0, errors_ready};
	run_watch_add(&h->errors);
	run_timer_set(&h->timer, START_NS);
	return 0;
}

static void start_some(void)
{
	while (!stopping && started < run_hosts_count && starting < STARTS_AT_ONCE) {
		struct run_host *h = run_hosts[started++];
		int error = start(h);

		if (!error)
			continue;
		run_host_enter(h, RUN_HOST_LOST);
		failed(h, "cannot start the agent: %s", kd_errno_text(-error));
	}
}

/* Each agent needs a link and a pipe, and both of their ends while it is started. */
int run_hosts_lack_files(size_t hosts, char *why, size_t size)
{
	size_t waiting = run_hosts_count - started, most;
	size_t all = run_loop_lacks(2 * (waiting + hosts) + 2, &most);

	if (all)
		snprintf(why, size,
			 "for %zu hosts kddsrun needs %zu file descriptors, and its hard limit is "
			 "%zu: raise it (ulimit -Hn), or use fewer hosts",
			 run_hosts_count + hosts, all, most);
	return all != 0;
}

static struct run_host *add(const struct run_place *place, int idle)
{
	struct run_host *h = run_alloc(NULL, sizeof(*h));

	*h = (struct run_host){.place = place, .idle = idle};
	h->running = h->members = idle ? 0 : place->ranks;
	h->link.in.fd = h->errors.fd = -1;
	h->link.frame_bytes = RUN_AGENT_FRAME_BYTES;
	h->link.unsent_bytes = SIZE_MAX;
	h->link.waiting_magic = 1;
	h->link.message = message;
	h->link.closed = closed;
	h->timer.due = due;
	run_hosts = run_alloc(run_hosts, (run_hosts_count + 1) * sizeof(struct run_host *));
	run_hosts[run_hosts_count++] = h;
	return h;
}

struct run_host *run_hosts_add(const struct run_place *place)
{
	struct run_host *h = add(place, 1);

	start_some();
	return h;
}

int run_hosts_start(const struct run_options *given, const struct run_host_events *callbacks)
{
	char why[200];

	options = given;
	events = callbacks;
	if (run_hosts_lack_files(options->places.count, why, sizeof(why))) {
		run_say("%s", why);
		return -EMFILE;
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		strcpy(self, "kddsrun");
	for (size_t i = 0; i < options->places.count; i++)
		add(&options->places.place[i], 0);
	beat_timer.due = beat;
	if (options->heartbeat_ms)
		run_timer_set(&beat_timer, 1);
	start_some();
	return 0;
}
