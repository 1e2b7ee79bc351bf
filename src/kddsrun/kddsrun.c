/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kddsrun starts the ranks of a job, on this host or on several, and supervises them until they
 * end (kddsrun.1). This file reads the command line. run_job.c manages the ranks. run_host.c
 * starts an agent on each host, by fork on this one and through ssh on others. An agent
 * (run_agent.c) forks its host's ranks. They exchange frames (control.h), each in one poll loop
 * (run_loop.c).
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/member.h"
#include "boot/control.h"
#include "core/topo.h"
#include "kdds.h"
#include "kddsrun/run_agent.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_job.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_job_request.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_restart.h"
#include "kddsrun/run_say.h"

#define USAGE 2
#define GRACE_MS 30000 /* for a rank that is leaving: Slurm gives a process that long, too */

extern char **environ;

static int progress;
static char *leaver;        /* --leave */
static const char *to_join; /* --join */
static uint32_t capacity;   /* 0: as many ranks as the job begins with */
static struct run_options options = {.heartbeat_ms = 30000, .bind = 1};

static const char help[] =
	"Usage: kddsrun [OPTION]... PROGRAM [ARGUMENT]...\n"
	"Runs PROGRAM as the ranks of one job, on this host or on several.\n"
	"\n"
	"  -n, --ranks N           start N ranks (default: one per slot; 1 without hosts)\n"
	"      --hosts LIST        hosts, separated by commas, each with its slots: a:2,b:2\n"
	"                          (default: this host; in a Slurm allocation, its nodes)\n"
	"      --hostfile FILE     read the hosts from FILE, one per line\n"
	"      --rsh COMMAND       start agents on other hosts with COMMAND\n"
	"                          (default: $KDDS_RSH, or ssh in batch mode)\n"
	"      --workers W         workers of each rank (KDDS_WORKERS)\n"
	"      --bind core|none    core: divide each host's CPUs among its ranks if possible\n"
	"                          (default: core)\n"
	"      --provider NAME     tcp, or a libfabric provider (KDDS_PROVIDER)\n"
	"      --env NAME[=VALUE]  set a variable for the ranks, or pass on its current value\n"
	"      --stats[=FORM]      report statistics when the job has ended (KDDS_STATS);\n"
	"                          FORM: text, json or counts\n"
	"      --progress          show progress in one line, if standard error is a terminal\n"
	"                          (KDDS_PROGRESS)\n"
	"      --survive           go on when ranks other than rank 0 are killed: what they had is\n"
	"                          run again (KDDS_SURVIVE)\n"
	"      --respawn N         with --survive: restart ranks that were killed, at most N in\n"
	"                          all\n"
	"      --spare HOSTS       with --survive: hosts in reserve; each slot replaces one rank\n"
	"                          that was killed, has left or was on a host that is lost\n"
	"      --capacity N        with --survive: the job can have N ranks at a time\n"
	"                          (default: as many as it begins with)\n"
	"      --grace SECONDS     with --survive: kill a rank that has been told to leave the\n"
	"                          job and is still there after this time (default: 30)\n"
	"      --leave JOB:RANK    tell a rank of a running job to leave it; JOB is the process id\n"
	"                          of its kddsrun\n"
	"      --join JOB          add N ranks (-n) on hosts (--hosts, --hostfile) to a running\n"
	"                          job; default: one on this host\n"
	"      --label             prefix each line of output with the number of its rank\n"
	"      --timeout SECONDS   end the job after this time, with status 124\n"
	"      --heartbeat SECONDS give up a host that is silent this long; 0: never\n"
	"                          (default: 30)\n"
	"      --restart N         start the job again, at most N times, when a rank or host is\n"
	"                          lost; the program continues by kdds_restore\n"
	"  -v, --verbose           report what is started where, and how it ends\n"
	"  -h, --help              print this help and exit\n"
	"      --version           print the version and exit\n"
	"\n"
	"Standard input goes to rank 0. The exit status is that of rank 0 or, if that is 0, of\n"
	"the first other rank that fails; 128 plus the signal number if a signal ended a rank\n"
	"or the job; 2 for a usage error.\n";

static kd_noreturn void usage(const char *format, ...) kd_printf(1, 2);
static kd_noreturn void usage(const char *format, ...)
{
	char text[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	run_say("%s (see kddsrun --help)", text);
	exit(USAGE);
}

static uint32_t number(const char *what, const char *text, uint32_t min, uint32_t max)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)text[0]) || value < min || value > max)
		usage("%s %s: a whole number from %u to %u is expected", what, text, min, max);
	return (uint32_t)value;
}

