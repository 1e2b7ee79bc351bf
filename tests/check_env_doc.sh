#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that kdds(7) documents exactly the environment variables that the library knows, with the
# same defaults. An example's --help prints the library's table.
set -eu
srcdir=${srcdir:-.}
[ -x examples/fib ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

examples/fib --help > "$dir/help"
# "  KDDS_WORKERS   workers ... (default 0)" and ".TP" ".BR KDDS_WORKERS " (default 0)"" both become
# "KDDS_WORKERS 0". An empty default is "(default )" in the former and "(default empty)" in the
# latter.
sed -n 's/(default )/(default empty)/; s/^ *\(KDDS_[A-Z_]*\) .*(default \([^)]*\)).*/\1 \2/p' \
	"$dir/help" | sort > "$dir/known"
sed -n 's/^\.BR* \(KDDS_[A-Z_]*\) "* *(default \([^)]*\))"*$/\1 \2/p' "$srcdir/doc/kdds.7" |
	sort > "$dir/documented"
[ -s "$dir/known" ] || {
	echo 'FAILED: examples/fib --help shows no KDDS_ variable with its default'
	exit 1
}
diff -u "$dir/known" "$dir/documented" || {
	echo 'FAILED: (-) what the library knows and (+) what kdds.7 documents differ'
	exit 1
}
echo "$(wc -l < "$dir/known") variables, each documented"
