dnl SPDX-License-Identifier: BSD-3-Clause
dnl
dnl The version is defined here. include/kdds.h repeats the three numbers for the preprocessor, and
dnl configure fails when they differ.
dnl
dnl   patch  nothing that a user's program can notice
dnl   minor  the library or the layouts in kdds/inline.h grew or, while major is 0, changed
dnl   major  programs must change
dnl
m4_define([kdds_version_major], [0])
m4_define([kdds_version_minor], [2])
m4_define([kdds_version_patch], [0])
m4_define([kdds_version], [kdds_version_major.kdds_version_minor.kdds_version_patch])
dnl
dnl libtool's current:revision:age identifies the binary interface: what kdds.h declares, and what
dnl its inline functions assume about the library. Change it at a release, and only then:
dnl
dnl   the code changed, the interface did not   current : revision + 1 : age
dnl   the interface grew                        current + 1 : 0 : age + 1    (and src/libkdds.map
dnl                                             gets a section)
dnl   part of it changed or was removed         current + 1 : 0 : 0
dnl
dnl The soname is libkdds.so.(current - age).
dnl
m4_define([kdds_libtool_version], [0:0:0])

dnl KDDS_CHECK_VERSION: checks that include/kdds.h has the same version.
AC_DEFUN([KDDS_CHECK_VERSION], [
	AC_SUBST([KDDS_LIBTOOL_VERSION], [kdds_libtool_version])
	AC_MSG_CHECKING([that include/kdds.h says version kdds_version])
	kdds_header_version=`sed -n 's/^#define KDDS_VERSION_@<:@A-Z@:>@* \(@<:@0-9@:>@*\)$/\1/p' \
		"$srcdir/include/kdds.h" | tr '\n' . | sed 's/\.$//'`
	AS_IF([test "x$kdds_header_version" = "x[]kdds_version"],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([include/kdds.h says version $kdds_header_version, ]dnl
[m4/version.m4 kdds_version])])
])
