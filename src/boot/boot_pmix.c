/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx, which mpirun and srun --mpi=pmix speak: a client library (pmix_library.h), loaded when the
 * environment says that there is a server. A call that waits for the server may wait forever, so
 * another thread completes it: a callback in a thread of the library or, for PMIx_Get, a thread of
 * ours, since releases differ in who owns the value that the callback of PMIx_Get_nb receives.
 *
 * When a rank dies, mpirun and Slurm's server kill the others by themselves. The event handler is
 * for servers that leave this to the processes, and for a server that is gone.
 *
 * The library knows one client per process: PMIx_Init gives the process one name. So one struct
 * kd_boot at a time can be that client, and the threads that call back find its state through a
 * static pointer. (PMIX_EVENT_RETURN_OBJECT could give the event handler a pointer, where a release
 * honours it, but not tell whether the state is still there: a handler outlives a client that did
 * not call PMIx_Finalize, or that shares the library with an MPI in this process.)
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "boot/boot_launcher.h"

static int present(const struct kd_boot *b)
{
	(void)b;
	return getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE");
}

#ifdef KDDS_HAVE_PMIX

#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "boot/pmix_library.h"

#define ANSWER_SECONDS 60
#define FENCE_SECONDS 300 /* for the last rank to arrive */
#define KEY_BYTES 64

struct client {
	int fd; /* an eventfd, readable when there is bad news */
	pmix_proc_t self;
	pthread_cond_t answered;
	/* The request in progress. */
	struct {
		uintptr_t number;
		int done;
		pmix_status_t status;
		pmix_data_type_t type; /* of the value; PMIX_UNDEF: none */
		uint64_t integer;
		size_t size;
		char bytes[KD_BOOT_VALUE_BYTES];
	} request;
	/* The first event that says that the job cannot go on; 0: none. */
	pmix_status_t bad_news;
	pmix_rank_t bad_rank;
};

/* Main and the threads that call back share what follows, and *current, under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct client *current; /* the state of the started kd_boot; NULL: none */
/* The number of the last request of this process. An answer carries its number, so that a late
 * answer to an earlier request, maybe of a client that is gone, is recognised. */
static uintptr_t last_number;

/* Not const, because the library takes no const pointer; static, because it may read them later. */
static pmix_status_t bad_codes[] = {
	PMIX_ERR_PROC_REQUESTED_ABORT,
	PMIX_ERR_PROC_TERM_WO_SYNC,
	PMIX_ERR_PROC_KILLED_BY_CMD,
	PMIX_ERR_PROC_FAILED_TO_START,
	PMIX_ERR_PROC_ABORTED_BY_SIG,
	PMIX_ERR_PROC_SENSOR_BOUND_EXCEEDED,
	PMIX_ERR_EXIT_NONZERO_TERM,
	PMIX_ERR_JOB_ABORTED,
	PMIX_ERR_JOB_CANCELED,
	PMIX_ERR_JOB_KILLED_BY_CMD,
	PMIX_ERR_JOB_ABORTED_BY_SIG,
	PMIX_ERR_JOB_TERM_WO_SYNC,
	PMIX_ERR_JOB_NON_ZERO_TERM,
	PMIX_EVENT_NODE_DOWN,
	/* Sent by older servers; a newer header may not have their names. */
	-7, /* PMIX_ERR_PROC_ABORTED */
	-9, /* PMIX_ERR_PROC_ABORTING */
};

static pmix_status_t lost_codes[] = {
	PMIX_ERR_LOST_CONNECTION,
	-101, /* PMIX_ERR_LOST_CONNECTION_TO_SERVER, as above */
};

static int lost_connection(pmix_status_t status)
{
	return status == PMIX_ERR_LOST_CONNECTION || status == -101 || status == PMIX_ERR_UNREACH;
}

static int failed(const char *what, pmix_status_t status)
{
	kd_error("PMIx: %s: %s (%d)", what, kd_pmix.Error_string(status), status);
	return lost_connection(status) ? -ECONNRESET : -EREMOTEIO;
}

