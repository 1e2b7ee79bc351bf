dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_PMIX: the header of PMIx, whose library is loaded at run time. Optional: without it,
dnl a process started by mpirun or by srun --mpi=pmix prints an error and exits. Sets PMIX_CFLAGS,
dnl with -DKDDS_HAVE_PMIX=1.
AC_DEFUN([KDDS_CHECK_PMIX], [
	PKG_CHECK_MODULES([PMIX], [pmix >= 4.1], [kdds_have_pmix=yes], [kdds_have_pmix=no])
	AS_IF([test $kdds_have_pmix = yes], [
		AC_SEARCH_LIBS([dlopen], [dl], [], [AC_MSG_ERROR([there is no dlopen])])
		PMIX_CFLAGS="$PMIX_CFLAGS -DKDDS_HAVE_PMIX=1"
	])
])
