# SPDX-License-Identifier: BSD-3-Clause
#
# kdds-bench is built and installed with the library.
#
#   make bench ROUNDS=5 WORKERS=2 RANKS="2 4"
#
# prints the table of doc/performance.md and leaves it, the measurements and the plots in bench/results.

noinst_LIBRARIES += bench/libbench.a
bench_libbench_a_SOURCES = bench/main.c bench/problems.c bench/uts.c bench/bench.h
bench_libbench_a_CPPFLAGS = $(AM_CPPFLAGS) $(LAPACKE_CFLAGS)
BENCH_LIBS = bench/libbench.a $(LAPACKE_LIBS) -lm

bin_PROGRAMS += bench/kdds-bench
bench_kdds_bench_SOURCES = bench/kdds.c
bench_kdds_bench_LDADD = $(BENCH_LIBS) libkdds.la

bench_programs = bench/kdds-bench

CLEANFILES += $(bench_programs)
EXTRA_DIST += bench/run bench/medians.awk bench/table.awk bench/plot.awk

ROUNDS = 5
WORKERS = 2
RANKS =
BENCH_RUN = $(SHELL) $(srcdir)/bench/run -r "$(ROUNDS)" -w "$(WORKERS)" -n "$(RANKS)" -o bench/results

.PHONY: bench bench-quick
bench: all $(bench_programs)
	$(BENCH_RUN) $(bench_programs)
# Whether all of them work: sizes for that, and not for figures. For continuous integration.
bench-quick: all $(bench_programs)
	$(BENCH_RUN) -q $(bench_programs)

clean-local: clean-bench
.PHONY: clean-bench
clean-bench:
	rm -rf bench/results
