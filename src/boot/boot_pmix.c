/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx, which mpirun and srun --mpi=pmix speak: a client library, loaded when the environment says
 * that there is a server, so that programs run without it. A call that waits for the server may
 * wait forever, so another thread completes it: a callback in a thread of the library or, for
 * PMIx_Get, a thread of ours, since releases differ in who owns the value that the callback of
 * PMIx_Get_nb receives.
 *
 * When a rank dies, mpirun and Slurm's server kill the others by themselves. The event handler is
 * for servers that leave this to the processes, and for a server that is gone.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "boot/boot_launcher.h"

static int present(void)
{
	return getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE");
}

#ifdef KDDS_HAVE_PMIX

#include <dlfcn.h>
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

#define LIBRARY "libpmix.so.2"
#define ANSWER_SECONDS 60
#define FENCE_SECONDS 300 /* for the last rank to arrive */
#define KEY_BYTES 64

/* The functions used, each as lib.NAME with its type from the header. */
#define FUNCTIONS(f)                                                                               \
	f(Init) f(Finalize) f(Put) f(Commit) f(Fence_nb) f(Get) f(Register_event_handler)          \
		f(Error_string)

static struct {
#define MEMBER(name) __typeof__(PMIx_##name) *name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

static const struct {
	const char *name;
	void *pointer;
} functions[] = {
#define ROW(name) {"PMIx_" #name, &lib.name},
	FUNCTIONS(ROW)
#undef ROW
};

static pmix_proc_t self;

/* Main and these threads share what follows, under lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered;

/* The request in progress. Its answer carries its number, so that a late answer to an earlier
 * request is recognised. */
static struct {
	uintptr_t number;
	int done;
	pmix_status_t status;
	pmix_data_type_t type; /* of the value; PMIX_UNDEF: none */
	uint64_t integer;
	size_t size;
	char bytes[KD_BOOT_VALUE_BYTES];
} request;

/* The first event that says that the job cannot go on; 0: none. */
static pmix_status_t bad_news;
static pmix_rank_t bad_rank;
static int stopping;

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
	kd_error("PMIx: %s: %s (%d)", what, lib.Error_string(status), status);
	return lost_connection(status) ? -ECONNRESET : -EREMOTEIO;
}

static int tell_bad_news(void)
{
	if (lost_connection(bad_news))
		kd_error("PMIx: the launcher is gone");
	else if (bad_rank <= PMIX_RANK_VALID)
		kd_error("PMIx: rank %u has ended before the job did: %s", (unsigned)bad_rank,
			 lib.Error_string(bad_news));
	else
		kd_error("PMIx: a process has ended before the job did: %s",
			 lib.Error_string(bad_news));
	return lost_connection(bad_news) ? -ECONNRESET : -ECONNABORTED;
}

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
		     size_t n, pmix_info_t results[], size_t n_results,
		     pmix_event_notification_cbfunc_fn_t then, void *then_data)
{
	const pmix_proc_t *whom = source;

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
	if (!bad_news && !stopping &&
	    (lost_connection(status) || !whom ||
	     !strncmp(whom->nspace, self.nspace, sizeof(self.nspace)))) {
		bad_news = status;
		bad_rank = whom ? whom->rank : PMIX_RANK_UNDEF;
		eventfd_write(kd_boot.fd, 1);
		pthread_cond_signal(&answered);
	}
	pthread_mutex_unlock(&lock);
	if (then)
		then(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, then_data);
}

static void *begin_request(void)
{
	uintptr_t number;

	pthread_mutex_lock(&lock);
	number = ++request.number;
	request.done = 0;
	request.type = PMIX_UNDEF;
	pthread_mutex_unlock(&lock);
	return (void *)number;
}

