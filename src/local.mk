# SPDX-License-Identifier: BSD-3-Clause
# Includes name the folder: "core/steal.h". tests/check_floors.sh has the order of the folders.
SRC_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(srcdir)/src

# The objects once, as a convenience library: the unit tests link with it, since libkdds.la hides
# every kd_ name.
noinst_LTLIBRARIES += src/libkdds_internal.la
src_libkdds_internal_la_SOURCES = \
	src/api.c \
	src/base/atomic.h \
	src/base/base.h \
	src/base/clock.c \
	src/base/clock.h \
	src/base/env.c \
	src/base/env.h \
	src/base/extents.c \
	src/base/extents.h \
	src/base/files.c \
	src/base/files.h \
	src/base/log.c \
	src/base/log.h \
	src/base/member.h \
	src/base/os.c \
	src/base/os.h \
	src/base/os_thread.c \
	src/base/siphash.c \
	src/base/siphash.h \
	src/base/slots.c \
	src/base/slots.h \
	src/base/table.c \
	src/base/table.h \
	src/boot/boot.c \
	src/boot/boot.h \
	src/boot/boot_kddsrun.c \
	src/boot/boot_launcher.h \
	src/boot/boot_pmi.c \
	src/boot/boot_pmi.h \
	src/boot/boot_pmix.c \
	src/boot/control.c \
	src/boot/control.h \
	src/boot/pmix_library.c \
	src/boot/pmix_library.h \
	src/boot/published.c \
	src/boot/published.h \
	src/checkpoint.c \
	src/comm/bell.c \
	src/comm/bell.h \
	src/comm/buffers.c \
	src/comm/buffers.h \
	src/comm/comm.c \
	src/comm/comm.h \
	src/comm/comm_engine.h \
	src/comm/comm_loop.c \
	src/comm/comm_ofi.c \
	src/comm/comm_tcp.c \
	src/comm/direct.c \
	src/comm/direct.h \
	src/comm/endpoint.c \
	src/comm/endpoint.h \
	src/comm/gets.c \
	src/comm/gets.h \
	src/comm/handshake.c \
	src/comm/handshake.h \
	src/comm/link.c \
	src/comm/link.h \
	src/comm/netaddr.c \
	src/comm/netaddr.h \
	src/comm/ofi.c \
	src/comm/ofi.h \
	src/comm/region.c \
	src/comm/region.h \
	src/comm/stream.c \
	src/comm/stream.h \
	src/core/ahead.c \
	src/core/ahead.h \
	src/core/cgroup.c \
	src/core/cgroup.h \
	src/core/check.c \
	src/core/check.h \
	src/core/closure.h \
	src/core/counts.h \
	src/core/fail.c \
	src/core/fail.h \
	src/core/flow.c \
	src/core/flow.h \
	src/core/frozen.c \
	src/core/frozen.h \
	src/core/idle.c \
	src/core/idle.h \
	src/core/index.c \
	src/core/index.h \
	src/core/keep.c \
	src/core/keep.h \
	src/core/list.c \
	src/core/list.h \
	src/core/loop.c \
	src/core/looppart.h \
	src/core/module.c \
	src/core/module.h \
	src/core/parts.c \
	src/core/parts.h \
	src/core/place.c \
	src/core/place.h \
	src/core/pool.c \
	src/core/pool.h \
	src/core/ready.c \
	src/core/ready.h \
	src/core/readylist.h \
	src/core/record.h \
	src/core/reduce.c \
	src/core/reduce.h \
	src/core/remote.h \
	src/core/saved.c \
	src/core/saved.h \
	src/core/sched.c \
	src/core/sched.h \
	src/core/search.c \
	src/core/search.h \
	src/core/segments.c \
	src/core/segments.h \
	src/core/stack.c \
	src/core/stack.h \
	src/core/steal.c \
	src/core/steal.h \
	src/core/successor.c \
	src/core/successor.h \
	src/core/topo.c \
	src/core/topo.h \
	src/core/type.c \
	src/core/type.h \
	src/core/value.c \
	src/core/value.h \
	src/core/views.c \
	src/core/views.h \
	src/core/visit.c \
	src/core/visit.h \
	src/core/watch.h \
	src/core/worker.c \
	src/core/worker.h \
	src/ending.c \
	src/ending.h \
	src/init.c \
	src/observe/checker.c \
	src/observe/checker.h \
	src/observe/checker_frame.c \
	src/observe/checker_frame.h \
	src/observe/checker_frozen.c \
	src/observe/checker_frozen.h \
	src/observe/checker_line.c \
	src/observe/checker_line.h \
	src/observe/checker_push.c \
	src/observe/checker_push.h \
	src/observe/checker_reduce.c \
	src/observe/checker_reduce.h \
	src/observe/checker_task.c \
	src/observe/checker_task.h \
	src/observe/checker_value.c \
	src/observe/checker_value.h \
	src/observe/dot.c \
	src/observe/dot.h \
	src/observe/observe.c \
	src/observe/observe.h \
	src/observe/given.c \
	src/observe/given.h \
	src/observe/moves.c \
	src/observe/moves.h \
	src/observe/pieces.c \
	src/observe/pieces.h \
	src/observe/progress.c \
	src/observe/progress.h \
	src/observe/span.c \
	src/observe/span.h \
	src/observe/stats.c \
	src/observe/stats.h \
	src/observe/tasks.c \
	src/observe/tasks.h \
	src/observe/trace.c \
	src/observe/trace.h \
	src/observe/watched.c \
	src/observe/watched.h \
	src/rank.h \
	src/remote/again.c \
	src/remote/again.h \
	src/remote/balance.c \
	src/remote/balance.h \
	src/remote/ask.c \
	src/remote/ask.h \
	src/remote/copies.c \
	src/remote/copies.h \
	src/remote/export.c \
	src/remote/export.h \
	src/remote/exposed.c \
	src/remote/exposed.h \
	src/remote/flags.c \
	src/remote/flags.h \
	src/remote/hooks.h \
	src/remote/import.c \
	src/remote/import.h \
	src/remote/incoming.c \
	src/remote/incoming.h \
	src/remote/job.c \
	src/remote/job.h \
	src/remote/mac.c \
	src/remote/mac.h \
	src/remote/net.c \
	src/remote/net.h \
	src/remote/outgoing.c \
	src/remote/outgoing.h \
	src/remote/peer.c \
	src/remote/peer.h \
	src/remote/piecewise.c \
	src/remote/piecewise.h \
	src/remote/placement.c \
	src/remote/placement.h \
	src/remote/read.c \
	src/remote/read.h \
	src/remote/retained.c \
	src/remote/retained.h \
	src/remote/rsteal.c \
	src/remote/rsteal.h \
	src/remote/depart.c \
	src/remote/depart.h \
	src/remote/spare.c \
	src/remote/spare.h \
	src/remote/spread.c \
	src/remote/spread.h \
	src/remote/survive.c \
	src/remote/survive.h \
	src/remote/suspect.c \
	src/remote/suspect.h \
	src/remote/weigh.c \
	src/remote/weigh.h \
	src/remote/wire.h