static int tell_bad_news(const struct client *c)
{
	if (lost_connection(c->bad_news))
		kd_error("PMIx: the launcher is gone");
	else if (c->bad_rank <= PMIX_RANK_VALID)
		kd_error("PMIx: rank %u has ended before the job did: %s", (unsigned)c->bad_rank,
			 kd_pmix.Error_string(c->bad_news));
	else
		kd_error("PMIx: a process has ended before the job did: %s",
			 kd_pmix.Error_string(c->bad_news));
	return lost_connection(c->bad_news) ? -ECONNRESET : -ECONNABORTED;
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
		     size_t n, pmix_info_t results[], size_t n_results,
		     pmix_event_notification_cbfunc_fn_t then, void *then_data)
{
	const pmix_proc_t *whom = source;
	struct client *c;

	(void)id;
	(void)results;
	(void)n_results;
	for (size_t i = 0; i < n; i++)
		if (!strncmp(info[i].key, PMIX_EVENT_AFFECTED_PROC, PMIX_MAX_KEYLEN) &&
		    info[i].value.type == PMIX_PROC && info[i].value.data.proc)
			whom = info[i].value.data.proc;
	pthread_mutex_lock(&lock);
	/* Processes of other jobs do not matter. An event about the loss of the server may name no
	 * process. */
	c = current;
	if (c && !c->bad_news &&
	    (lost_connection(status) || !whom ||
	     !strncmp(whom->nspace, c->self.nspace, sizeof(c->self.nspace)))) {
		c->bad_news = status;
		c->bad_rank = whom ? whom->rank : PMIX_RANK_UNDEF;
		eventfd_write(c->fd, 1);
		pthread_cond_signal(&c->answered);
	}
	pthread_mutex_unlock(&lock);
	if (then)
		then(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, then_data);
}

static void *begin_request(struct client *c)
{
	uintptr_t number;

	pthread_mutex_lock(&lock);
	number = c->request.number = ++last_number;
	c->request.done = 0;
	c->request.type = PMIX_UNDEF;
	pthread_mutex_unlock(&lock);
	return (void *)number;
}

static void copy_value(struct client *c, const pmix_value_t *value)
{
	c->request.type = value->type;
	switch (value->type) {
	case PMIX_BYTE_OBJECT:
		c->request.size = value->data.bo.size;
		if (c->request.size <= sizeof(c->request.bytes) && c->request.size)
			memcpy(c->request.bytes, value->data.bo.bytes, c->request.size);
		break;
	case PMIX_UINT16:
		c->request.integer = value->data.uint16;
		break;
	case PMIX_UINT32:
		c->request.integer = value->data.uint32;
		break;
	case PMIX_UINT64:
		c->request.integer = value->data.uint64;
		break;
	case PMIX_PROC_RANK:
		c->request.integer = value->data.rank;
		break;
	default:
		c->request.type = PMIX_UNDEF;
	}
}

static void answer(uintptr_t number, pmix_status_t status, const pmix_value_t *value)
{
	struct client *c;

	pthread_mutex_lock(&lock);
	c = current;
	if (c && number == c->request.number && !c->request.done) {
		c->request.done = 1;
		c->request.status = status;
		if (value)
			copy_value(c, value);
		pthread_cond_signal(&c->answered);
	}
	pthread_mutex_unlock(&lock);
}

static void on_done(pmix_status_t status, void *number)
{
	answer((uintptr_t)number, status, NULL);
}

static void on_registered(pmix_status_t status, size_t id, void *number)
{
	(void)id;
	answer((uintptr_t)number, status, NULL);
}

/* Waits for the answer to a request whose function has returned status. 0 and the answer's status,
 * or -errno after a line. */
static int end_request(struct client *c, const char *what, pmix_status_t status, int seconds,
		       pmix_status_t *status_p)
{
	struct timespec deadline;
	int error = 0;

	*status_p = status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
	if (status != PMIX_SUCCESS) /* or PMIX_OPERATION_SUCCEEDED: then no callback comes */
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += seconds;
	pthread_mutex_lock(&lock);
	while (!c->request.done && !c->bad_news && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&c->answered, &lock, &deadline);
	error = 0;
	if (c->request.done) {
		*status_p = c->request.status;
	} else if (c->bad_news) {
		error = tell_bad_news(c);
	} else {
		kd_error("PMIx: %s: no answer in %d s", what, seconds);
		error = -ETIMEDOUT;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static void set_flag(pmix_info_t *info, const char *key)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->key, sizeof(info->key), "%s", key);
	info->value.type = PMIX_BOOL;
	info->value.data.flag = true;
}

struct question {
	uintptr_t number;
	pmix_proc_t proc;
	char key[KEY_BYTES];
	size_t n_infos;
	pmix_info_t info;
};

