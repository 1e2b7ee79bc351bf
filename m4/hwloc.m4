dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_HWLOC: hwloc, for the topology of the machine. Required. Sets HWLOC_CFLAGS and
dnl HWLOC_LIBS.
AC_DEFUN([KDDS_CHECK_HWLOC], [
	PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0], [],
		[AC_MSG_ERROR([hwloc 2.0 or later is needed (Debian: libhwloc-dev)])])
])
