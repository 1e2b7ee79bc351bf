# SPDX-License-Identifier: BSD-3-Clause
#
# A unit test is tests/check_<object>.c. To add one, under HAVE_CHECK:
#
#   unit_tests += tests/check_stack
#   tests_check_stack_CPPFLAGS = $(UNIT_CPPFLAGS)
#   tests_check_stack_LDADD = $(UNIT_LIBS)
#
# A script (77: skip) or a program that needs no Check goes to TESTS (and check_PROGRAMS) directly.

UNIT_CPPFLAGS = $(SRC_CPPFLAGS) $(HWLOC_CFLAGS) $(CHECK_CFLAGS)
UNIT_LIBS = src/libkdds_internal.la $(CHECK_LIBS)

unit_tests =
simulated =
if HAVE_CHECK
unit_tests += tests/check_env
tests_check_env_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_env_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_layout
tests_check_layout_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_layout_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_keep
tests_check_keep_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_keep_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_index
tests_check_index_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_index_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_successor
tests_check_successor_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_successor_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_value
tests_check_value_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_value_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_segments
tests_check_segments_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_segments_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_frozen
tests_check_frozen_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_frozen_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_limits
tests_check_limits_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_limits_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_reduce
tests_check_reduce_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_reduce_LDADD = $(UNIT_LIBS) -lm

unit_tests += tests/check_ending
tests_check_ending_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_ending_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_api
tests_check_api_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_api_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_checkpoint
tests_check_checkpoint_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_checkpoint_LDADD = $(UNIT_LIBS)

# It includes peer.c and stands in for what that calls, which the library would bring along.
unit_tests += tests/check_peer
tests_check_peer_SOURCES = tests/check_peer.c src/base/log.c src/base/siphash.c
tests_check_peer_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_peer_LDADD = $(CHECK_LIBS)

# The same of ask.c.
unit_tests += tests/check_ask
tests_check_ask_SOURCES = tests/check_ask.c src/base/log.c
tests_check_ask_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_ask_LDADD = $(CHECK_LIBS)

# The same of spread.c.
unit_tests += tests/check_spread
tests_check_spread_SOURCES = tests/check_spread.c src/base/log.c
tests_check_spread_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_spread_LDADD = $(CHECK_LIBS)

unit_tests += tests/check_cgroup
tests_check_cgroup_SOURCES = tests/check_cgroup.c src/core/cgroup.c
tests_check_cgroup_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_cgroup_LDADD = $(CHECK_LIBS)

unit_tests += tests/check_spare
tests_check_spare_SOURCES = tests/check_spare.c src/remote/spare.c
tests_check_spare_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_spare_LDADD = $(CHECK_LIBS)

# The same of read.c, exposed.c and mac.c.
unit_tests += tests/check_read
tests_check_read_SOURCES = tests/check_read.c src/base/log.c src/remote/balance.c \
	src/remote/exposed.c src/remote/mac.c src/remote/read.c
tests_check_read_CPPFLAGS = $(UNIT_CPPFLAGS) $(LIBCRYPTO_CFLAGS)
tests_check_read_LDADD = $(CHECK_LIBS)
unit_tests += tests/check_retained
tests_check_retained_SOURCES = tests/check_retained.c src/base/extents.c src/base/log.c \
	src/core/segments.c src/core/value.c src/remote/retained.c
tests_check_retained_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_retained_LDADD = $(CHECK_LIBS)
unit_tests += tests/check_balance
tests_check_balance_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_balance_LDADD = $(UNIT_LIBS)
# A whole job in one thread: sim.c stands in for os_thread.c, which the linker then leaves out.
# ThreadSanitizer, which would take minutes, finds nothing in one thread.
SIM = tests/sim/sim.c tests/sim/sim.h tests/sim/sim_boot.c tests/sim/sim_comm.c \
	tests/sim/sim_rank.c tests/sim/sim_rank.h
simulated += tests/check_job
tests_check_job_SOURCES = tests/check_job.c $(SIM)
tests_check_job_CPPFLAGS = $(UNIT_CPPFLAGS) -iquote $(srcdir)/tests
tests_check_job_LDADD = $(UNIT_LIBS)
# Jobs whose ranks die, with the oracle's programs and others.
simulated += tests/check_survive
tests_check_survive_SOURCES = tests/check_survive.c tests/survive_failures.c $(SIM) \
	tests/sim/sim_memory.c tests/sim/sim_memory.h tests/sim/sim_soak.c tests/sim/sim_soak.h
tests_check_survive_CPPFLAGS = $(UNIT_CPPFLAGS) -iquote $(srcdir)/tests
tests_check_survive_LDADD = $(UNIT_LIBS)
tests_check_survive_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc \
	-Wl,--wrap=realloc -Wl,--wrap=aligned_alloc -Wl,--wrap=free
