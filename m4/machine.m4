dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_MACHINE: 64 bits, little-endian. include/kdds/inline.h says the same to users' compilers.
AC_DEFUN([KDDS_CHECK_MACHINE], [
	KDDS_MACHINE_IF([__SIZEOF_POINTER__ == 8], [],
		[AC_MSG_ERROR([libkdds needs a 64-bit machine, and $CC compiles for one with smaller pointers ($host_cpu)])])
	KDDS_MACHINE_IF([__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__], [],
		[AC_MSG_ERROR([libkdds needs a little-endian machine, and $CC compiles for a big-endian one ($host_cpu)])])
])

dnl KDDS_MACHINE_IF(CONDITION, THEN, ELSE): of the preprocessor.
AC_DEFUN([KDDS_MACHINE_IF], [
	AC_MSG_CHECKING([whether $1])
	AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#if !($1)
#error no
#endif
]])], [AC_MSG_RESULT([yes])
$2], [AC_MSG_RESULT([no])
$3])
])
