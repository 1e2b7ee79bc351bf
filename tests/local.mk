# SPDX-License-Identifier: BSD-3-Clause
#
# A unit test is tests/check_<object>.c. To add one, under HAVE_CHECK:
#
#   unit_tests += tests/check_stack
#   tests_check_stack_CPPFLAGS = $(UNIT_CPPFLAGS)
#   tests_check_stack_LDADD = $(UNIT_LIBS)
#
# -iquote: src/sched.h is not to stand in the way of the system's <sched.h>.
#
# A script (77: skip) or a program that needs no Check goes to TESTS (and check_PROGRAMS) directly.

UNIT_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(srcdir)/src $(HWLOC_CFLAGS) $(CHECK_CFLAGS)
UNIT_LIBS = src/libkdds_internal.la $(CHECK_LIBS)

unit_tests =
if HAVE_CHECK
unit_tests += tests/check_env
tests_check_env_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_env_LDADD = $(UNIT_LIBS)

unit_tests += tests/check_layout
tests_check_layout_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_check_layout_LDADD = $(UNIT_LIBS)
endif
EXTRA_DIST += tests/child.h

check_PROGRAMS += $(unit_tests)

test_scripts = \
	tests/check_env_doc.sh \
	tests/check_examples.sh \
	tests/check_headers.sh \
	tests/check_install.sh \
	tests/check_misuse.sh
TESTS += $(unit_tests) $(test_scripts)
EXTRA_DIST += $(test_scripts)

# Seconds each test may take.
TEST_TIMEOUT = 300
TEST_EXTENSIONS = .sh
LOG_COMPILER = timeout
AM_LOG_FLAGS = --foreground -k 10 $(TEST_TIMEOUT)
SH_LOG_COMPILER = timeout
AM_SH_LOG_FLAGS = --foreground -k 10 $(TEST_TIMEOUT) $(SHELL)

AM_TESTS_ENVIRONMENT = \
	srcdir='$(srcdir)'; export srcdir; \
	CC='$(CC)'; export CC; \
	CXX='$(CXX)'; export CXX; \
	MAKE='$(MAKE)'; export MAKE; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; \
	SANITIZE='$(SANITIZE)'; export SANITIZE; \
	libdir='$(libdir)'; export libdir; \
	includedir='$(includedir)'; export includedir; \
	pkgconfigdir='$(pkgconfigdir)'; export pkgconfigdir;
