dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_DOXYGEN: Doxygen, for `make doc'. Optional. Sets DOXYGEN and the conditional
dnl HAVE_DOXYGEN.
AC_DEFUN([KDDS_CHECK_DOXYGEN], [
	AC_ARG_VAR([DOXYGEN], [the documentation generator])
	AC_CHECK_PROGS([DOXYGEN], [doxygen])
	AM_CONDITIONAL([HAVE_DOXYGEN], [test -n "$DOXYGEN"])
])
