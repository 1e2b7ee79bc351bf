dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_SPIN: the model checker, for `make check-models'. Optional. Sets SPIN and the
dnl conditional HAVE_SPIN.
AC_DEFUN([KDDS_CHECK_SPIN], [
	AC_ARG_VAR([SPIN], [the model checker])
	AC_CHECK_PROGS([SPIN], [spin])
	AM_CONDITIONAL([HAVE_SPIN], [test -n "$SPIN"])
])
