# SPDX-License-Identifier: BSD-3-Clause
#
# kdds-bench is built and installed with the library. `make bench' and `make bench-quick' build the
# other programs, one for each library that configure has found. Shared code is compiled once:
# bench.h says why.
#
#   make bench ROUNDS=5 WORKERS=2 RANKS="2 4"
#
# prints the table of doc/performance.md, and writes it, the measurements and the plots to
# bench/results.

noinst_LIBRARIES += bench/libbench.a
bench_libbench_a_SOURCES = bench/main.c bench/problems.c bench/loops.c bench/uts.c \
	bench/bench.h
bench_libbench_a_CPPFLAGS = $(AM_CPPFLAGS) $(LAPACKE_CFLAGS)
# The same in all programs: the loop of grain is 10 % slower elsewhere in its cache lines.
bench_libbench_a_CFLAGS = $(AM_CFLAGS) -falign-functions=64
BENCH_LIBS = bench/libbench.a $(LAPACKE_LIBS) -lm

bin_PROGRAMS += bench/kdds-bench
bench_kdds_bench_SOURCES = bench/kdds.c
bench_kdds_bench_LDADD = $(BENCH_LIBS) libkdds.la

# narrow with threads alone, for comparison.
EXTRA_PROGRAMS += bench/bench-threads
bench_bench_threads_SOURCES = bench/threads.c
bench_bench_threads_LDADD = $(BENCH_LIBS)

bench_programs = bench/kdds-bench bench/bench-threads
bench_missing =
EXTRA_DIST += bench/openmp.c bench/tbb.cc bench/starpu.c

# Built with other compilers than the rest, so neither with automake's rules nor with its CFLAGS.
PEER_CFLAGS = -O3 -g
OPENMP_COMPILE = $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(PEER_CFLAGS) -std=gnu11 -Wall -Wextra \
	-Wundef $(WERROR_CFLAGS) -fopenmp
if HAVE_GOMP
bench_programs += bench/bench-libgomp
else
bench_missing += -m 'libgomp (package gcc)'
endif
bench/bench-libgomp: $(srcdir)/bench/openmp.c $(srcdir)/bench/bench.h bench/libbench.a
	$(AM_V_CC)$(GOMP_CC) $(OPENMP_COMPILE) -o $@ $(srcdir)/bench/openmp.c $(LDFLAGS) \
		$(BENCH_LIBS)
if HAVE_LOMP
bench_programs += bench/bench-libomp
else
bench_missing += -m 'libomp (packages clang-19, libomp-19-dev)'
endif
bench/bench-libomp: $(srcdir)/bench/openmp.c $(srcdir)/bench/bench.h bench/libbench.a
	$(AM_V_CC)$(LOMP_CC) $(OPENMP_COMPILE) -o $@ $(srcdir)/bench/openmp.c $(LDFLAGS) \
		$(BENCH_LIBS)

if HAVE_TBB
EXTRA_PROGRAMS += bench/bench-tbb
bench_programs += bench/bench-tbb
else
bench_missing += -m 'oneTBB (package libtbb-dev)'
endif
bench_bench_tbb_SOURCES = bench/tbb.cc
bench_bench_tbb_CXXFLAGS = -std=c++17 -Wall -Wextra -Wundef $(WERROR_CFLAGS) -pthread $(TBB_CFLAGS)
bench_bench_tbb_LDADD = $(BENCH_LIBS) $(TBB_LIBS)

if HAVE_STARPU
EXTRA_PROGRAMS += bench/bench-starpu
bench_programs += bench/bench-starpu
else
bench_missing += -m 'StarPU (package libstarpu-dev)'
endif
bench_bench_starpu_SOURCES = bench/starpu.c
bench_bench_starpu_CFLAGS = $(AM_CFLAGS) $(STARPU_CFLAGS)
bench_bench_starpu_LDADD = $(BENCH_LIBS) $(STARPU_LIBS)

CLEANFILES += $(bench_programs)
EXTRA_DIST += bench/run bench/medians.awk bench/table.awk bench/plot.awk

# Costs of the network: bench/comm measures comm.h and the provider itself, bench/remote a steal
# between two ranks.
EXTRA_PROGRAMS += bench/comm bench/remote
bench_comm_SOURCES = bench/comm.c
bench_comm_CPPFLAGS = $(SRC_CPPFLAGS) $(LIBFABRIC_CFLAGS)
bench_comm_LDADD = src/libkdds_internal.la $(LIBFABRIC_LIBS)
bench_remote_CPPFLAGS = $(SRC_CPPFLAGS)
bench_remote_LDADD = src/libkdds_internal.la
CLEANFILES += bench/comm bench/remote

# An upper bound on what a second core can gain with empty tasks (doc/design.md, "When not to").
EXTRA_PROGRAMS += bench/handoff
CLEANFILES += bench/handoff

# How long a worker without work waits until another one, which calls bodies, pushes closures.
EXTRA_PROGRAMS += bench/hungry
bench_hungry_LDADD = libkdds.la
CLEANFILES += bench/hungry

# A simulation of jobs of many ranks (doc/scaling.md): make sim SIZE=quick. bench/ranks measures
# real ones.
check_PROGRAMS += bench/sim
EXTRA_PROGRAMS += bench/ranks
bench_sim_SOURCES = bench/sim.c bench/sim.h bench/sim_events.c bench/sim_flat.c bench/sim_flat.h \
	bench/sim_graph.c bench/sim_graph.h bench/sim_steal.c bench/sim_tables.h bench/sim_take.c \
	bench/sim_tree.c bench/sim_values.c bench/sim_values.h bench/sim_weigh.c bench/sim_weigh.h
bench_sim_LDADD = -lm
bench_ranks_CPPFLAGS = $(SRC_CPPFLAGS)
bench_ranks_LDADD = src/libkdds_internal.la
CLEANFILES += bench/ranks bench/sim.csv
SIZE = full
.PHONY: sim
sim: bench/sim
	bench/sim -c bench/sim.csv $(SIZE)

ROUNDS = 5
WORKERS = 2
RANKS =
BENCH_RUN = $(SHELL) $(srcdir)/bench/run -r "$(ROUNDS)" -w "$(WORKERS)" -n "$(RANKS)" \
	-o bench/results

# Examples on two ranks beside the same programs of Open MPI: make bench-mpi ROUNDS=5
EXTRA_DIST += bench/mpi-run
EXTRA_PROGRAMS += bench/mpi
bench_mpi_CFLAGS = $(AM_CFLAGS) $(OMPI_CFLAGS)
bench_mpi_LDADD = $(OMPI_LIBS) -lm
CLEANFILES += bench/mpi
MPI_RUN = MPIRUN='$(MPIRUN)' $(SHELL) $(srcdir)/bench/mpi-run
mpi_programs =
if HAVE_OMPI
mpi_programs += bench/mpi
endif
.PHONY: bench-mpi
bench-mpi: all $(mpi_programs)
	$(MPI_RUN) $(ROUNDS)

.PHONY: bench bench-quick
bench: all $(bench_programs)
	$(BENCH_RUN) $(bench_missing) $(bench_programs)
# Checks that all of them work, with tiny sizes. For continuous integration.
bench-quick: all $(bench_programs) $(mpi_programs) bench/remote bench/ranks bench/handoff \
		bench/hungry
	$(BENCH_RUN) -q $(bench_programs)
	[ -z "$(mpi_programs)" ] || $(MPI_RUN) -q

clean-local: clean-bench
.PHONY: clean-bench
clean-bench:
	rm -rf bench/results
