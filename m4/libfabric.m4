dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_LIBFABRIC: the network, for jobs of several processes. Only its headers: the library is loaded at run time, by
dnl processes that need it. Sets LIBFABRIC_CFLAGS, and LIBFABRIC_LIBS for what does link with it.
AC_DEFUN([KDDS_CHECK_LIBFABRIC], [
	PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 1.9], [],
		[AC_MSG_ERROR([the headers of libfabric 1.9 or later are needed (Debian: libfabric-dev)])])
	AC_SEARCH_LIBS([dlvsym], [dl], [], [AC_MSG_ERROR([dlvsym is needed to load libfabric])])
])