static void copy_value(const pmix_value_t *value)
{
	request.type = value->type;
	switch (value->type) {
	case PMIX_BYTE_OBJECT:
		request.size = value->data.bo.size;
		if (request.size <= sizeof(request.bytes) && request.size)
			memcpy(request.bytes, value->data.bo.bytes, request.size);
		break;
	case PMIX_UINT16:
		request.integer = value->data.uint16;
		break;
	case PMIX_UINT32:
		request.integer = value->data.uint32;
		break;
	case PMIX_UINT64:
		request.integer = value->data.uint64;
		break;
	case PMIX_PROC_RANK:
		request.integer = value->data.rank;
		break;
	default:
		request.type = PMIX_UNDEF;
	}
}

static void answer(uintptr_t number, pmix_status_t status, const pmix_value_t *value)
{
	pthread_mutex_lock(&lock);
	if (number == request.number && !request.done) {
		request.done = 1;
		request.status = status;
		if (value)
			copy_value(value);
		pthread_cond_signal(&answered);
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
static int end_request(const char *what, pmix_status_t status, int seconds, pmix_status_t *status_p)
{
	struct timespec deadline;
	int error = 0;

	if (status != PMIX_SUCCESS) { /* or PMIX_OPERATION_SUCCEEDED: then no callback comes */
		*status_p = status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += seconds;
	pthread_mutex_lock(&lock);
	while (!request.done && !bad_news && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&answered, &lock, &deadline);
	error = 0;
	if (request.done) {
		*status_p = request.status;
	} else if (bad_news) {
		error = tell_bad_news();
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
	pmix_status_t status = lib.Get(&q->proc, q->key, &q->info, q->n_infos, &value);

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
static int ask(pmix_rank_t rank, const char *key, int immediate)
{
	struct question *q = calloc(1, sizeof(*q));
	pmix_status_t status;
	int error = -ENOMEM;

	if (q) {
		q->number = (uintptr_t)begin_request();
		q->proc = self;
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
	error = end_request(key, PMIX_SUCCESS, ANSWER_SECONDS, &status);
	if (error || status == PMIX_SUCCESS || status == PMIX_ERR_NOT_FOUND)
		return error;
	return failed(key, status);
}

static int load(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		kd_error("PMIx: a PMIx launcher has started this process, but %s cannot be loaded "
			 "(Debian: libpmix2): %s",
			 LIBRARY, dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *f = dlsym(handle, functions[i].name);

		if (!f) {
			kd_error("PMIx: %s has no %s", LIBRARY, functions[i].name);
			return -ENOSYS;
		}
		memcpy(functions[i].pointer, &f, sizeof(f)); /* C has no cast for this */
	}
	return 0;
}

/*
 * Slurm's server refuses the codes of dead processes (it kills the others by itself, whatever
 * --kill-on-bad-exit says), and the job works without them. So a refusal is not an error, and the
 * loss of the server, which the library itself notices, is registered separately.
 */
static int register_events(pmix_status_t *codes, size_t n)
{
	pmix_status_t status = lib.Register_event_handler(codes, n, NULL, 0, on_event,
							  on_registered, begin_request());

	return end_request("PMIx_Register_event_handler", status, ANSWER_SECONDS, &status);
}

static int introduce(void)
{
	int error = register_events(lost_codes, sizeof(lost_codes) / sizeof(*lost_codes));

	kd_boot.rank = self.rank;
	if (!error)
		error = register_events(bad_codes, sizeof(bad_codes) / sizeof(*bad_codes));
	if (!error)
		error = ask(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, 0);
	if (error)
		return error;
	if (request.type == PMIX_UNDEF || request.integer <= kd_boot.rank ||
	    request.integer > UINT32_MAX) {
		kd_error("PMIx: the launcher does not provide the number of processes");
		return -EPROTO;
	}
	kd_boot.size = (uint32_t)request.integer;

	error = ask(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, 1);
	if (error || request.type == PMIX_UNDEF || request.integer < 1 ||
	    request.integer > kd_boot.size)
		return error;
	uint32_t local_size = (uint32_t)request.integer;

	error = ask(self.rank, PMIX_LOCAL_RANK, 1);
	if (error || request.type == PMIX_UNDEF || request.integer >= local_size)
		return error;
	kd_boot.local_size = local_size;
	kd_boot.local_rank = (uint32_t)request.integer;
	return 0;
}

static void close_fd(void)
{
	pthread_mutex_lock(&lock);
	stopping = 1;
	if (kd_boot.fd >= 0)
		close(kd_boot.fd);
	kd_boot.fd = -1;
	pthread_mutex_unlock(&lock);
}

static int start(void)
{
	pthread_condattr_t attr;
	pmix_status_t status;
	int error = load();

	if (error)
		return error;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&answered, &attr);
	pthread_condattr_destroy(&attr);

	kd_boot.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (kd_boot.fd < 0) {
		error = -errno;
		kd_error("PMIx: eventfd: %s", kd_errno_text(-error));
		return error;
	}
	status = lib.Init(&self, NULL, 0);
	if (status != PMIX_SUCCESS) {
		failed("PMIX_NAMESPACE is in the environment, but PMIx_Init finds no launcher",
		       status);
		close_fd();
		return -ECONNREFUSED;
	}
	error = introduce();
	if (error) /* without PMIx_Finalize, so that the launcher sees the failure */
		close_fd();
	return error;
}

static int put(const char *name, const void *value, size_t size)
{
	char key[KEY_BYTES];
	pmix_value_t v;
	pmix_status_t status;

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
	status = lib.Put(PMIX_GLOBAL, key, &v);
	return status == PMIX_SUCCESS ? 0 : failed("PMIx_Put", status);
}

static int fence(int share)
{
	pmix_info_t info;
	pmix_status_t status = lib.Commit();
	void *number;
	int error;

	(void)share;
	if (status != PMIX_SUCCESS)
		return failed("PMIx_Commit", status);
	/* Always: otherwise each get is a request to another host, and a get of a missing value
	 * waits. */
	set_flag(&info, PMIX_COLLECT_DATA);
	number = begin_request();
	status = lib.Fence_nb(NULL, 0, &info, 1, on_done, number);
	error = end_request("PMIx_Fence", status, FENCE_SECONDS, &status);
	if (error || status == PMIX_SUCCESS)
		return error;
	if (status != PMIX_ERR_PARTIAL_SUCCESS)
		return failed("PMIx_Fence", status);
	kd_error("PMIx: a process has ended before the job did");
	return -ECONNABORTED;
}

static int get(uint32_t rank, const char *name, void *value, size_t *size_p)
{
	char key[KEY_BYTES];
	int error;

	if (snprintf(key, sizeof(key), "kdds-%s", name) >= (int)sizeof(key))
		return -ENOENT;
	error = ask(rank, key, 1);
	if (error)
		return error;
	if (request.type != PMIX_BYTE_OBJECT)
		return -ENOENT;
	if (request.size > *size_p || request.size > sizeof(request.bytes))
		return -EMSGSIZE;
	memcpy(value, request.bytes, request.size);
	*size_p = request.size;
	return 0;
}

static int event(void)
{
	int error;

	pthread_mutex_lock(&lock);
	error = bad_news ? tell_bad_news() : 0;
	pthread_mutex_unlock(&lock);
	return error;
}

static void stop(void)
{
	pmix_status_t status;

	close_fd();
	status = lib.Finalize(NULL, 0);
	if (status != PMIX_SUCCESS)
		failed("PMIx_Finalize", status);
}

#else

#include <errno.h>

#include "base/log.h"

static int start(void)
{
	kd_error("PMIx: a PMIx launcher has started this process, but libkdds was built without "
		 "PMIx (Debian: libpmix-dev)");
	return -ENOSYS;
}

/* Not reached: start has failed. */
static int put(const char *name, const void *value, size_t size)
{
	(void)name;
	(void)value;
	(void)size;
	return -ENOSYS;
}

static int fence(int share)
{
	(void)share;
	return -ENOSYS;
}

static int get(uint32_t rank, const char *name, void *value, size_t *size_p)
{
	(void)rank;
	(void)name;
	(void)value;
	(void)size_p;
	return -ENOSYS;
}

static int event(void)
{
	return -ENOSYS;
}

static void stop(void)
{
}

#endif

const struct kd_boot_launcher kd_boot_pmix = {"PMIx", present, start, put, fence, get, event, stop};
