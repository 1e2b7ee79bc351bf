#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that libkdds survives every allocation failure. Each allocation that it makes fails in turn
# while a small program starts the library, uses it and stops it. Either the program works
# nevertheless, or it prints one line on stderr and ends with a status other than 0. It never
# crashes or hangs, kdds_init can be called again after it has returned an error, and no memory is
# leaked. Allocations made by hwloc do not fail: hwloc 2.9 itself crashes when some of them do.
set -eu
[ -z "${SANITIZE-}" ] || exit 77
preload=$PWD/tests/.libs/nomem.so
[ -e "$preload" ] && [ -e .libs/libkdds.so ] && [ -x tests/.libs/nomem_program ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# attempt N: lets allocation N fail. Sets status and writes $dir/err. $dir/report exists afterwards
# if there were N allocations.
attempt()
{
	status=0
	rm -f "$dir/report"
	# Not through libtool's script, whose shell would count as well.
	LD_LIBRARY_PATH=$PWD/.libs KDDS_WORKERS=3 KDDS_STACK=16M KDDS_TEST_FAIL_AT=$1 \
		KDDS_TEST_REPORT=$dir/report \
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
	# There are fewer allocations than this. Their number depends a little on which worker
	# steals what.
	[ -e "$dir/report" ] || break
	lines=$(wc -l < "$dir/err")
	ours=$(grep -c '^kdds: ' "$dir/err" || :)
	case $status in
	0) [ "$lines" = 0 ] || fail 'the program succeeded, but printed something' ;;
	1 | 3) [ "$lines" = 1 ] && [ "$ours" = 1 ] || fail "status $status without one line" ;;
	*) fail "status $status" ;;
	esac
	n=$((n + 1))
done
[ "$status" = 0 ] || fail "status $status although none failed"
[ "$n" -gt 10 ] || fail 'hardly any allocation was counted'
echo "$((n - 1)) allocations failed in turn"
[ "$failed" = 0 ]
