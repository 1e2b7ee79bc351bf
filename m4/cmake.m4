dnl SPDX-License-Identifier: BSD-3-Clause
dnl KDDS_CMAKE: support for programs built with CMake. Sets KDDS_CMAKE_INCLUDEDIR, the path of the
dnl headers relative to the directory of kddsConfig.cmake, so that an installed tree can be moved,
dnl and the substitutions in kddsConfig.cmake and kddsConfigVersion.cmake.
AC_DEFUN([KDDS_CMAKE], [
	AC_SUBST([cmakedir], ['${libdir}/cmake/kdds'])
	kdds_save_prefix=$prefix kdds_save_exec_prefix=$exec_prefix
	AS_IF([test "x$prefix" = xNONE], [prefix=$ac_default_prefix])
	AS_IF([test "x$exec_prefix" = xNONE], [exec_prefix=$prefix])
	kdds_from=$cmakedir kdds_to=$includedir
	for kdds_step in 1 2 3; do
		eval "kdds_from=\"$kdds_from\" kdds_to=\"$kdds_to\""
	done
	prefix=$kdds_save_prefix exec_prefix=$kdds_save_exec_prefix
	AC_SUBST([KDDS_CMAKE_INCLUDEDIR], [`realpath -ms --relative-to="$kdds_from" "$kdds_to"`])
	AC_CHECK_SIZEOF([void *])
	AC_SUBST([KDDS_POINTER_BYTES], [$ac_cv_sizeof_void_p])
	AC_SUBST([KDDS_VERSION_MAJOR], [kdds_version_major])
	AC_SUBST([KDDS_VERSION_MINOR], [kdds_version_minor])
])
