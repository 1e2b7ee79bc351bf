/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_agent_io.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_agent_state.h"

#define LAST_CHUNKS 64        /* more than a full pipe */

/* Output. kddsrun grants a window of bytes and extends it as it writes them out. */

static uint32_t window = RUN_AGENT_WINDOW_BYTES;

static void outlet_close(struct run_outlet *o)
{
	if (o->watch.fd < 0)
		return;
	run_watch_remove(&o->watch);
	close(o->watch.fd);
	o->watch.fd = -1;
}

/* Returns the bytes read; 0: none now, or the outlet is closed. */
static size_t outlet_take(struct run_outlet *o)
{
	static uint8_t block[1 + RUN_AGENT_CHUNK_BYTES];
	ssize_t n = o->watch.fd < 0 ?
			    -1 :
			    read(o->watch.fd, block + 1, kd_min(RUN_AGENT_CHUNK_BYTES, window));

	if (o->watch.fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	n = kd_max(n, 0);
	block[0] = (uint8_t)o->stream;
	run_link_send(&agent.up, KD_CONTROL_OUTPUT, o->rank, block, 1 + (size_t)n);
	if (!n)
		outlet_close(o);
	return (size_t)n;
}

static void outlets_watch(void)
{
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		for (int j = 0; j < 2; j++)
			agent.ranks[i].outlets[j].watch.events = window ? POLLIN : 0;
}

void run_outlet_ready(struct run_watch *watch, short events)
{
	(void)events;
	if (!window)
		return;
	window -= (uint32_t)outlet_take(container_of(watch, struct run_outlet, watch));
	if (!window)
		outlets_watch();
}

void run_outlets_grant(uint32_t bytes)
{
	window += bytes;
	outlets_watch();
}

void run_outlet_finish(struct run_outlet *o)
{
	window = RUN_AGENT_WINDOW_BYTES;
	for (int n = 0; n < LAST_CHUNKS && outlet_take(o); n++)
		;
	if (o->watch.fd >= 0) { /* a process that the rank has started holds the pipe */
		const uint8_t end = (uint8_t)o->stream;

		run_link_send(&agent.up, KD_CONTROL_OUTPUT, o->rank, &end, 1);
	}
	outlet_close(o);
}

void run_outlets_finish(struct run_rank *r)
{
	uint32_t granted = window;

	for (int i = 0; i < 2; i++)
		run_outlet_finish(&r->outlets[i]);
	window = granted; /* what was left in two pipes does not count */
}

/* Standard input of rank 0. */

static void inlet_ready(struct run_watch *watch, short events);

/* the pipe to rank 0's stdin, if rank 0 is on this host */
static struct run_watch inlet = {-1, 0, 0, inlet_ready};
static struct run_bytes input;
static int input_ended;

static void inlet_push(void)
{
	uint8_t taken[4];
	struct kd_pack p = {taken, taken + sizeof(taken), 0};
	ssize_t n = input.size && inlet.fd >= 0 ?
			    write(inlet.fd, input.data + input.head, input.size) :
			    0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = 0;
	else if (n < 0)
		n = (ssize_t)input.size; /* the reader is gone */
	if (inlet.fd < 0)
		n = (ssize_t)input.size;
	if (n) {
		run_bytes_drop(&input, (size_t)n);
		kd_pack_uint(&p, (uint64_t)n, 4);
		run_link_send(&agent.up, KD_CONTROL_INPUT_TAKEN, 0, taken, sizeof(taken));
	}
	inlet.events = input.size ? POLLOUT : 0;
	if (input_ended && !input.size && inlet.fd >= 0) {
		run_watch_remove(&inlet);
		close(inlet.fd);
		inlet.fd = -1;
	}
}

static void inlet_ready(struct run_watch *watch, short events)
{
	(void)watch;
	(void)events;
	inlet_push();
}

void run_inlet_open(int fd)
{
	inlet.fd = fd;
	run_watch_add(&inlet);
}

int run_inlet_handle(struct kd_unpack *u)
{
	size_t size = (size_t)(u->end - u->at);

	if (!run_agent_local(0) || size > RUN_AGENT_WINDOW_BYTES - input.size)
		return -1;
	input_ended |= !size;
	run_bytes_add(&input, u->at, size);
	inlet_push();
	return 0;
}
