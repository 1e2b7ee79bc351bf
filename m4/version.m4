dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl The version, in one place. include/kdds.h repeats the three numbers for the preprocessor; configure refuses to go on
dnl when they differ.
dnl
dnl   patch  nothing a user's program can notice
dnl   minor  the library or the layouts in kdds/inline.h grew or, while major is 0, changed
dnl   major  programs must change
dnl
m4_define([kdds_version_major], [0])
m4_define([kdds_version_minor], [1])
m4_define([kdds_version_patch], [0])
m4_define([kdds_version], [kdds_version_major.kdds_version_minor.kdds_version_patch])
dnl
dnl libtool's current:revision:age names the binary interface: what kdds.h declares, and what its inline functions assume of
dnl the library. At a release, and only then:
dnl
dnl   the code changed and the interface did not     current : revision + 1 : age
dnl   the interface grew                             current + 1 : 0 : age + 1    (and src/libkdds.map gets a section)
dnl   something in it changed or went                current + 1 : 0 : 0
dnl
dnl The soname is libkdds.so.(current - age).
dnl
m4_define([kdds_libtool_version], [0:0:0])

dnl KDDS_CHECK_VERSION: include/kdds.h says the same.
AC_DEFUN([KDDS_CHECK_VERSION], [
	AC_SUBST([KDDS_LIBTOOL_VERSION], [kdds_libtool_version])
	AC_MSG_CHECKING([that include/kdds.h says version kdds_version])
	kdds_header_version=`sed -n 's/^#define KDDS_VERSION_@<:@A-Z@:>@* \(@<:@0-9@:>@*\)$/\1/p' "$srcdir/include/kdds.h" |
		tr '\n' . | sed 's/\.$//'`
	AS_IF([test "x$kdds_header_version" = "x[]kdds_version"],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([include/kdds.h says version $kdds_header_version, m4/version.m4 kdds_version])])
])