# Jobs whose results stay at other ranks.
simulated += tests/check_elsewhere
tests_check_elsewhere_SOURCES = tests/check_elsewhere.c $(SIM)
tests_check_elsewhere_CPPFLAGS = $(UNIT_CPPFLAGS) -iquote $(srcdir)/tests
tests_check_elsewhere_LDADD = $(UNIT_LIBS)
simulated += tests/check_ahead
tests_check_ahead_SOURCES = tests/check_ahead.c $(SIM)
tests_check_ahead_CPPFLAGS = $(UNIT_CPPFLAGS) -iquote $(srcdir)/tests
tests_check_ahead_LDADD = $(UNIT_LIBS)
simulated += tests/check_rounds
tests_check_rounds_SOURCES = tests/check_rounds.c $(SIM)
tests_check_rounds_CPPFLAGS = $(UNIT_CPPFLAGS) -iquote $(srcdir)/tests
tests_check_rounds_LDADD = $(UNIT_LIBS)

simulated += tests/check_place
tests_check_place_SOURCES = tests/check_place.c $(SIM)
tests_check_place_CPPFLAGS = $(UNIT_CPPFLAGS) -iquote $(srcdir)/tests
tests_check_place_LDADD = $(UNIT_LIBS)
unit_tests += tests/check_handshake
tests_check_handshake_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_handshake_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_outgoing
tests_check_outgoing_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_outgoing_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_extents
tests_check_extents_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_extents_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_copies
tests_check_copies_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_copies_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_given
tests_check_given_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_given_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_weigh
tests_check_weigh_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_weigh_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_module
tests_check_module_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_module_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_ofi
tests_check_ofi_CPPFLAGS = $(UNIT_CPPFLAGS) $(LIBFABRIC_CFLAGS)
tests_check_ofi_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_boot
tests_check_boot_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_boot_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_boot_pmi
tests_check_boot_pmi_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_boot_pmi_LDADD = $(UNIT_LIBS)
endif
EXTRA_DIST += tests/child.h tests/maps.h tests/ranges.h

check_PROGRAMS += $(unit_tests) $(simulated)

test_programs = tests/check_bounds tests/check_comm tests/check_idle
tests_check_bounds_LDADD = libkdds.la
tests_check_comm_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_comm_LDADD = src/libkdds_internal.la
tests_check_idle_LDADD = libkdds.la
check_PROGRAMS += $(test_programs)

# Preloaded by check_nomem.sh. -rpath makes libtool build a shared object of what is not installed.
check_LTLIBRARIES = tests/nomem.la
tests_nomem_la_SOURCES = tests/nomem.c
tests_nomem_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)
tests_nomem_la_LIBADD = -ldl
check_PROGRAMS += tests/nomem_program
tests_nomem_program_LDADD = libkdds.la

# The launcher's readers of what others write, with its own objects.
test_programs += tests/check_control
tests_check_control_SOURCES = tests/check_control.c src/kddsrun/run_hosts.c \
	src/kddsrun/run_loop.c src/kddsrun/run_order.c src/kddsrun/run_say.c
tests_check_control_CPPFLAGS = $(SRC_CPPFLAGS)
tests_check_control_LDADD = src/libkdds_internal.la

# The decoders, fed with damaged input: by a driver of our own here, by libFuzzer with `make fuzz SECONDS=300'.
FUZZ = tests/fuzz/driver.c tests/fuzz/fuzz.h tests/fuzz/log.c tests/fuzz/net.h
# Their stand-ins come before what the library has under the same names.
STAND_IN_FLAGS = $(AM_LDFLAGS) -Wl,-z,muldefs
FUZZ_CPPFLAGS = $(SRC_CPPFLAGS) -iquote $(srcdir)/tests $(HWLOC_CFLAGS)
fuzz_programs =
EXTRA_DIST += tests/fuzz/libfuzzer.c tests/fuzz/run

fuzz_programs += tests/fuzz/control
tests_fuzz_control_SOURCES = tests/fuzz/fuzz_control.c $(FUZZ) src/kddsrun/run_loop.c \
	src/kddsrun/run_order.c src/kddsrun/run_say.c
tests_fuzz_control_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_control_LDADD = src/libkdds_internal.la
tests_fuzz_control_LDFLAGS = $(STAND_IN_FLAGS)

fuzz_programs += tests/fuzz/loop
tests_fuzz_loop_SOURCES = tests/fuzz/fuzz_loop.c $(FUZZ)
tests_fuzz_loop_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_loop_LDADD = src/libkdds_internal.la
tests_fuzz_loop_LDFLAGS = $(STAND_IN_FLAGS)

