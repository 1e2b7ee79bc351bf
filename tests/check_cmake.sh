#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a CMake project outside the tree, examples/cmake, finds the library where `make
# install' put it, after it has been moved elsewhere, and that a request for another minor version
# fails.
set -eu
[ -z "${SANITIZE-}" ] || exit 77
command -v cmake > /dev/null || exit 77
command -v "${CXX%% *}" > /dev/null || exit 77
srcdir=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "FAILED: $*"
	cat "$dir/log"
	exit 1
}

unset MAKEFLAGS MFLAGS MAKELEVEL
$MAKE -s install DESTDIR="$dir/there" > "$dir/log" 2>&1 || fail 'make install'
mv "$dir/there" "$dir/here"

cmake -S "$srcdir/examples/cmake" -B "$dir/build" -Dkdds_DIR="$dir/here$libdir/cmake/kdds" \
	> "$dir/log" 2>&1 || fail 'cmake'
cmake --build "$dir/build" > "$dir/log" 2>&1 || fail 'cmake --build'
for program in sums sums_static; do
	KDDS_WORKERS=2 timeout 60 "$dir/build/$program" > "$dir/out" 2> "$dir/log" ||
		fail "$program: status $?"
	[ "$(cat "$dir/out")" = 4999950000 ] || fail "$program printed $(cat "$dir/out")"
done
ldd "$dir/build/sums" > "$dir/log" && grep -q "libkdds.* => $dir/here" "$dir/log" ||
	fail 'sums is not linked with the library that was moved'
ldd "$dir/build/sums_static" > "$dir/log" && ! grep -q libkdds "$dir/log" ||
	fail 'sums_static is not static'

mkdir "$dir/later"
sed 's/find_package(kdds [0-9.]*/find_package(kdds 0.99/' "$srcdir/examples/cmake/CMakeLists.txt" \
	> "$dir/later/CMakeLists.txt"
! cmake -S "$dir/later" -B "$dir/later" -Dkdds_DIR="$dir/here$libdir/cmake/kdds" \
	> "$dir/log" 2>&1 || fail 'cmake takes this for version 0.99'
grep -q 'compatible' "$dir/log" || fail 'cmake failed for another reason'
