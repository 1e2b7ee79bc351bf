/* SPDX-License-Identifier: BSD-3-Clause */
/* What kddsrun and its agents agree on: version, sizes, times. */
#ifndef KD_RUN_AGENT_LIMITS_H
#define KD_RUN_AGENT_LIMITS_H

#include "kdds.h"

#define RUN_TEXT(x) RUN_TEXT_OF(x)
#define RUN_TEXT_OF(x) #x
#define RUN_VERSION \
	RUN_TEXT(KDDS_VERSION_MAJOR) "." RUN_TEXT(KDDS_VERSION_MINOR) \
	"." RUN_TEXT(KDDS_VERSION_PATCH)

/* Between kddsrun and agents: the longest frame, and the most bytes of standard input or output
 * in flight. */
#define RUN_AGENT_FRAME_BYTES (16u << 20)
#define RUN_AGENT_WINDOW_BYTES (256u << 10)
#define RUN_AGENT_CHUNK_BYTES (32u << 10)

/* Between asking ranks to end (SIGTERM) and killing them. */
#define RUN_AGENT_GRACE_NS 1000000000u

#endif
