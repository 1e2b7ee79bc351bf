#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every allocation that libkdds makes, failing in turn while a small program starts the library, uses it and stops it: the
# program does its work all the same, or there is one line on stderr and it ends with a status other than 0. It never crashes
# or hangs, kdds_init can be called again when it has returned an error, and nothing is kept. Allocations that hwloc makes are
# left alone: hwloc 2.9 itself crashes when some of them fail.
set -eu
[ -z "${SANITIZE-}" ] || exit 77
preload=$PWD/tests/.libs/nomem.so
[ -e "$preload" ] && [ -e .libs/libkdds.so ] && [ -x tests/.libs/nomem_program ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# attempt N: sets status, writes $dir/err; $dir/report is there if there were N allocations
attempt()
{
	status=0
	rm -f "$dir/report"
	# Not libtool's script, whose shell would count as well.
	LD_LIBRARY_PATH=$PWD/.libs KDDS_WORKERS=3 KDDS_STACK=16M KDDS_TEST_FAIL_AT=$1 KDDS_TEST_REPORT=$dir/report \
		LD_PRELOAD=$preload \
		timeout -k 5 20 tests/.libs/nomem_program > "$dir/out" 2> "$dir/err" || status=$?
}

fail()
{
	echo "FAILED: allocation $n fails: $1"
	cat "$dir/err"
	failed=$((failed + 1))
}

n=1
while :; do
	attempt "$n"
	# So many allocations are not made any more. How many are depends a little on who steals what.
	[ -e "$dir/report" ] || break
	lines=$(wc -l < "$dir/err")
	ours=$(grep -c '^kdds: ' "$dir/err" || :)
	case $status in
	0) [ "$lines" = 0 ] || fail 'all went well, but there was something to say' ;;
	1 | 3) [ "$lines" = 1 ] && [ "$ours" = 1 ] || fail "status $status without one line" ;;
	*) fail "status $status" ;;
	esac
	n=$((n + 1))
done
[ "$status" = 0 ] || fail "status $status although none failed"
[ "$n" -gt 10 ] || fail 'hardly any allocation was counted'
echo "$((n - 1)) allocations failed in turn"
[ "$failed" = 0 ]
