#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that configure and each public header refuse a compiler for a 32-bit or a big-endian
# machine, with a sentence. The compiler here is made to claim that it is one.
set -eu
srcdir=$(cd "${srcdir:-.}" && pwd)
# configured in the source tree: no other build is possible
[ ! -e "$srcdir/config.status" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# refused WHAT SENTENCE COMMAND...
refused()
{
	name=$1 sentence=$2
	shift 2
	if (cd "$dir" && "$@") > "$dir/log" 2>&1; then
		echo "FAILED: $name: not refused"
		failed=1
	elif grep -m1 "$sentence" "$dir/log"; then
		echo "ok: $name"
	else
		echo "FAILED: $name: refused for another reason:"
		cat "$dir/log"
		failed=1
	fi
}

# machine WHAT MACRO VALUE
machine()
{
	what=$1
	shift
	refused "$what, configure" "error: libkdds needs a" \
		"$srcdir/configure" -q "CC=${CC:-cc}" "CPPFLAGS=-U$1 -D$1=$2"
	for header in kdds.h kdds/inline.h kdds/saved.h kdds/task.h; do
		echo "#include <$header>" > "$dir/user.c"
		refused "$what, $header" "#error \"libkdds needs a" \
			${CC:-cc} "-I$srcdir/include" "-U$1" "-D$1=$2" -fsyntax-only user.c
	done
}

machine '32 bits' __SIZEOF_POINTER__ 4
machine 'big-endian' __BYTE_ORDER__ __ORDER_BIG_ENDIAN__
exit $failed
