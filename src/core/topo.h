/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs that this process may use, where workers run, and the NUMA nodes (by hwloc). */
#ifndef KD_TOPO_H
#define KD_TOPO_H

#include "base/base.h"

/* Loads the topology (hwloc's own variables, such as HWLOC_SYNTHETIC, apply). 0 or -errno after an
 * error message. */
int kd_topo_init(void);
void kd_topo_fini(void);

/* CPUs in the affinity mask, or the quota of a control group rounded up if that is less; at least
 * 1. */
int kd_topo_cpus(void);
/* CPUs in the affinity mask, whatever the quota. */
int kd_topo_mask_cpus(void);

/* Bytes of memory of the host, or what its control groups grant the process if that is less. */
uint64_t kd_topo_memory(void);
/* How many of these bytes programs could get now without taking any from others. 0, too, if that is
 * not known, or if the process has a limit of its own (ulimit -v, NUMA nodes). */
uint64_t kd_topo_available(void);

/* A hash of the mask: equal in processes that have the same mask. */
uint64_t kd_topo_mask(void);
/* n processes have this mask, and this one is the i-th: from here on only its share of the CPUs
 * counts. If there are fewer CPUs than processes, it is crowded: it uses one CPU at most and binds
 * to none. */
void kd_topo_divide(int i, int n);
int kd_topo_crowded(void);

/* The place (NUMA node, numbered from 0) of worker i of n, and the number of places. If workers are
 * bound, worker i is bound to the i-th of n shares of the CPUs, which hwloc_distrib spreads over the
 * machine: whole cores where there are enough. */
int kd_topo_place(int worker, int workers);
int kd_topo_places(void);
/* Binds the calling thread as worker i of n. Does nothing if there are more workers than CPUs. */
void kd_topo_bind(int worker, int workers);
/* The calling thread may use all CPUs of the ranks of the job on this host: those of the process,
 * and if kddsrun has divided them, those of the others. Does nothing before kd_topo_init. */
void kd_topo_unbind(void);
/* In kddsrun: what kd_topo_unbind of the processes that it starts is to know. */
#define KD_HOST_CPUS_ENV "KDDS_HOST_CPUS"
void kd_topo_pass_host(void);
/* Binds the calling process to the i-th of n shares of the CPUs. 1: done; 0: there are fewer CPUs
 * than shares, or the system refuses. */
int kd_topo_bind_share(int share, int shares);

#endif