static uint32_t milliseconds(const char *what, const char *text, double min)
{
	char *end;
	double value = strtod(text, &end);

	/* A value other than 0 must not be rounded to 0. */
	if (end == text || *end || !(value >= min) || value > 2000000 ||
	    (value > 0 && value < 0.01))
		usage("%s %s: %s number of seconds from 0.01 to 2000000 is expected", what, text,
		      min > 0 ? "a" : "0 or a");
	return (uint32_t)(value * 1000 + 0.5);
}

static void add_setting(const char *name, const char *value)
{
	char *setting = run_alloc(NULL, strlen(name) + strlen(value) + 2);

	stpcpy(stpcpy(stpcpy(setting, name), "="), value);
	options.settings = run_alloc(options.settings,
				     (options.setting_count + 1) * sizeof(*options.settings));
	options.settings[options.setting_count++] = setting;
}

/* --env NAME or NAME=VALUE. */
static void add_env(const char *text)
{
	char *name = run_copy(text), *value = strchr(name, '=');

	if (value)
		*value++ = 0;
	else
		value = getenv(name);
	if (!*name)
		usage("--env %s: NAME or NAME=VALUE is expected", text);
	if (!value)
		usage("--env %s: it is not set here; --env %s=VALUE sets one", text,
		      text);
	add_setting(name, value);
	free(name);
}

/* The library's variables have the same values on every host. */
static void add_environment(void)
{
	static const char *const own[] = {KD_CONTROL_ENV "=", "KDDS_RANK=", "KDDS_SIZE=",
					  "KDDS_LOCAL_RANK=", "KDDS_LOCAL_SIZE=",
					  KD_HOST_CPUS_ENV "="};

	for (char **e = environ; *e; e++) {
		int skip = strncmp(*e, "KDDS_", 5) || !strchr(*e, '=');

		for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
			skip |= !strncmp(*e, own[i], strlen(own[i]));
		if (!skip)
			add_env(*e);
	}
}

static void set_bind(const char *what, const char *text)
{
	if (strcmp(text, "core") && strcmp(text, "none"))
		usage("%s %s: core or none is expected", what, text);
	options.bind = !strcmp(text, "core");
	add_setting("KDDS_BIND", text);
}

enum {
	HOSTS = 256, HOSTFILE, RSH, WORKERS, BIND, PROVIDER, ENV, STATS, PROGRESS, SURVIVE, LABEL,
	TIMEOUT, HEARTBEAT, RESTART, RESPAWN, SPARE, CAPACITY, GRACE, LEAVE, JOIN, VERSION
};

static const struct option long_options[] = {
	{"ranks", required_argument, NULL, 'n'},
	{"hosts", required_argument, NULL, HOSTS},
	{"hostfile", required_argument, NULL, HOSTFILE},
	{"rsh", required_argument, NULL, RSH},
	{"workers", required_argument, NULL, WORKERS},
	{"bind", required_argument, NULL, BIND},
	{"provider", required_argument, NULL, PROVIDER},
	{"env", required_argument, NULL, ENV},
	{"stats", optional_argument, NULL, STATS},
	{"progress", no_argument, NULL, PROGRESS},
	{"survive", no_argument, NULL, SURVIVE},
	{"respawn", required_argument, NULL, RESPAWN},
	{"spare", required_argument, NULL, SPARE},
	{"capacity", required_argument, NULL, CAPACITY},
	{"grace", required_argument, NULL, GRACE},
	{"leave", required_argument, NULL, LEAVE},
	{"join", required_argument, NULL, JOIN},
	{"label", no_argument, NULL, LABEL},
	{"timeout", required_argument, NULL, TIMEOUT},
	{"heartbeat", required_argument, NULL, HEARTBEAT},
	{"restart", required_argument, NULL, RESTART},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, VERSION},
	{NULL, 0, NULL, 0},
};

