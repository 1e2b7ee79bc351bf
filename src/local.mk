# SPDX-License-Identifier: BSD-3-Clause
# The objects once, as a convenience library: the unit tests link with it, since libkdds.la hides every kd_ name.
noinst_LTLIBRARIES += src/libkdds_internal.la
src_libkdds_internal_la_SOURCES = \
	src/api.c \
	src/atomic.h \
	src/base.h \
	src/bell.c \
	src/bell.h \
	src/boot.c \
	src/boot.h \
	src/boot_kddsrun.c \
	src/boot_launcher.h \
	src/boot_pmi.c \
	src/boot_pmi.h \
	src/boot_pmix.c \
	src/clock.c \
	src/clock.h \
	src/closure.h \
	src/comm.c \
	src/comm.h \
	src/comm_engine.h \
	src/comm_loop.c \
	src/comm_ofi.c \
	src/comm_tcp.c \
	src/contents.c \
	src/contents.h \
	src/control.c \
	src/control.h \
	src/counts.h \
	src/dot.c \
	src/dot.h \
	src/endpoint.c \
	src/endpoint.h \
	src/env.c \
	src/env.h \
	src/export.c \
	src/export.h \
	src/exposed.c \
	src/exposed.h \
	src/files.c \
	src/files.h \
	src/gdata.c \
	src/gdata.h \
	src/handshake.c \
	src/handshake.h \
	src/hooks.h \
	src/idle.c \
	src/idle.h \
	src/image.c \
	src/image.h \
	src/import.c \
	src/import.h \
	src/index.c \
	src/index.h \
	src/init.c \
	src/job.c \
	src/job.h \
	src/keep.c \
	src/keep.h \
	src/link.c \
	src/link.h \
	src/log.c \
	src/log.h \
	src/mac.c \
	src/mac.h \
	src/net.c \
	src/net.h \
	src/observe.c \
	src/observe.h \
	src/netaddr.c \
	src/netaddr.h \
	src/ofi.c \
	src/ofi.h \
	src/os.c \
	src/os.h \
	src/package.c \
	src/package.h \
	src/peer.c \
	src/peer.h \
	src/pool.c \
	src/pool.h \
	src/progress.c \
	src/progress.h \
	src/published.c \
	src/published.h \
	src/reading.c \
	src/reading.h \
	src/reduce.c \
	src/reduce.h \
	src/region.c \
	src/region.h \
	src/remote.h \
	src/rest.c \
	src/rest.h \
	src/rsteal.c \
	src/rsteal.h \
	src/sched.c \
	src/sched.h \
	src/siphash.c \
	src/siphash.h \
	src/span.c \
	src/span.h \
	src/stack.c \
	src/stack.h \
	src/steal.c \
	src/steal.h \
	src/stats.c \
	src/stats.h \
	src/stream.c \
	src/stream.h \
	src/table.c \
	src/table.h \
	src/tasks.c \
	src/tasks.h \
	src/topo.c \
	src/topo.h \
	src/trace.c \
	src/trace.h \
	src/type.c \
	src/type.h \
	src/value.c \
	src/value.h \
	src/watch.h \
	src/watched.c \
	src/watched.h \
	src/wire.h \
	src/worker.c \
	src/worker.h
src_libkdds_internal_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS) $(LIBCRYPTO_CFLAGS) \
	$(LIBFABRIC_CFLAGS) $(PMIX_CFLAGS)
src_libkdds_internal_la_LIBADD = $(HWLOC_LIBS)

lib_LTLIBRARIES += libkdds.la
libkdds_la_SOURCES =
libkdds_la_LIBADD = src/libkdds_internal.la
libkdds_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(KDDS_LIBTOOL_VERSION) -no-undefined \
	-Wl,--version-script=$(srcdir)/src/libkdds.map
EXTRA_libkdds_la_DEPENDENCIES = $(srcdir)/src/libkdds.map
EXTRA_DIST += src/libkdds.map

# The launcher shares control.c and topo.c with the library, not its interface: it needs no libkdds.so to run.
bin_PROGRAMS += kddsrun
kddsrun_SOURCES = \
	src/kddsrun.c \
	src/run_agent.c \
	src/run_agent.h \
	src/run_host.c \
	src/run_host.h \
	src/run_hosts.c \
	src/run_hosts.h \
	src/run_job.c \
	src/run_job.h \
	src/run_link.c \
	src/run_link.h \
	src/run_loop.c \
	src/run_loop.h \
	src/run_options.h \
	src/run_order.c \
	src/run_order.h \
	src/run_out.c \
	src/run_out.h \
	src/run_rank.c \
	src/run_rank.h \
	src/run_say.c \
	src/run_say.h \
	src/run_tree.c \
	src/run_tree.h
kddsrun_LDADD = src/libkdds_internal.la

bin_PROGRAMS += kdds-trace
kdds_trace_SOURCES = \
	src/kdds_trace.c \
	src/trace_file.c \
	src/trace_file.h \
	src/trace_svg.c \
	src/trace_svg.h

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = tools/completion/kddsrun
