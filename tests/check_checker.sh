#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that KDDS_CHECK finds the mistake in each program of tests/wrong.c, names its task and
# parameter, and makes the program fail, or that the program's result depends on the number that
# KDDS_CHECK has; and that it finds none in the examples and in the random programs of tests/oracle,
# which give the same values with all numbers. Reports name the line of the spawn.
set -eu
[ "${SANITIZE-}" != thread ] || exit 77 # it has one thread
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0 checked=0

fail()
{
	echo "FAILED: $*"
	failed=$((failed + 1))
}

# wrong CASE SENTENCE: of the first report.
wrong()
{
	status=0
	KDDS_CHECK=1 timeout 60 tests/wrong "$1" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 1 ] || fail "$1: status $status"
	sed 's/, wrong\.c:[0-9]*)/)/g' "$dir/err" | grep -qF "kdds: KDDS_CHECK: $2" ||
		fail "$1: not '$2': $(cat "$dir/err")"
	tail -n 1 "$dir/err" | grep -Eq '^kdds: KDDS_CHECK found [0-9]+ mistakes?$' ||
		fail "$1: the last line is $(tail -n 1 "$dir/err")"
	timeout 60 tests/wrong "$1" > "$dir/out" 2> "$dir/err" || fail "$1 without: status $?"
	[ ! -s "$dir/err" ] || fail "$1 without: $(cat "$dir/err")"
	checked=$((checked + 1))
}

# A sanitizer ends some of the wrong programs.
if [ -z "${SANITIZE-}" ]; then
# varies CASE: the number alone decides which value it prints.
varies()
{
	for run in 1 2; do
		for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
			KDDS_CHECK=$seed timeout 60 tests/wrong "$1" || fail "seed $seed: $1: $?"
		done > "$dir/run$run"
	done
	cmp -s "$dir/run1" "$dir/run2" || fail "$1: two runs with the same numbers differ"
	[ "$(sort -u "$dir/run1" | wc -l)" -gt 1 ] || fail "$1: always $(head -n 1 "$dir/run1")"
	checked=$((checked + 1))
}

other='through another reference, so nothing orders the two'
wrong read_of_write 'task count (child 1 of main), parameter r (WRITE): the task has read'
wrong read_of_double 'task accumulate (child 1 of main), parameter r (WRITE): the task has'
wrong unwritten 'task forget (child 1 of main), parameter r (WRITE): the task has not written'
wrong write_of_read 'task cast (child 1 of main), parameter a (READ): the body has changed'
wrong write_by_alias 'task alias (child 1 of main), parameter a (READ): the body has changed'
wrong write_below 'task deep (child 1 of deep), parameter a (READ): the body has changed'
wrong change_local 'task get (child 1 of main), parameter a (READ): changed by main after'
wrong change_data 'task get (child 1 of hasty), parameter a (READ): changed by hasty'
wrong change_after_wait 'task get (child 2 of main), parameter a (READ): changed by main after'
wrong change_frozen 'main: data that kdds_freeze has frozen have been written to'
wrong change_frozen_last 'main: data that kdds_freeze has frozen have been written to'
wrong free_frozen 'main: data that kdds_freeze has frozen have been freed'
wrong write_frozen 'task bump (child 1 of main), parameter x (UPDATE): the task may write to data'
wrong change_array 'task total (child 1 of main), parameter a (READ): changed by main'
wrong change_block 'task get (child 1 of main), parameter a (READ): changed by main after'
wrong dead_pointer 'task follow (child 1 of dangle): a VALUE points to a local'
wrong dead_local 'task get (child 1 of lend), parameter a (READ): refers to a local'
wrong dead_data 'task get (child 2 of main), parameter a (READ): refers to KDDS_DATA of a body'
wrong no_value 'task get (child 1 of main), parameter a (READ): nobody has written the data'
wrong no_value_to_update 'task bump (child 1 of use), parameter x (UPDATE): nobody has written'
wrong no_value_to_add_to 'task add (child 1 of add_two), parameter s (REDUCE): nobody has'
wrong no_value_to_add_to_in_order 'task add_real (child 1 of main), parameter s (REDUCE): nobody has'
wrong tiles "task total (child 2 of main), parameter a (READ): overlaps task fill (child 1 of\
 main), parameter a (WRITE) $other"
wrong two_references "task get (child 2 of main), parameter a (READ): overlaps task put (child\
 1 of main), parameter r (WRITE) $other"
wrong whole_and_part "task bump (child 2 of main), parameter x (UPDATE): overlaps task fill\
 (child 1 of main), parameter a (WRITE) $other"
wrong assigned_sum 'task set (child 1 of main), parameter s (REDUCE): the task has assigned'
wrong assigned_maximum 'task last (child 1 of main), parameter s (REDUCE): the task has assig'
wrong neighbour 'task overrun (child 1 of main): the body has changed data that it was not given:'
wrong undeclared 'task meddle (child 1 of main): the body has changed data that it was not given:'
wrong write_of_item 'task clear_second (child 1 of main), item 1 of xs (READ_LIST): the body has chan'
wrong items "task sum_items (child 2 of main), item 2 of xs (READ_LIST): overlaps task put (child 1 of\
 main), parameter r (WRITE) $other"
