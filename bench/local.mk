# SPDX-License-Identifier: BSD-3-Clause
EXTRA_PROGRAMS += bench/workloads
bench_workloads_SOURCES = bench/workloads.c
bench_workloads_LDADD = libkdds.la
EXTRA_PROGRAMS += bench/comm
bench_comm_SOURCES = bench/comm.c
bench_comm_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(srcdir)/src $(LIBFABRIC_CFLAGS)
bench_comm_LDADD = src/libkdds_internal.la $(LIBFABRIC_LIBS)
EXTRA_DIST += bench/run
CLEANFILES += bench/workloads bench/comm

ROUNDS = 5
WORKERS = 2

# The table of doc/performance.md; bench-quick is the sanity check of continuous integration.
.PHONY: bench bench-quick
bench: all bench/workloads
	$(srcdir)/bench/run . $(ROUNDS) $(WORKERS)
bench-quick: all bench/workloads
	$(srcdir)/bench/run . 1 2
