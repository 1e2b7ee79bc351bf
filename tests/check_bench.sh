#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that kdds-bench finds every result right on any number of workers and prints in the format
# that its man page describes, with tiny sizes and for the published trees; that a wrong command
# line ends it with status 2 and one line; and that bench/medians.awk computes medians.
set -eu
srcdir=${srcdir:-.}
bench=bench/kdds-bench
[ -x $bench ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset KDDS_WORKERS
failed=0

fail()
{
	echo "FAILED: $*"
	failed=$((failed + 1))
}

# right ARGUMENTS...: must succeed and print nothing on stderr. Leaves its output in $dir/out.
right()
{
	status=0
	timeout 120 $bench "$@" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 0 ] || fail "$*: status $status"
	[ ! -s "$dir/err" ] || fail "$*: on stderr: $(cat "$dir/err")"
}

# wrong ARGUMENTS...: must end with status 2, nothing on stdout, and one line on stderr that begins
# with the program's name.
wrong()
{
	status=0
	timeout 60 $bench "$@" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 2 ] || fail "$*: status $status instead of 2"
	[ ! -s "$dir/out" ] || fail "$*: on stdout: $(cat "$dir/out")"
	[ "$(wc -l < "$dir/err")" = 1 ] && grep -q '^kdds-bench: ' "$dir/err" ||
		fail "$*: not one line 'kdds-bench: ...' on stderr: $(cat "$dir/err")"
}

# All workloads.
names=$($bench --list | awk '{ print $1 }')
[ "$(echo "$names" | wc -l)" -ge 14 ] || fail "--list: $names"
right --quick --csv --rounds=2 --workers=0,1-2,4,16
columns=$(head -n 1 "$dir/out")
[ "$columns" = workload,size,unit,program,workers,ranks,round,seconds,units ] ||
	fail "columns: $columns"
for name in $names; do
	lines=$(grep -c "^$name," "$dir/out" || :)
	[ "$lines" = 10 ] || fail "$name: $lines measurements instead of 10"
done
sed 1d "$dir/out" |
	grep -vE '^[a-z0-9-]+,[0-9 ]*,[a-z]+,(plain,0|libkdds,(1|2|4|16)),1,[01],'\
'[0-9]+\.[0-9]+,[1-9][0-9]*$' &&
	fail 'these lines are not as described'
right --quick --workers=2 grain
grep -q '^grain(100,100)  *2 ' "$dir/out" || fail "the table: $(cat "$dir/out")"

# Trees whose sizes are published. They would take minutes under sanitizers.
if [ -z "${SANITIZE-}" ]; then
	right --csv --rounds=1 --workers=0,1,3 uts-t1 uts-t3
	[ "$(grep -c '^uts-t1,.*,4130071$' "$dir/out")" = 3 ] &&
		[ "$(grep -c '^uts-t3,.*,4112897$' "$dir/out")" = 3 ] ||
		fail "sizes of trees: $(cat "$dir/out")"
fi

# Sizes, one workload twice, and the rows and ratios of the table.
right --csv -r 1 -w 2 -s 20,12 fib-cutoff
grep -q '^fib-cutoff,20 12,call,libkdds,2,1,0,.*,21891$' "$dir/out" ||
	fail "--size: $(cat "$dir/out")"
right --csv -r 1 -w 1 --size=25 fib-cutoff
grep -q '^fib-cutoff,25 20,call,' "$dir/out" || fail "--size of the first number: $(cat "$dir/out")"
KDDS_WORKERS=3 right -q -r 1 fib chain
workers=$(awk '/^fib\(/ { print $2 }' "$dir/out" | tr '\n' ' ')
[ "$workers" = 'plain 1 2 3 ' ] || fail "by default, workers are $workers"
awk '/^chain\(1000\) +1 / { found = $NF == "1.000" } END { exit !found }' "$dir/out" ||
	fail "T1/T1: $(cat "$dir/out")"

status=0
$bench --stats -q -r 1 -w 2 fib > "$dir/out" 2> "$dir/err" || status=$?
[ $status = 0 ] && grep -q '^tasks [1-9]' "$dir/err" ||
	fail "--stats: status $status, $(cat "$dir/err")"