wrong not_given 'task get (child 1 of reach), parameter a (READ): was not given to reach'
# Of each spawn the comment says in which line it is.
cat > "$dir/lines" <<'END'
#include <kdds.h>

KDDS_TASK(get, READ(long, a), WRITE(long, r)) { **r = **a; }

static void helper(long *const *a, long *const *r)
{
	KDDS_SELF;
	kdds_spawn(get, a, /* 8 */
		   r);
}

KDDS_TASK(outer, UPDATE(long, x))
{
	KDDS_DATA(long, r);
	kdds_spawn(get, x, r); /* 15 */
	**x = 3;
}

int main(void)
{
	static long v = 1, w;
	if (kdds_init())
		return 1;
	KDDS_OVER(long, a, &v);
	KDDS_OVER(long, r, &w);
	helper(a, r);
	v = 2;
	kdds_sync();
	kdds_spawn(outer, a);
	kdds_spawn_with(KDDS_LOCAL, get, a, r); /* 30 */
	v = 7;
	return kdds_finalize();
}
END
for pair in gcc:c clang:c g++:c++ clang++:c++; do
	compiler=${pair%:*}
	command -v $compiler > /dev/null && command -v addr2line > /dev/null || continue
	case $compiler in clang*) command -v llvm-addr2line > /dev/null || continue ;; esac
	for level in -O0 -O2; do
		$compiler -x ${pair#*:} $level -g -I"${srcdir:-.}/include" "$dir/lines" \
			-o "$dir/program" -x none -L.libs -lkdds -Wl,-rpath,"$PWD/.libs"
		KDDS_CHECK=1 timeout 60 "$dir/program" 2> "$dir/err" || :
		for spawn in 'get (child 1 of main, lines:8)' 'get (child 1 of outer, lines:15)' \
			'get (child 3 of main, lines:30)'; do
			grep -qF "task $spawn" "$dir/err" ||
				fail "$compiler $level: not '$spawn': $(cat "$dir/err")"
		done
		checked=$((checked + 1))
	done
done
varies undeclared_order
varies early_read
varies loop_position
varies loop_whole
fi
echo "$checked mistakes"

times='^T = |^(tasks|steals) = |GFLOP'

# right PROGRAM ARGUMENTS...: nothing on stderr, and the output of a run without KDDS_CHECK, but for
# times and counts.
right()
{
	[ -x "$1" ] || {
		echo "not built: $1"
		return 0
	}
	KDDS_WORKERS=1 timeout 60 "$@" < /dev/null | grep -Ev "$times" > "$dir/plain"
	for seed in 1 2 3; do
		status=0
		KDDS_CHECK=$seed timeout 100 "$@" < /dev/null > "$dir/out" 2> "$dir/err" ||
			status=$?
		[ $status = 0 ] || fail "KDDS_CHECK=$seed $*: status $status"
		[ ! -s "$dir/err" ] || fail "KDDS_CHECK=$seed $*: $(cat "$dir/err")"
		grep -Ev "$times" "$dir/out" | cmp -s - "$dir/plain" ||
			fail "KDDS_CHECK=$seed $*: $(cat "$dir/out")"
	done
	echo "quiet: $*"
}

for example in 'fib 15' 'nqueens 7 7' 'knary 6 3' 'knary --cilk 5 3 2' 'stencil 60 10 7' \
	'cg 10' 'mergesort 3000 100' 'heat 40 50 2000' 'histogram 10000 30' 'kmeans 1000 7' 'cholesky 150 32' \
	'lu 8 9 30' 'pagerank 500 4' 'barneshut 300 3'; do
	# shellcheck disable=SC2086 # its arguments
	right examples/$example
done
right tests/wrong right_sums
right tests/wrong right_failure
right tests/wrong right_freezing
right examples/wordcount --chunk 7 "${srcdir:-.}/NEWS"
for seed in 1 2 3 4; do
	KDDS_CHECK=$seed timeout 100 tests/oracle -j -s 2 -n $((1000 * seed)) > "$dir/out" \
		2> "$dir/err" || fail "KDDS_CHECK=$seed tests/oracle: status $?"
	[ ! -s "$dir/err" ] || fail "KDDS_CHECK=$seed tests/oracle: $(head -n 3 "$dir/err")"
done

# refused MESSAGE COMMAND...: kdds_init fails with one line.
refused()
{
	message=$1
	shift
	status=0
	timeout 60 env KDDS_CHECK=1 "$@" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status != 0 ] && grep -q "kdds: KDDS_CHECK.*$message" "$dir/err" ||
		fail "$*: status $status, $(cat "$dir/err")"
}

refused 'cannot be combined' KDDS_STATS=1 tests/wrong unwritten
refused 'as a job of one rank' ./kddsrun -n 2 tests/wrong unwritten

[ $failed = 0 ]