src_libkdds_internal_la_CPPFLAGS = $(SRC_CPPFLAGS) $(HWLOC_CFLAGS) $(LIBCRYPTO_CFLAGS) \
	$(LIBFABRIC_CFLAGS) $(PMIX_CFLAGS)
src_libkdds_internal_la_LIBADD = $(HWLOC_LIBS)

lib_LTLIBRARIES += libkdds.la
libkdds_la_SOURCES =
libkdds_la_LIBADD = src/libkdds_internal.la
libkdds_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(KDDS_LIBTOOL_VERSION) -no-undefined \
	-Wl,--version-script=$(srcdir)/src/libkdds.map -Wl,-z,nodelete
EXTRA_libkdds_la_DEPENDENCIES = $(srcdir)/src/libkdds.map
EXTRA_DIST += src/libkdds.map

# The launcher shares control.c and topo.c with the library, not its interface: it needs no
# libkdds.so to run.
bin_PROGRAMS += kddsrun
kddsrun_SOURCES = \
	src/kddsrun/kddsrun.c \
	src/kddsrun/run_agent.c \
	src/kddsrun/run_agent.h \
	src/kddsrun/run_agent_end.c \
	src/kddsrun/run_agent_end.h \
	src/kddsrun/run_agent_io.c \
	src/kddsrun/run_agent_io.h \
	src/kddsrun/run_agent_limits.h \
	src/kddsrun/run_agent_rank.c \
	src/kddsrun/run_agent_rank.h \
	src/kddsrun/run_agent_start.c \
	src/kddsrun/run_agent_start.h \
	src/kddsrun/run_agent_state.c \
	src/kddsrun/run_agent_state.h \
	src/kddsrun/run_host.c \
	src/kddsrun/run_host.h \
	src/kddsrun/run_hosts.c \
	src/kddsrun/run_hosts.h \
	src/kddsrun/run_job.c \
	src/kddsrun/run_job.h \
	src/kddsrun/run_job_end.c \
	src/kddsrun/run_job_end.h \
	src/kddsrun/run_job_fence.c \
	src/kddsrun/run_job_fence.h \
	src/kddsrun/run_job_input.c \
	src/kddsrun/run_job_input.h \
	src/kddsrun/run_job_depart.c \
	src/kddsrun/run_job_depart.h \
	src/kddsrun/run_job_join.c \
	src/kddsrun/run_job_join.h \
	src/kddsrun/run_job_request.c \
	src/kddsrun/run_job_request.h \
	src/kddsrun/run_job_respawn.c \
	src/kddsrun/run_job_respawn.h \
	src/kddsrun/run_job_spare.c \
	src/kddsrun/run_job_spare.h \
	src/kddsrun/run_job_state.c \
	src/kddsrun/run_job_state.h \
	src/kddsrun/run_job_suspect.c \
	src/kddsrun/run_job_suspect.h \
	src/kddsrun/run_link.c \
	src/kddsrun/run_link.h \
	src/kddsrun/run_loop.c \
	src/kddsrun/run_loop.h \
	src/kddsrun/run_options.h \
	src/kddsrun/run_order.c \
	src/kddsrun/run_order.h \
	src/kddsrun/run_out.c \
	src/kddsrun/run_out.h \
	src/kddsrun/run_rank.c \
	src/kddsrun/run_rank.h \
	src/kddsrun/run_restart.c \
	src/kddsrun/run_restart.h \
	src/kddsrun/run_say.c \
	src/kddsrun/run_say.h \
	src/kddsrun/run_tree.c \
	src/kddsrun/run_tree.h \
	src/kddsrun/run_watcher.c \
	src/kddsrun/run_watcher.h
kddsrun_CPPFLAGS = $(SRC_CPPFLAGS)
kddsrun_LDADD = src/libkdds_internal.la

bin_PROGRAMS += kdds-trace
kdds_trace_SOURCES = \
	src/kdds-trace/kdds_trace.c \
	src/kdds-trace/trace_file.c \
	src/kdds-trace/trace_file.h \
	src/kdds-trace/trace_svg.c \
	src/kdds-trace/trace_svg.h
kdds_trace_CPPFLAGS = $(SRC_CPPFLAGS)

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = tools/completion/kddsrun