static void take_option(int option, char **argv)
{
	switch (option) {
	case 'n':
		options.ranks = number("-n", optarg, 1, RUN_MOST_RANKS);
		break;
	case HOSTS:
		if (run_places_parse(&options.places, optarg))
			usage("--hosts %s: HOST[:SLOTS],... is expected", optarg);
		break;
	case HOSTFILE:
		if (run_places_read(&options.places, optarg))
			exit(USAGE);
		break;
	case RSH:
		options.rsh = optarg;
		break;
	case WORKERS:
		number("--workers", optarg, 1, 1024);
		add_setting("KDDS_WORKERS", optarg);
		break;
	case BIND:
		set_bind("--bind", optarg);
		break;
	case PROVIDER:
		add_setting("KDDS_PROVIDER", optarg);
		break;
	case ENV:
		add_env(optarg);
		break;
	case STATS:
		if (optarg && strcmp(optarg, "text") && strcmp(optarg, "json") &&
		    strcmp(optarg, "counts"))
			usage("--stats=%s: text, json or counts is expected", optarg);
		add_setting("KDDS_STATS", optarg ? optarg : "text");
		break;
	case PROGRESS:
		progress = 1;
		break;
	case SURVIVE:
		add_setting("KDDS_SURVIVE", "1");
		break;
	case RESPAWN:
		options.respawns = number("--respawn", optarg, 0, KD_INCARNATIONS - 1);
		break;
	case SPARE:
		if (run_places_parse(&options.spares, optarg))
			usage("--spare %s: HOST[:SLOTS],... is expected", optarg);
		break;
	case CAPACITY:
		capacity = number("--capacity", optarg, 1, RUN_MOST_RANKS);
		break;
	case GRACE:
		options.grace_ms = milliseconds("--grace", optarg, 0.01);
		break;
	case LEAVE:
		leaver = optarg;
		break;
	case JOIN:
		to_join = optarg;
		break;
	case LABEL:
		options.label = 1;
		break;
	case TIMEOUT:
		options.timeout_ms = milliseconds("--timeout", optarg, 0.01);
		break;
	case HEARTBEAT:
		options.heartbeat_ms = milliseconds("--heartbeat", optarg, 0);
		break;
	case RESTART:
		options.restarts = number("--restart", optarg, 0, 1000000);
		break;
	case 'v':
		run_verbose = 1;
		break;
	case 'h':
		fputs(help, stdout);
		exit(fflush(stdout) ? 1 : 0);
	case VERSION:
		printf("kddsrun (libkdds) %s\n", RUN_VERSION);
		exit(fflush(stdout) ? 1 : 0);
	case ':':
		usage("%s needs a value", argv[optind - 1]);
	default:
		/* perhaps one of several letters in an argument */
		if (optopt > 0 && optopt < HOSTS)
			usage("-%c is not an option", optopt);
		usage("%s is not an option, or not allowed here", argv[optind - 1]);
	}
}

/* Deals so many ranks, 0: one per slot, to the hosts given; without any, to this one. */
static uint32_t deal(uint32_t ranks)
{
	char own[256] = "";

	if (!options.places.count) {
		if (gethostname(own, sizeof(own) - 1) || !*own)
			strcpy(own, "localhost");
		run_places_add(&options.places, own, strlen(own), ranks ? ranks : 1, 1);
	}
	ranks = run_places_deal(&options.places, ranks);
	if (!ranks)
		exit(USAGE);
	return ranks;
}

/* Ranks on other hosts can never join. */
static int uses_loop(void)
{
	const char *provider = getenv("KDDS_PROVIDER");

	for (uint32_t i = 0; i < options.setting_count; i++)
		if (!strncmp(options.settings[i], "KDDS_PROVIDER=", 14))
			provider = options.settings[i] + 14;
	return provider && !strncmp(provider, "loop", 4) && (!provider[4] || provider[4] == ':');
}

/* The hosts: those given, or those of the Slurm allocation, or this one. */
static void find_places(void)
{
	const char *rsh = getenv("KDDS_RSH"), *nodes = getenv("SLURM_JOB_NODELIST");

	if (!options.rsh && rsh && *rsh)
		options.rsh = rsh;
	if (!options.places.count && nodes && *nodes) {
		if (run_places_slurm(&options.places, nodes, getenv("SLURM_TASKS_PER_NODE")))
			exit(USAGE);
		options.srun = !options.rsh;
	}
	options.ranks = deal(options.ranks);
	options.size = capacity ? capacity : options.ranks;
	options.one_host = options.places.count == 1 && (!capacity || uses_loop());
	for (size_t i = 0; i < options.spares.count; i++)
		options.one_host &= run_places_same(&options.spares.place[i], options.places.place);
	if (options.size < options.ranks)
		usage("--capacity %u: the job begins with %u ranks", capacity, options.ranks);
}

