#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves: loops (tests/loops.c and examples) compute what plain C does, and sums have the same bits,
# on 1 to 16 workers and on 1 to 8 ranks over three engines. A mistake ends the program with one line.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
	echo "FAILED: $*"
	failed=1
}

# same WHAT COMMAND...: the program succeeds and prints the one hash. What examples print about a run,
# from its time on, may differ.
same()
{
	what=$1
	shift
	timeout 120 "$@" > "$dir/out" 2> "$dir/err" || {
		fail "$what: status $?"
		cat "$dir/out" "$dir/err"
	}
	sed -i '/^T = /,$d' "$dir/out"
	[ -e "$dir/first" ] || cp "$dir/out" "$dir/first"
	cmp -s "$dir/first" "$dir/out" || {
		fail "$what: not what one worker computes"
		cat "$dir/first" "$dir/out"
	}
}

for workers in 1 2 3 16; do
	KDDS_WORKERS=$workers same "$workers workers" tests/loops
done
for provider in loop loop:7 tcp; do
	for ranks in 2 5 8; do
		same "$ranks ranks over $provider" \
			./kddsrun -n $ranks --workers 1 --provider $provider tests/loops
	done
done

[ $failed = 0 ] || exit 1
echo "one hash: $(cat "$dir/first")"
for example in 'heat 60 20' 'histogram 100000' 'kmeans 20000 10 10' 'cg 30' 'mergesort 30000' \
	'lu 10 30' 'pagerank 20000' 'barneshut 3000 3'; do
	rm "$dir/first"
	for ranks in 1 2 8; do
		same "$ranks ranks: $example" ./kddsrun -n $ranks --workers 1 examples/$example
	done
done

# mistake WHAT TEXT
mistake()
{
	status=0
	KDDS_WORKERS=2 timeout 60 tests/loops "$1" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 1 ] || fail "$1: status $status"
	[ "$(wc -l < "$dir/err")" = 1 ] && grep -q "$2" "$dir/err" || {
		fail "$1: stderr is"
		cat "$dir/err"
	}
}

mistake lengths 'kdds_for: task shift was given 10 elements for x and 20 for y'
mistake single 'kdds_for: task shift was given 10 elements for x and 1 for y'
mistake row 'kdds_for: task number_rows was given 1 elements for a and 5 for i'
mistake negative 'range i of task shared_write begins or ends at a negative number: 0, -5'
mistake below 'range i of task shared_write begins or ends at a negative number: -5, 5'
mistake nothing 'kdds_for: task no_cut has no parameter to cut'
mistake shared 'all parts of the loop would write parameter x of task shared_write'
[ $failed = 0 ] || exit 1