fuzz_programs += tests/fuzz/incoming
tests_fuzz_incoming_SOURCES = tests/fuzz/fuzz_incoming.c $(FUZZ)
tests_fuzz_incoming_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_incoming_LDADD = src/libkdds_internal.la
tests_fuzz_incoming_LDFLAGS = $(STAND_IN_FLAGS)

fuzz_programs += tests/fuzz/peer
tests_fuzz_peer_SOURCES = tests/fuzz/fuzz_peer.c $(FUZZ)
tests_fuzz_peer_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_peer_LDADD = src/libkdds_internal.la
tests_fuzz_peer_LDFLAGS = $(STAND_IN_FLAGS)

fuzz_programs += tests/fuzz/results
tests_fuzz_results_SOURCES = tests/fuzz/fuzz_results.c $(FUZZ)
tests_fuzz_results_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_results_LDADD = src/libkdds_internal.la
tests_fuzz_results_LDFLAGS = $(STAND_IN_FLAGS)

fuzz_programs += tests/fuzz/rsteal
tests_fuzz_rsteal_SOURCES = tests/fuzz/fuzz_rsteal.c $(FUZZ)
tests_fuzz_rsteal_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_rsteal_LDADD = src/libkdds_internal.la
tests_fuzz_rsteal_LDFLAGS = $(STAND_IN_FLAGS)

fuzz_programs += tests/fuzz/tcp
tests_fuzz_tcp_SOURCES = tests/fuzz/fuzz_tcp.c $(FUZZ)
tests_fuzz_tcp_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_tcp_LDADD = src/libkdds_internal.la
tests_fuzz_tcp_LDFLAGS = $(STAND_IN_FLAGS)

test_programs += $(fuzz_programs)

.PHONY: fuzz
fuzz:
	CPPFLAGS='-I$(abs_builddir) $(HWLOC_CFLAGS) $(LIBFABRIC_CFLAGS) $(LIBCRYPTO_CFLAGS)' \
		LIBS='$(HWLOC_LIBS)' $(srcdir)/tests/fuzz/run $(SECONDS)

# Attacks jobs of tests/oracle.
test_programs += tests/check_strangers
tests_check_strangers_CPPFLAGS = $(SRC_CPPFLAGS)
tests_check_strangers_LDADD = src/libkdds_internal.la

# A rank for the launcher's tests.
check_PROGRAMS += tests/boot_probe
tests_boot_probe_CPPFLAGS = $(SRC_CPPFLAGS)
tests_boot_probe_LDADD = src/libkdds_internal.la

# For the tests of statistics and traces.
check_PROGRAMS += tests/observed
tests_observed_LDADD = libkdds.la

# For check_checker.sh.
check_PROGRAMS += tests/wrong
tests_wrong_LDADD = libkdds.la

check_PROGRAMS += tests/oracle tests/without_membarrier
tests_oracle_LDADD = libkdds.la

# Run under kddsrun, by check_ranks.sh, check_loops.sh, check_calls.sh and check_parts.sh.
check_PROGRAMS += tests/ranks tests/sleepers tests/loops tests/calls tests/parts tests/failures \
	tests/lists tests/flags tests/join tests/leave tests/respawn
tests_ranks_LDADD = libkdds.la
tests_loops_LDADD = libkdds.la
tests_calls_LDADD = libkdds.la
tests_parts_LDADD = libkdds.la
tests_lists_LDADD = libkdds.la
tests_join_LDADD = libkdds.la
tests_respawn_LDADD = libkdds.la
tests_leave_LDADD = libkdds.la
tests_failures_LDADD = libkdds.la
tests_flags_LDADD = libkdds.la
tests_sleepers_LDADD = libkdds.la

# The launchers' back ends alone, run by check_launchers.sh.
check_PROGRAMS += tests/pmi_probe
tests_pmi_probe_CPPFLAGS = $(SRC_CPPFLAGS)
tests_pmi_probe_LDADD = src/libkdds_internal.la
EXTRA_DIST += tests/lab/slurm.sh tests/lab/hosts.sh

# The network of check_network.sh.
check_PROGRAMS += tests/lab/tundelay tests/lab/quiet
tests_lab_quiet_LDADD = libkdds.la