/* Errors in the ranks' KDDS_ variables are reported once, here. */
static void check_settings(void)
{
	for (uint32_t i = 0; i < options.setting_count; i++)
		if (!strncmp(options.settings[i], "KDDS_", 5))
			putenv(options.settings[i]);
	if (kd_env_read())
		exit(USAGE);
	options.survive = (int)kd_env.survive;
	if (options.respawns && !options.survive)
		usage("--respawn %u: without --survive the job ends when a rank is killed",
		      options.respawns);
	if (options.spares.count && !options.survive)
		usage("--spare: without --survive the job ends when a rank is killed");
	if (capacity && !options.survive)
		usage("--capacity %u: without --survive no rank can join the job", capacity);
	if (options.grace_ms && !options.survive)
		usage("--grace %g: without --survive no rank can leave the job",
		      options.grace_ms / 1000.0);
	if (!options.grace_ms)
		options.grace_ms = GRACE_MS;
}

/* kddsrun --leave and --join start nothing themselves. */

/* other: an option that --leave, or --join, does not take. */
static int leave(int program, const char *other)
{
	char request[32], option[64], *colon = strchr(leaver, ':');
	unsigned kddsrun, rank;

	if (!colon)
		usage("--leave %s: the process id of kddsrun, a colon and a rank are expected", leaver);
	if (program)
		usage("--leave %s: a program cannot be started at the same time", leaver);
	if (to_join)
		usage("--leave %s, --join %s: these are two commands", leaver, to_join);
	if (other)
		usage("--leave %s: %s belongs to the command that starts the job", leaver, other);
	*colon = 0;
	kddsrun = number("--leave", leaver, 1, INT_MAX);
	rank = number("--leave", colon + 1, 0, INT_MAX);
	snprintf(request, sizeof(request), "leave %u", rank);
	snprintf(option, sizeof(option), "--leave %u:%u", kddsrun, rank);
	return run_job_request(kddsrun, request, option);
}

static int join(int program, const char *other)
{
	unsigned kddsrun = number("--join", to_join, 1, INT_MAX);
	char option[64], *request;
	int status;

	if (program)
		usage("--join %s: the job has its program; none can be given", to_join);
	if (other)
		usage("--join %s: %s belongs to the command that starts the job", to_join, other);
	deal(options.ranks);
	request = run_places_text(&options.places, "join ");
	snprintf(option, sizeof(option), "--join %u", kddsrun);
	status = run_job_request(kddsrun, request, option);
	free(request);
	return status;
}

/* If kddsrun is started with a standard stream closed, no other file must take its number. */
static void open_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const char *bind = getenv("KDDS_BIND"), *wish = getenv("KDDS_PROGRESS");
	const char *other = NULL, *others = NULL; /* options: not for --join; not for --leave */
	int option, status, at = 1;

	open_standard_streams();
	if (argc == 2 && !strcmp(argv[1], "--agent=near"))
		run_agent_main(1);
	if (argc == 2 && !strcmp(argv[1], "--agent"))
		run_agent_main(0);
	run_restart_init();
	add_environment();
	if (bind && *bind)
		set_bind("KDDS_BIND", bind);
	opterr = 0;
	for (; (option = getopt_long(argc, argv, "+:n:vh", long_options, NULL)) != -1;
	     at = optind) {
		take_option(option, argv);
		if (option != JOIN && option != LEAVE)
			others = argv[at];
		if (option != 'n' && option != HOSTS && option != HOSTFILE && option != JOIN)
			other = argv[at];
	}
	if (leaver)
		return leave(argc > optind, others);
	if (to_join)
		return join(argc > optind, other);
	if (optind == argc)
		usage("no program given");
	if (progress && options.label)
		usage("--progress and --label: lines with labels appear only when complete");
	/* The ranks' stderr is a pipe, so kddsrun checks. Labelled lines appear only when
	 * complete. */
	if ((progress || (wish && !strcmp(wish, "1"))) && isatty(STDERR_FILENO) && !options.label)
		add_setting("KDDS_PROGRESS", "always");
	options.argument = argv + optind;
	options.argument_count = (uint32_t)(argc - optind);
	find_places(); /* from kddsrun's own environment, before it becomes the ranks' */
	check_settings();
	run_restart_limit(&options);
	status = run_job(&options);
	if (run_job_lost())
		run_restart(&options, argv);
	return status;
}
