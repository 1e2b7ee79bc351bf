#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that each public header compiles alone, and when included twice, in C11 and C++17, with
# every compiler installed and all its warnings enabled.
set -eu
srcdir=${srcdir:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
checked=0 failed=0

# compiles LANGUAGE STANDARD HEADER COMPILER
compiles()
{
	printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$3" "$3" \
		> "$dir/alone.$1"
	if "$4" -std="$2" -Wall -Wextra -Wundef -Werror -pedantic -I"$srcdir/include" -c \
		-o "$dir/alone.o" "$dir/alone.$1"; then
		echo "ok: $3 with $4 -std=$2"
	else
		echo "FAILED: $3 with $4 -std=$2"
		failed=$((failed + 1))
	fi
	checked=$((checked + 1))
}

for header in kdds.h kdds/inline.h kdds/task.h; do
	for cc in gcc clang; do
		! command -v $cc > /dev/null || compiles c c11 $header $cc
	done
	for cxx in g++ clang++; do
		! command -v $cxx > /dev/null || compiles cc c++17 $header $cxx
	done
done

[ $checked -gt 0 ] || exit 77
[ $failed -eq 0 ]
