dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_SPIN: the model checker of `make check-models'; optional. Sets SPIN and the conditional HAVE_SPIN.
AC_DEFUN([KDDS_CHECK_SPIN], [
	AC_ARG_VAR([SPIN], [the model checker])
	AC_CHECK_PROGS([SPIN], [spin])
	AM_CONDITIONAL([HAVE_SPIN], [test -n "$SPIN"])
])