static void *get_value(void *arg)
{
	struct question *q = arg;
	pmix_value_t *value = NULL;
	pmix_status_t status = kd_pmix.Get(&q->proc, q->key, &q->info, q->n_infos, &value);

	answer(q->number, status, status == PMIX_SUCCESS ? value : NULL);
	if (value) {
		if (value->type == PMIX_BYTE_OBJECT)
			free(value->data.bo.bytes);
		free(value);
	}
	free(q);
	return NULL;
}

static int start_thread(struct question *q)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* signals are for the program's own threads */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attr, get_value, q);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -error;
}

/* The value is then in request, or its type is PMIX_UNDEF. immediate: a value that is not there now
 * will never be. */
static int ask(struct client *c, pmix_rank_t rank, const char *key, int immediate)
{
	struct question *q = calloc(1, sizeof(*q));
	pmix_status_t status;
	int error = -ENOMEM;

	if (q) {
		q->number = (uintptr_t)begin_request(c);
		q->proc = c->self;
		q->proc.rank = rank;
		snprintf(q->key, sizeof(q->key), "%s", key);
		q->n_infos = immediate ? 1 : 0;
		set_flag(&q->info, PMIX_IMMEDIATE);
		error = start_thread(q);
	}
	if (error) {
		kd_error("PMIx: no thread to ask for %s: %s", key, kd_errno_text(-error));
		free(q);
		return error;
	}
	error = end_request(c, key, PMIX_SUCCESS, ANSWER_SECONDS, &status);
	if (error || status == PMIX_SUCCESS || status == PMIX_ERR_NOT_FOUND)
		return error;
	return failed(key, status);
}

/*
 * Slurm's server refuses the codes of dead processes (it kills the others by itself, whatever
 * --kill-on-bad-exit says), and the job works without them. So a refusal is not an error, and the
 * loss of the server, which the library itself notices, is registered separately.
 */
static int register_events(struct client *c, pmix_status_t *codes, size_t n)
{
	pmix_status_t status = kd_pmix.Register_event_handler(
		codes, n, NULL, 0, on_event, on_registered, begin_request(c));

	return end_request(c, "PMIx_Register_event_handler", status, ANSWER_SECONDS, &status);
}

static int introduce(struct kd_boot *b)
{
	struct client *c = b->state;
	int error = register_events(c, lost_codes, sizeof(lost_codes) / sizeof(*lost_codes));

	b->rank = c->self.rank;
	if (!error)
		error = register_events(c, bad_codes, sizeof(bad_codes) / sizeof(*bad_codes));
	if (!error)
		error = ask(c, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, 0);
	if (error)
		return error;
	if (c->request.type == PMIX_UNDEF || c->request.integer <= b->rank ||
	    c->request.integer > UINT32_MAX) {
		kd_error("PMIx: the launcher does not provide the number of processes");
		return -EPROTO;
	}
	b->size = (uint32_t)c->request.integer;

	error = ask(c, PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, 1);
	if (error || c->request.type == PMIX_UNDEF || c->request.integer < 1 ||
	    c->request.integer > b->size)
		return error;
	uint32_t local_size = (uint32_t)c->request.integer;

	error = ask(c, c->self.rank, PMIX_LOCAL_RANK, 1);
	if (error || c->request.type == PMIX_UNDEF || c->request.integer >= local_size)
		return error;
	b->local_size = local_size;
	b->local_rank = (uint32_t)c->request.integer;
	return 0;
}

/* Without PMIx_Finalize, so that the launcher sees the failure. */
static void cancel(struct kd_boot *b)
{
	struct client *c = b->state;

	pthread_mutex_lock(&lock);
	current = NULL;
	pthread_mutex_unlock(&lock);
	close(c->fd);
	pthread_cond_destroy(&c->answered);
	free(c);
	b->state = NULL;
	b->fd = -1;
}

/* Makes *b the client of this process. Under the lock. */
static int become_client(struct kd_boot *b)
{
	pthread_condattr_t attr;
	struct client *c;
	int error;

	if (current) {
		kd_error("PMIx: another rank in this process is its PMIx client already");
		return -EBUSY;
	}
	c = kd_must(calloc(1, sizeof(*c)));
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->fd < 0) {
		error = -errno;
		kd_error("PMIx: eventfd: %s", kd_errno_text(-error));
		free(c);
		return error;
	}
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->answered, &attr);
	pthread_condattr_destroy(&attr);
	b->state = c;
	b->fd = c->fd;
	current = c;
	return 0;
}

