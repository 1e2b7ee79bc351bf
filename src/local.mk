# SPDX-License-Identifier: BSD-3-Clause
# The objects once, as a convenience library: the unit tests link with it, since libkdds.la hides every kd_ name.
noinst_LTLIBRARIES += src/libkdds_internal.la
src_libkdds_internal_la_SOURCES = \
	src/api.c \
	src/atomic.h \
	src/base.h \
	src/closure.h \
	src/comm.h \
	src/comm_ofi.c \
	src/env.c \
	src/env.h \
	src/idle.c \
	src/idle.h \
	src/index.c \
	src/index.h \
	src/init.c \
	src/log.c \
	src/log.h \
	src/netaddr.c \
	src/netaddr.h \
	src/ofi.c \
	src/ofi.h \
	src/os.c \
	src/os.h \
	src/reduce.c \
	src/reduce.h \
	src/sched.c \
	src/sched.h \
	src/stack.c \
	src/stack.h \
	src/steal.c \
	src/steal.h \
	src/topo.c \
	src/topo.h \
	src/type.c \
	src/worker.c \
	src/worker.h
src_libkdds_internal_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS) $(LIBFABRIC_CFLAGS)
src_libkdds_internal_la_LIBADD = $(HWLOC_LIBS)

lib_LTLIBRARIES += libkdds.la
libkdds_la_SOURCES =
libkdds_la_LIBADD = src/libkdds_internal.la
libkdds_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(KDDS_LIBTOOL_VERSION) -no-undefined \
	-Wl,--version-script=$(srcdir)/src/libkdds.map
EXTRA_libkdds_la_DEPENDENCIES = $(srcdir)/src/libkdds.map
EXTRA_DIST += src/libkdds.map