test_scripts = \
	tests/check_bench.sh \
	tests/check_calls.sh \
	tests/check_checker.sh \
	tests/check_cmake.sh \
	tests/check_env_doc.sh \
	tests/check_examples.sh \
	tests/check_exceptions.sh \
	tests/check_failures.sh \
	tests/check_fenced.sh \
	tests/check_files.sh \
	tests/check_flags.sh \
	tests/check_floors.sh \
	tests/check_headers.sh \
	tests/check_hosts.sh \
	tests/check_install.sh \
	tests/check_kill.sh \
	tests/check_join.sh \
	tests/check_launchers.sh \
	tests/check_leave.sh \
	tests/check_machine.sh \
	tests/check_man.sh \
	tests/check_nomem.sh \
	tests/check_loops.sh \
	tests/check_losses.sh \
	tests/check_parts.sh \
	tests/check_respawn.sh \
	tests/check_restart.sh \
	tests/check_states.sh \
	tests/check_stats.sh \
	tests/check_suspect.sh \
	tests/check_trace.sh \
	tests/check_sim.sh \
	tests/check_slurm.sh \
	tests/check_tutorial.sh
# The longest come first, so that others run beside them.
long_scripts = \
	tests/check_network.sh \
	tests/check_ranks.sh \
	tests/check_misuse.sh \
	tests/check_kddsrun.sh \
	tests/check_oracle.sh \
	tests/check_oracle_ranks.sh
TESTS += $(long_scripts) $(unit_tests) $(test_programs) $(test_scripts)
if !TSAN
TESTS += $(simulated)
endif
EXTRA_DIST += $(long_scripts) $(test_scripts)

# For what starts jobs.
LSAN = LSAN_OPTIONS=suppressions=$(abs_srcdir)/tests/lsan.supp:print_suppressions=0
EXTRA_DIST += tests/lsan.supp

# Ranks killed at random, in jobs that survive it: make soak-kill TIMES=1000. In jobs that end:
# make soak-end TIMES=200
TIMES = 200
.PHONY: soak-kill soak-end
soak-kill: all tests/oracle
	$(LSAN) $(SHELL) $(srcdir)/tests/check_losses.sh $(TIMES)
soak-end: tests/oracle kddsrun
	$(LSAN) $(SHELL) $(srcdir)/tests/check_kill.sh $(TIMES)

# Simulated jobs with deaths, one by seed: make soak-sim SEEDS=1000000 FIRST=1. A seed that fails is
# printed; FIRST=SEED SEEDS=1 runs it again. sweep-sim: each rank of each job dies at each event.
SEEDS = 100000
FIRST = 1
.PHONY: soak-sim sweep-sim
soak-sim: tests/check_survive
	tests/check_survive $(FIRST) $(SEEDS)
sweep-sim: tests/check_survive
	tests/check_survive sweep $(FIRST) $(SEEDS)

# Jobs with checkpoints, killed at random and started again: make soak-restart TIMES=100
.PHONY: soak-restart
soak-restart: examples/stencil kddsrun
	$(LSAN) $(SHELL) $(srcdir)/tests/check_restart.sh $(TIMES)

# The oracle for longer: make soak SECONDS=3600
SECONDS = 600
.PHONY: soak
soak: tests/oracle kddsrun
	tests/oracle -s $$(($(SECONDS) / 2))
	$(LSAN) ORACLE_SECONDS=$$(($(SECONDS) / 2)) $(SHELL) $(srcdir)/tests/check_oracle_ranks.sh

# Several hosts over a bad network: make soak-network SECONDS=3600
.PHONY: soak-network
soak-network: all tests/oracle tests/ranks tests/lab/tundelay tests/lab/quiet
	$(LSAN) NETWORK_SECONDS=$(SECONDS) $(SHELL) $(srcdir)/tests/check_network.sh

# Seconds each test may take, on a busy machine and under sanitizers, and each case of a unit test
# that sets no limit of its own.
TEST_TIMEOUT = 600
CASE_TIMEOUT = 120
TEST_EXTENSIONS = .sh
LOG_COMPILER = timeout
AM_LOG_FLAGS = --foreground -k 10 $(TEST_TIMEOUT)
SH_LOG_COMPILER = timeout
AM_SH_LOG_FLAGS = --foreground -k 10 $(TEST_TIMEOUT) env $(LSAN) $(SHELL)

AM_TESTS_ENVIRONMENT = \
	srcdir='$(srcdir)'; export srcdir; \
	CC='$(CC)'; export CC; \
	CXX='$(CXX)'; export CXX; \
	MAKE='$(MAKE)'; export MAKE; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; \
	SANITIZE='$(SANITIZE)'; export SANITIZE; \
	CK_DEFAULT_TIMEOUT=$(CASE_TIMEOUT); export CK_DEFAULT_TIMEOUT; \
	bindir='$(bindir)'; export bindir; \
	libdir='$(libdir)'; export libdir; \
	mandir='$(mandir)'; export mandir; \
	includedir='$(includedir)'; export includedir; \
	pkgconfigdir='$(pkgconfigdir)'; export pkgconfigdir;
