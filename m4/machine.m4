dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CHECK_MACHINE: the target must be a 64-bit, little-endian machine. include/kdds/inline.h
dnl refuses others in the same way when a user's compiler reads it.
AC_DEFUN([KDDS_CHECK_MACHINE], [
	KDDS_MACHINE_IF([__SIZEOF_POINTER__ == 8], [],
		[AC_MSG_ERROR([libkdds needs a 64-bit machine, and $CC compiles for one ]dnl
[with smaller pointers ($host_cpu)])])
	KDDS_MACHINE_IF([__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__], [],
		[AC_MSG_ERROR([libkdds needs a little-endian machine, and $CC compiles for ]dnl
[a big-endian one ($host_cpu)])])
])

dnl KDDS_MACHINE_IF(CONDITION, THEN, ELSE): CONDITION is evaluated by the preprocessor.
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
