dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_CHECK: the unit test framework. Optional: without it the unit tests are not built.
dnl Sets CHECK_CFLAGS, CHECK_LIBS and the conditional HAVE_CHECK.
AC_DEFUN([KDDS_CHECK_CHECK], [
	PKG_CHECK_MODULES([CHECK], [check >= 0.12], [kdds_have_check=yes], [kdds_have_check=no])
	AM_CONDITIONAL([HAVE_CHECK], [test $kdds_have_check = yes])
])
