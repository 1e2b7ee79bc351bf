dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_LIBFABRIC: libfabric, for the network of jobs of several processes. Only its headers
dnl are needed: processes that use it load the library at run time. Sets LIBFABRIC_CFLAGS, and
dnl LIBFABRIC_LIBS for programs that link with it.
AC_DEFUN([KDDS_CHECK_LIBFABRIC], [
	PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 1.9], [],
		[AC_MSG_ERROR([the headers of libfabric 1.9 or later are needed ]dnl
[(Debian: libfabric-dev)])])
	AC_SEARCH_LIBS([dlvsym], [dl], [], [AC_MSG_ERROR([dlvsym is needed to load libfabric])])
])