wrong --nonsense
wrong -x
wrong --workers
wrong --workers=
wrong --workers=x
wrong --workers=1,
wrong --workers=1,x
wrong --workers=-1
wrong --workers=2-1
wrong --workers=1-2-3
wrong --workers=1025
wrong --workers=99999999999999999999
wrong --rounds=0
wrong --rounds=1001
wrong --rounds=1x
wrong --rounds=
wrong --quick=yes
wrong nonsense
wrong ''
wrong fib nonsense
wrong --size=3
wrong --size=3 fib chain
wrong --size=3 --quick fib
wrong --size=0 fib
wrong --size=61 fib
wrong --size=3,4 fib
wrong --size=3, fib
wrong --size=x fib
wrong --size=3 uts-t1

# --help and -h. The man page lists the same options and workloads.
$bench --help > "$dir/help" && $bench -h > "$dir/out" && cmp -s "$dir/help" "$dir/out" ||
	fail '-h is not --help'
grep -q '^Usage: kdds-bench ' "$dir/help" && grep -q KDDS_BIND "$dir/help" ||
	fail "--help: $(cat "$dir/help")"
sed -n 's/^  [-h ].*--\([a-z]*\).*/\1/p' "$dir/help" | sort > "$dir/known"
sed -n '/^\.SH OPTIONS/,/^\.SH WORKLOADS/s/^\.BR* .*\\-\\-\([a-z]*\).*/\1/p' \
	"$srcdir/doc/kdds-bench.1" |
	sort -u > "$dir/documented"
[ -s "$dir/known" ] && diff -u "$dir/known" "$dir/documented" ||
	fail 'options of (-) --help and (+) kdds-bench.1'
sed -n '/^\.SH WORKLOADS/,/^\.SH ENVIRONMENT/p' "$srcdir/doc/kdds-bench.1" | grep '^\.B' |
	tr ' ' '\n' > "$dir/documented"
for name in $names; do
	grep -qx "$name" "$dir/documented" || fail "$name is not in kdds-bench.1"
done
right --version
grep -qE '^libkdds [0-9]+\.[0-9]+\.[0-9]+$' "$dir/out" || fail "--version: $(cat "$dir/out")"

# A variable with an invalid value, and a full disk.
status=0
KDDS_BIND=nowhere $bench -q -r 1 -w 1 fib > "$dir/out" 2> "$dir/err" || status=$?
[ $status = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] ||
	fail "KDDS_BIND=nowhere: status $status, $(cat "$dir/err")"
status=0
$bench --list > /dev/full 2> "$dir/err" || status=$?
[ $status = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] ||
	fail "a full disk: status $status, $(cat "$dir/err")"

# Three rounds. In the second one everything was slow, which the ratios must not show. q is the
# better peer.
cat > "$dir/runs" <<'END'
workload,size,unit,program,workers,ranks,round,seconds,units
w,7 8,task,plain,0,1,1,0.1,100
w,7 8,task,libkdds,1,1,1,0.2,100
w,7 8,task,libkdds,2,1,1,0.1,100
w,7 8,task,p,2,1,1,0.9,100
w,7,task,q,2,1,1,0.04,10
w,7 8,task,plain,0,1,2,0.5,100
w,7 8,task,libkdds,1,1,2,1.0,100
w,7 8,task,libkdds,2,1,2,0.5,100
w,7 8,task,p,2,1,2,0.9,100
w,7,task,q,2,1,2,0.2,10
w,7 8,task,plain,0,1,3,0.1,100
w,7 8,task,libkdds,1,1,3,0.2,100
w,7 8,task,libkdds,2,1,3,0.11,100
w,7 8,task,p,2,1,3,0.9,100
w,7,task,q,2,1,3,0.04,10
END
awk -f "$srcdir/bench/medians.awk" "$dir/runs" > "$dir/table"
expected='w,7 8,task,libkdds,2,1,3,1100000.000,1000000.000,5000000.000,'
expected="${expected}2.0000,2.0000,1.0000,q,4.0000"
grep -qxF "$expected" "$dir/table" || fail "medians: expected $expected, got $(cat "$dir/table")"
awk -f "$srcdir/bench/table.awk" "$dir/table" |
	grep -qE '^w\(7,8\) +ns/task .* 2\.000 +2\.000 .* q +4\.000$' ||
	fail "table: $(awk -f "$srcdir/bench/table.awk" "$dir/table")"
for plot in overhead speedup; do
	awk -v what=$plot -f "$srcdir/bench/plot.awk" "$dir/table" | tail -n 1 |
		grep -qx '</svg>' || fail "plot: $plot"
done

[ $failed = 0 ]
