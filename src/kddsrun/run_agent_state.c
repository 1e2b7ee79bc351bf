/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_agent_state.h"

struct run_agent agent;

struct run_rank *run_agent_local(uint32_t rank)
{
	if (!agent.ranks)
		return NULL;
	if (!agent.job.idle)
		return rank - agent.job.first < agent.job.ranks ?
			       &agent.ranks[rank - agent.job.first] : NULL;
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].rank == rank)
			return &agent.ranks[i];
	return NULL;
}

void run_agent_send_exit(uint32_t rank, int status)
{
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, (uint32_t)status, 4);
	run_link_send(&agent.up, KD_CONTROL_EXIT, rank, payload, sizeof(payload));
}

void run_agent_send_text(uint16_t type, uint32_t rank, const char *text)
{
	uint8_t payload[5000];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_string(&p, text);
	run_link_send(&agent.up, type, rank, payload, (size_t)(p.at - payload));
}
