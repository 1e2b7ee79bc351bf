/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_state.h"

struct run_job job;
