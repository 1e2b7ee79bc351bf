# SPDX-License-Identifier: BSD-3-Clause
# Example programs. They are built with the library, so that they always work, but not installed.

EXAMPLES_COMMON = examples/common.c examples/common.h

noinst_PROGRAMS += examples/barneshut examples/cg examples/fib examples/heat examples/histogram \
	examples/kmeans examples/knary examples/lu examples/mergesort examples/nqueens \
	examples/pagerank examples/pgzip examples/stencil examples/wordcount

examples_barneshut_SOURCES = examples/barneshut.c $(EXAMPLES_COMMON)
examples_barneshut_LDADD = libkdds.la -lm

examples_cg_SOURCES = examples/cg.c $(EXAMPLES_COMMON)
examples_cg_LDADD = libkdds.la -lm

examples_fib_SOURCES = examples/fib.c $(EXAMPLES_COMMON)
examples_fib_LDADD = libkdds.la

examples_heat_SOURCES = examples/heat.c $(EXAMPLES_COMMON)
examples_heat_LDADD = libkdds.la -lm

examples_histogram_SOURCES = examples/histogram.c $(EXAMPLES_COMMON)
examples_histogram_LDADD = libkdds.la

examples_kmeans_SOURCES = examples/kmeans.c $(EXAMPLES_COMMON)
examples_kmeans_LDADD = libkdds.la

examples_knary_SOURCES = examples/knary.c $(EXAMPLES_COMMON)
examples_knary_LDADD = libkdds.la

examples_lu_SOURCES = examples/lu.c $(EXAMPLES_COMMON)
examples_lu_LDADD = libkdds.la -lm

examples_mergesort_SOURCES = examples/mergesort.c $(EXAMPLES_COMMON)
examples_mergesort_LDADD = libkdds.la

examples_nqueens_SOURCES = examples/nqueens.c $(EXAMPLES_COMMON)
examples_nqueens_LDADD = libkdds.la

examples_pagerank_SOURCES = examples/pagerank.c $(EXAMPLES_COMMON)
examples_pagerank_LDADD = libkdds.la -lm

examples_pgzip_SOURCES = examples/pgzip.c $(EXAMPLES_COMMON)
examples_pgzip_LDADD = libkdds.la

examples_stencil_SOURCES = examples/stencil.c $(EXAMPLES_COMMON)
examples_stencil_LDADD = libkdds.la

examples_wordcount_SOURCES = examples/wordcount.c $(EXAMPLES_COMMON)
examples_wordcount_LDADD = libkdds.la

if HAVE_LAPACKE
noinst_PROGRAMS += examples/cholesky
endif
examples_cholesky_SOURCES = examples/cholesky.c $(EXAMPLES_COMMON)
examples_cholesky_CPPFLAGS = $(AM_CPPFLAGS) $(LAPACKE_CFLAGS)
examples_cholesky_LDADD = libkdds.la $(LAPACKE_LIBS) -lm

# A separate project, which tests/check_cmake.sh builds against an installed libkdds.
EXTRA_DIST += examples/cmake/CMakeLists.txt examples/cmake/sums.c examples/cmake/sums.cc
