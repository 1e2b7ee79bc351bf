/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a job: a process that is or was one of its ranks. A rank that has died may be started
 * again, as its next incarnation. What can outlive a process is named after the member, never after
 * the rank alone: connections, and copies of its data. The first member of a rank has the rank's
 * number.
 */
#ifndef KD_MEMBER_H
#define KD_MEMBER_H

#include "base/base.h"

#define KD_MEMBER_RANK_BITS 20 /* more ranks than kddsrun starts */
#define KD_INCARNATIONS (1u << (32 - KD_MEMBER_RANK_BITS))

static inline uint32_t kd_member(uint32_t rank, uint32_t incarnation)
{
	return rank | incarnation << KD_MEMBER_RANK_BITS;
}

static inline uint32_t kd_member_rank(uint32_t member)
{
	return member & ((1u << KD_MEMBER_RANK_BITS) - 1);
}

static inline uint32_t kd_member_incarnation(uint32_t member)
{
	return member >> KD_MEMBER_RANK_BITS;
}

#endif
