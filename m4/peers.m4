dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_PEERS: the libraries that `make bench' compares this one with. Each is optional. Sets
dnl kdds_peers, the list of those found, and
dnl
dnl   GOMP_CC, LOMP_CC            compilers that accept -fopenmp: one for GCC's runtime and one
dnl                               for LLVM's; HAVE_GOMP, HAVE_LOMP
dnl   TBB_CFLAGS, TBB_LIBS        oneTBB; HAVE_TBB
dnl   STARPU_CFLAGS, STARPU_LIBS  StarPU; HAVE_STARPU
dnl   OMPI_CFLAGS, OMPI_LIBS,     Open MPI and the command that starts its programs; HAVE_OMPI
dnl   MPIRUN
AC_DEFUN([KDDS_CHECK_PEERS], [
	kdds_peers=
	KDDS_CHECK_OPENMP([GOMP_CC], [GCC's OpenMP], [defined __clang__], [gcc])
	KDDS_CHECK_OPENMP([LOMP_CC], [LLVM's OpenMP], [!defined __clang__],
		[clang clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 ]dnl
[clang-15 clang-14])
	AM_CONDITIONAL([HAVE_GOMP], [test -n "$GOMP_CC"])
	AM_CONDITIONAL([HAVE_LOMP], [test -n "$LOMP_CC"])

	PKG_CHECK_MODULES([TBB], [tbb >= 2021], [kdds_have_tbb=yes], [kdds_have_tbb=no])
	AM_CONDITIONAL([HAVE_TBB], [test $kdds_have_tbb = yes])
	AS_IF([test $kdds_have_tbb = yes], [kdds_peers="$kdds_peers oneTBB"])

	PKG_CHECK_MODULES([STARPU], [starpu-1.3], [kdds_have_starpu=yes], [kdds_have_starpu=no])
	AM_CONDITIONAL([HAVE_STARPU], [test $kdds_have_starpu = yes])
	AS_IF([test $kdds_have_starpu = yes], [kdds_peers="$kdds_peers StarPU"])
	# As system headers, StarPU's headers cause no warnings.
	STARPU_CFLAGS=`AS_ECHO([" $STARPU_CFLAGS"]) | sed 's/ -I/ -isystem /g'`

	PKG_CHECK_MODULES([OMPI], [ompi-c], [kdds_have_ompi=yes], [kdds_have_ompi=no])
	OMPI_CFLAGS=`AS_ECHO([" $OMPI_CFLAGS"]) | sed 's/ -I/ -isystem /g'`
	AC_PATH_PROGS([MPIRUN], [mpirun.openmpi orterun])
	AM_CONDITIONAL([HAVE_OMPI], [test $kdds_have_ompi = yes && test -n "$MPIRUN"])
	AM_COND_IF([HAVE_OMPI], [kdds_peers="$kdds_peers OpenMPI"])
])

dnl KDDS_CHECK_OPENMP(VARIABLE, NAME, OTHER-COMPILER, CANDIDATES): sets VARIABLE, unless the user
dnl did, to the first compiler that builds an OpenMP program and for which the preprocessor
dnl condition OTHER-COMPILER is false. It tries the configured compiler, then the candidates.
AC_DEFUN([KDDS_CHECK_OPENMP], [
	AC_ARG_VAR([$1], [C compiler for $2, in the benchmark])
	AC_MSG_CHECKING([for a compiler with $2])
	kdds_save_CC=$CC
	kdds_save_CFLAGS=$CFLAGS
	CFLAGS="-O2 -fopenmp"
	kdds_found=
	for kdds_cc in ${$1-"$kdds_save_CC" $4}; do
		CC=$kdds_cc
		AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#if $3
#error the other compiler
#endif
#include <omp.h>]], [[return omp_get_max_threads() < 1;]])], [kdds_found=$kdds_cc; break])
	done
	$1=$kdds_found
	CC=$kdds_save_CC
	CFLAGS=$kdds_save_CFLAGS
	AC_MSG_RESULT([${$1:-no}])
	AS_IF([test -n "$$1"], [kdds_peers="$kdds_peers $1"])
])