static int initialise(struct client *c)
{
	pmix_proc_t self;
	pmix_status_t status = kd_pmix.Init(&self, NULL, 0);

	if (status != PMIX_SUCCESS) {
		failed("PMIX_NAMESPACE is in the environment, but PMIx_Init finds no launcher",
		       status);
		return -ECONNREFUSED;
	}
	pthread_mutex_lock(&lock);
	c->self = self;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int start(struct kd_boot *b)
{
	int error;

	pthread_mutex_lock(&lock);
	error = kd_pmix_load();
	if (!error)
		error = become_client(b);
	pthread_mutex_unlock(&lock);
	if (error)
		return error;
	error = initialise(b->state);
	if (!error)
		error = introduce(b);
	if (error)
		cancel(b);
	return error;
}

static int put(struct kd_boot *b, const char *name, const void *value, size_t size)
{
	char key[KEY_BYTES];
	pmix_value_t v;
	pmix_status_t status;

	(void)b;
	if (snprintf(key, sizeof(key), "kdds-%s", name) >= (int)sizeof(key) ||
	    size > KD_BOOT_VALUE_BYTES) {
		kd_error("PMIx: put %s: its name or its value, of %zu bytes, is too long", key,
			 size);
		return -EMSGSIZE;
	}
	memset(&v, 0, sizeof(v));
	v.type = PMIX_BYTE_OBJECT;
	v.data.bo.bytes = (char *)(uintptr_t)value; /* copied */
	v.data.bo.size = size;
	status = kd_pmix.Put(PMIX_GLOBAL, key, &v);
	return status == PMIX_SUCCESS ? 0 : failed("PMIx_Put", status);
}

static int fence(struct kd_boot *b, int share)
{
	struct client *c = b->state;
	pmix_info_t info;
	pmix_status_t status = kd_pmix.Commit();
	void *number;
	int error;

	(void)share;
	if (status != PMIX_SUCCESS)
		return failed("PMIx_Commit", status);
	/* Always: otherwise each get is a request to another host, and a get of a missing value
	 * waits. */
	set_flag(&info, PMIX_COLLECT_DATA);
	number = begin_request(c);
	status = kd_pmix.Fence_nb(NULL, 0, &info, 1, on_done, number);
	error = end_request(c, "PMIx_Fence", status, FENCE_SECONDS, &status);
	if (error || status == PMIX_SUCCESS)
		return error;
	if (status != PMIX_ERR_PARTIAL_SUCCESS)
		return failed("PMIx_Fence", status);
	kd_error("PMIx: a process has ended before the job did");
	return -ECONNABORTED;
}

static int get(struct kd_boot *b, uint32_t rank, const char *name, void *value, size_t *size_p)
{
	struct client *c = b->state;
	char key[KEY_BYTES];
	int error;

	if (snprintf(key, sizeof(key), "kdds-%s", name) >= (int)sizeof(key))
		return -ENOENT;
	error = ask(c, rank, key, 1);
	if (error)
		return error;
	if (c->request.type != PMIX_BYTE_OBJECT)
		return -ENOENT;
	if (c->request.size > *size_p || c->request.size > sizeof(c->request.bytes))
		return -EMSGSIZE;
	memcpy(value, c->request.bytes, c->request.size);
	*size_p = c->request.size;
	return 0;
}

static int event(struct kd_boot *b)
{
	const struct client *c = b->state;
	int error;

	pthread_mutex_lock(&lock);
	error = c->bad_news ? tell_bad_news(c) : 0;
	pthread_mutex_unlock(&lock);
	return error;
}

static void stop(struct kd_boot *b)
{
	pmix_status_t status;

	cancel(b);
	status = kd_pmix.Finalize(NULL, 0);
	if (status != PMIX_SUCCESS)
		failed("PMIx_Finalize", status);
}

const struct kd_boot_launcher kd_boot_pmix = {
	"PMIx", present, start, put, fence, get, event, stop, cancel, NULL, NULL,
	NULL, NULL,
};

#else

#include <errno.h>

#include "base/log.h"

static int start(struct kd_boot *b)
{
	(void)b;
	kd_error("PMIx: a PMIx launcher has started this process, but libkdds was built without "
		 "PMIx (Debian: libpmix-dev)");
	return -ENOSYS;
}

/* The others are not reached: start has failed. */
const struct kd_boot_launcher kd_boot_pmix = {.name = "PMIx", .present = present, .start = start};

#endif
