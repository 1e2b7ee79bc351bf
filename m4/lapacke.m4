dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_LAPACKE: BLAS and LAPACK for C, for the linear algebra examples. Optional. Sets
dnl LAPACKE_CFLAGS, LAPACKE_LIBS, the conditional HAVE_LAPACKE, and the macro HAVE_LAPACKE in
dnl config.h, which is 0 or 1.
AC_DEFUN([KDDS_CHECK_LAPACKE], [
	PKG_CHECK_MODULES([LAPACKE], [openblas lapacke],
		[kdds_have_lapacke=yes], [kdds_have_lapacke=no])
	AM_CONDITIONAL([HAVE_LAPACKE], [test $kdds_have_lapacke = yes])
	AC_DEFINE_UNQUOTED([HAVE_LAPACKE], [`test $kdds_have_lapacke != yes; echo $?`],
		[BLAS and LAPACK for C were found])
])
