dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_LIBCRYPTO: OpenSSL's libcrypto, which computes the tags of remote reads in jobs of
dnl several processes. Only its headers are needed: processes of such jobs load the library at run
dnl time. Sets LIBCRYPTO_CFLAGS.
AC_DEFUN([KDDS_CHECK_LIBCRYPTO], [
	PKG_CHECK_MODULES([LIBCRYPTO], [libcrypto >= 1.1.1], [],
		[AC_MSG_ERROR([OpenSSL's headers, 1.1.1 or later, are needed ]dnl
[(Debian: libssl-dev)])])
])
