dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_LIBCRYPTO: tags of what ranks read of each other, for jobs of several processes. Only
dnl its headers: the library is loaded at run time, by processes that need it. Sets
dnl LIBCRYPTO_CFLAGS.
AC_DEFUN([KDDS_CHECK_LIBCRYPTO], [
	PKG_CHECK_MODULES([LIBCRYPTO], [libcrypto >= 1.1.1], [],
		[AC_MSG_ERROR([OpenSSL's headers, 1.1.1 or later, are needed (Debian: libssl-dev)])])
])
