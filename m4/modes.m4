dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_BUILD_MODES: the --enable switches; .ci/run builds and tests each of them. Sets
dnl WERROR_CFLAGS, DEBUG_CPPFLAGS, SANITIZE (the list of sanitizers, or empty), SANITIZE_CFLAGS and
dnl SANITIZE_LDFLAGS, and the conditional TSAN.
AC_DEFUN([KDDS_BUILD_MODES], [
	AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors])], [],
		[enable_werror=no])
	AC_SUBST([WERROR_CFLAGS])
	AS_IF([test "x$enable_werror" = xyes], [WERROR_CFLAGS=-Werror])

	AC_ARG_ENABLE([debug],
		[AS_HELP_STRING([--enable-debug], [check internal invariants at run time])], [],
		[enable_debug=no])
	AC_SUBST([DEBUG_CPPFLAGS])
	AS_IF([test "x$enable_debug" = xyes], [DEBUG_CPPFLAGS=-DKDDS_DEBUG=1])

	AC_ARG_ENABLE([sanitize], [AS_HELP_STRING([--enable-sanitize=LIST],
		[compile for the compiler's sanitizers: address,undefined or thread])], [],
		[enable_sanitize=no])
	AC_SUBST([SANITIZE])
	AC_SUBST([SANITIZE_CFLAGS])
	AC_SUBST([SANITIZE_LDFLAGS])
	AM_CONDITIONAL([TSAN], [test "x$enable_sanitize" = xthread])
	AS_CASE([$enable_sanitize],
		[no], [],
		[yes],
		[AC_MSG_ERROR([--enable-sanitize needs a list: address,undefined or thread])],
		[SANITIZE=$enable_sanitize
		 SANITIZE_LDFLAGS="-fsanitize=$SANITIZE"
		 SANITIZE_CFLAGS="-fsanitize=$SANITIZE -fno-omit-frame-pointer"
		 AS_CASE([,$SANITIZE,], [*,undefined,*],
			[SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fno-sanitize-recover=undefined"])
		 kdds_save_CFLAGS=$CFLAGS
		 CFLAGS="$CFLAGS $SANITIZE_CFLAGS"
		 AC_MSG_CHECKING([whether $CC links with -fsanitize=$SANITIZE])
		 AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			 AC_MSG_ERROR([$CC has no -fsanitize=$SANITIZE])])
		 CFLAGS=$kdds_save_CFLAGS])
])
