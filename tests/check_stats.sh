#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that the report of KDDS_STATS is well-formed, adds up, and is true for known graphs: each
# task takes at least a given time, so work and critical path have bounds that hold under any load.
# It is checked on one worker, on several, and on several ranks.
set -eu
command -v python3 > /dev/null || {
	echo 'no python3'
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
	echo "FAILED: $*"
	failed=$((failed + 1))
}

cat > "$dir/check.py" << 'END'
import json, sys
ranks, workers, us = map(int, sys.argv[3:6])
tasks, path = map(int, open(sys.argv[2]).read().split())
s = json.load(open(sys.argv[1]))
t = s['total']
assert s['ranks'] == s['ranks_known'] == len(s['rank']) == ranks, 'ranks'
assert s['workers'] == t['workers'] == ranks * workers, 'workers'
for r in s['rank']:
    assert len(r['worker']) == r['workers'] == workers, 'workers of a rank'
    for name in r['worker'][0]:
        if name != 'worker':
            assert sum(w[name] for w in r['worker']) == r[name], name
for name in t:
    values = [r[name] for r in s['rank']]
    assert t[name] == (max(values) if name in ('time_ns', 'depth_ns') else sum(values)), name
assert t['tasks'] == tasks, 'tasks %d instead of %d' % (t['tasks'], tasks)
assert t['pushed'] == tasks, 'pushed'
assert t['imported'] == t['exported'] and t['imports'] == t['exports'] == t['returned'], 'packages'
assert t['stolen'] >= t['steals'] and t['attempts'] >= t['steals'], 'steals'
assert t['robbed'] == t['steals'] if ranks == 1 else t['robbed'] >= t['steals'], 'robbed'
assert t['peak_bytes'] > 1 << 16, 'memory'
for r in s['rank']:
    pairs = r.get('read_from', [])
    assert ranks > 1 or not pairs, 'reads from itself'
    assert all(p['rank'] not in (r['rank'], p['bytes']) for p in pairs), 'pairs'
    assert sum(p['bytes'] for p in pairs) + r.get('read_from_others', 0) == r['fetched_bytes'], \
        'pairs of rank %d: %s' % (r['rank'], pairs)
    assert pairs == sorted(pairs, key=lambda p: -p['bytes']), 'the heaviest first'
types = s.get('types', [])
assert bool(types) <= (ranks > 1) and bool(types) >= bool(t['exports']), 'types'
def by_type(*names):
    return sum(x[name] for x in types for name in names)
for name in 'exports', 'exported', 'returned', 'dear', 'hit_bytes', 'same_bytes':
    assert by_type(name) == t[name], '%s by type' % name
assert by_type('input_bytes', 'output_bytes') == t['fetched_bytes'], 'bytes by type'
for x in types:
    assert x['returned'] == x['exports'] >= x['expected'], 'steal messages of a type: %s' % x
    assert (x['run_ns'] > 0) == (x['returned'] > 0), 'time of a type: %s' % x
    assert (x['expected_move_ns'] > 0) == (x['expected'] > 0), 'expected of a type: %s' % x
W, D, each = t['work_ns'], t['depth_ns'], us * 990  # the clocks agree to a thousandth
timed = int(sys.argv[6])  # tasks that take time
assert W >= timed * each, 'W = %d' % W
assert D >= path * each, 'D = %d' % D
assert D <= W - (timed - path) * each + 1000 * ranks, 'D = %d, W = %d' % (D, W)
if path == timed and ranks == 1:
    assert abs(D - W) <= 1000, 'D = %d, W = %d: one path' % (D, W)
END

# shape RANKS WORKERS US TIMED SHAPE N
shape()
{
	ranks=$1 workers=$2 us=$3 timed=$4
	shift 4
	what="$*, $us us, on $ranks x $workers"
	launcher=
	[ "$ranks" = 1 ] || launcher="./kddsrun -n $ranks --timeout 100"
	status=0
	KDDS_PROVIDER=loop KDDS_WORKERS=$workers KDDS_STATS=json timeout 120 $launcher \
		tests/observed "$@" "$us" \
		> "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 0 ] || fail "$what: status $status: $(cat "$dir/err")"
	python3 "$dir/check.py" "$dir/err" "$dir/out" "$ranks" "$workers" "$us" "$timed" \
		2> "$dir/why" ||
		fail "$what: $(tail -n 1 "$dir/why"), $(cat "$dir/out" "$dir/err")"
}

for workers in 1 4; do
	shape 1 $workers 100 50 chain 50
	shape 1 $workers 100 50 wide 50
	shape 1 $workers 100 52 fan 50
	shape 1 $workers 100 51 reduce 50
	shape 1 $workers 100 127 tree 6
	shape 1 $workers 100 80 synced 20
	shape 1 $workers 100 51 pushed 50
	shape 1 $workers 100 5 empty 1
done
# no work, only overhead, and a window that is too small for the tasks
KDDS_WINDOW=64K shape 1 2 0 4000 wide 4000
if [ -x ./kddsrun ]; then
	shape 2 2 1000 64 wide 64
	shape 2 2 1000 127 tree 6
	shape 3 1 1000 51 reduce 50
	shape 2 1 100 50 chain 50
	# results, and lengths of closures, that do not fit into a message
	shape 2 1 2 4000 bulky 4000
	# data that are read
	shape 3 1 1000 64 blocks 32
	shape 17 1 1000 64 blocks 32
fi

# as text: a line per worker, and the program's result on stdout
for value in 1 text counts; do
	KDDS_STATS=$value KDDS_WORKERS=3 timeout 60 tests/observed wide 10 10 \
		> "$dir/out" 2> "$dir/err" ||
		fail "KDDS_STATS=$value: status $?"
	[ "$(cat "$dir/out")" = '10 1' ] || fail "KDDS_STATS=$value: on stdout: $(cat "$dir/out")"
	grep -v '^kdds: ' "$dir/err" && fail "KDDS_STATS=$value: not a line of the library"
	grep -q '^kdds: T = .* 3 workers, 10 tasks' "$dir/err" ||
		fail "KDDS_STATS=$value: $(cat "$dir/err")"
	[ "$(grep -c '^kdds:  *[0-2] ' "$dir/err")" = 3 ] ||
		fail "KDDS_STATS=$value: not a line per worker: $(cat "$dir/err")"
	case $value in
	counts) ! grep -q 'W/D' "$dir/err" || fail 'KDDS_STATS=counts: tasks were timed' ;;
	*) grep -q 'parallelism W/D = ' "$dir/err" ||
		fail "KDDS_STATS=$value: no W and D: $(cat "$dir/err")" ;;
	esac
done
# What is called in place of tasks is counted, too: together as many as the tasks that are timed.
number='s/^kdds: T = .* workers, \([0-9]*\) tasks and \([0-9]*\) calls in place .*/\1 \2/p'
for workers in 1 3; do
	KDDS_STATS=1 KDDS_WORKERS=$workers timeout 60 tests/observed tree 12 0 \
		> /dev/null 2> "$dir/err" || fail "KDDS_STATS=1: status $?"
	all=$(sed -n 's/^kdds: T = .* workers, \([0-9]*\) tasks, .*/\1/p' "$dir/err")
	KDDS_STATS=counts KDDS_WORKERS=$workers timeout 60 tests/observed tree 12 0 \
		> /dev/null 2> "$dir/err" || fail "KDDS_STATS=counts: status $?"
	counts=$(sed -n "$number" "$dir/err")
	[ "${counts#* }" -gt 0 ] && [ $((${counts% *} + ${counts#* })) = "$all" ] ||
		fail "$all tasks on $workers workers, tasks and calls are $counts"
done
KDDS_STATS=counts KDDS_WORKERS=1 timeout 60 tests/observed pushed 10 0 > /dev/null \
	2> "$dir/err" || fail "KDDS_STATS=counts: status $?"
[ "$(sed -n "$number" "$dir/err")" = '11 0' ] || fail "11 pushed: $(cat "$dir/err")"
KDDS_STATS=0 timeout 60 tests/observed wide 10 10 2> "$dir/err" > /dev/null ||
	fail "KDDS_STATS=0: status $?"
[ ! -s "$dir/err" ] || fail "KDDS_STATS=0: $(cat "$dir/err")"
status=0
KDDS_STATS=yes timeout 60 tests/observed wide 10 10 > /dev/null 2> "$dir/err" || status=$?
[ $status = 2 ] && grep -q '^kdds: KDDS_STATS=yes: expected ' "$dir/err" ||
	fail "KDDS_STATS=yes: $status, $(cat "$dir/err")"

# the manual documents every counter of the report
KDDS_STATS=json timeout 60 tests/observed wide 10 10 2> "$dir/err" > /dev/null ||
	fail "KDDS_STATS=json: status $?"
python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["total"])' "$dir/err" |
	tr ' ' '\n' | sort > "$dir/known"
sed -n '/^.SH STATISTICS/,/^.SH EXAMPLES/s/^.B \([a-z_]*\)$/\1/p' "${srcdir:-.}/doc/kdds.7" |
	sort -u > "$dir/documented"
[ -z "$(comm -23 "$dir/known" "$dir/documented")" ] ||
	fail "not in kdds(7): $(comm -23 "$dir/known" "$dir/documented" | tr '\n' ' ')"

# kddsrun --stats
if [ -x ./kddsrun ]; then
	for option in --stats --stats=text; do
		KDDS_PROVIDER=loop timeout 120 ./kddsrun -n 2 --workers 1 --timeout 100 $option \
			tests/observed wide 10 10 > "$dir/out" \
			2> "$dir/err" || fail "kddsrun $option: status $?"
		grep -q '^kdds: T = .* 2 ranks, 2 workers, 10 tasks' "$dir/err" ||
			fail "kddsrun $option: $(cat "$dir/err")"
	done
	status=0
	timeout 60 ./kddsrun --stats=yes true 2> "$dir/err" || status=$?
	[ $status = 2 ] || fail "kddsrun --stats=yes: status $status"
	KDDS_PROVIDER=loop timeout 120 ./kddsrun -n 2 --timeout 100 --progress \
		tests/observed wide 10 100 > "$dir/out" 2> "$dir/err" ||
		fail "kddsrun --progress: status $?"
	[ ! -s "$dir/err" ] || fail "kddsrun --progress without a terminal: $(cat "$dir/err")"
fi

# The matrix of a small job has what the table of its ranks has; a large job has a list of pairs.
cat > "$dir/pairs.py" << 'END'
import sys
lines = [l.split()[1:] for l in open(sys.argv[1]) if l.startswith('kdds:')]
ranks, small = int(sys.argv[2]), sys.argv[3] == 'matrix'
begin = next(i for i, l in enumerate(lines) if l[:2] == ['rank', 'requests'])
names, table = lines[begin], lines[begin + 1:begin + 2 + ranks]
read = [float(l[names.index('read/MB')]) for l in table]
assert read[-1] > 0, 'nothing has been read'
rest = lines[begin + 2 + ranks:]
def equal(a, b):
    assert abs(a - b) <= 0.05 * (len(rest) + 1), (a, b)
if small:
    columns = [w for i in range(ranks) for w in ('from', str(i))]
    assert rest[0] == ['read/MB', *columns, 'all'], rest
    matrix = [[float(w) for w in l[2 - (l[0] == 'all'):] if w != '-'] for l in rest[1:2 + ranks]]
    assert [m[-1] for m in matrix] == read, 'sums of rows'
    for m in matrix:
        equal(sum(m[:-1]), m[-1])
    for i in range(ranks):
        equal(sum(m[i - (i > k)] for k, m in enumerate(matrix[:-1]) if k != i), matrix[-1][i])
else:
    assert rest[0] == ['read', 'by', 'from', 'read/MB'], rest
    end = next(i for i, l in enumerate(rest) if l[0] == 'all')
    assert 3 <= end <= 17 and rest[end - 1][:2] == ['other', 'pairs'], rest
    assert all(l[0] != l[1] for l in rest[1:end]), rest
    equal(sum(float(l[2]) for l in rest[1:end]), float(rest[end][1]))
    assert float(rest[end][1]) == read[-1], rest
rest = rest[end + 1:] if not small else rest[2 + ranks:]
assert rest[0][:7] == ['task', 'exports', 'closures', 'too', 'dear', 'in/MB', 'out/MB'], rest
assert {l[0] for l in rest[1:]} <= {'stamp', '(steal'}, rest
stamp = next(l for l in rest[1:] if l[0] == 'stamp')
assert stamp[1] == table[-1][names.index('exports')], stamp
equal(sum(float(w) for w in stamp[4:6]), read[-1])
END
for job in '2 matrix' '4 matrix' '14 list'; do
	[ -x ./kddsrun ] || continue
	KDDS_PROVIDER=loop timeout 120 ./kddsrun -n ${job% *} --workers 1 --timeout 100 --stats \
		tests/observed blocks 64 3000 > "$dir/out" 2> "$dir/err" ||
		fail "what $job reads: status $?: $(cat "$dir/err")"
	python3 "$dir/pairs.py" "$dir/err" $job 2> "$dir/why" ||
		fail "what $job reads: $(tail -n 1 "$dir/why"), $(cat "$dir/err")"
done

# a rank that was not told to report
if [ -x ./kddsrun ]; then
	cat > "$dir/one" << 'END'
#!/bin/sh
[ "$KDDS_RANK" = 0 ] || unset KDDS_STATS
exec tests/observed wide 10 10
END
	chmod +x "$dir/one"
	KDDS_PROVIDER=loop KDDS_STATS=1 timeout 120 ./kddsrun -n 2 --timeout 100 "$dir/one" \
		> /dev/null 2> "$dir/err" ||
		fail "KDDS_STATS on one rank: status $?: $(cat "$dir/err")"
	grep -q '1 did not say' "$dir/err" || fail "KDDS_STATS on one rank: $(cat "$dir/err")"
fi

# Random programs on several ranks, observed in every way.
observed()
{
	rm -f "$dir"/t.* "$dir"/d.*
	timeout 120 ./kddsrun -n $ranks --workers 2 --provider loop --timeout 100 \
		tests/oracle -j -s 3 -n "$seed" > "$dir/out" 2> "$dir/err" ||
		fail "$what: status $?: $(tail -n 5 "$dir/out" "$dir/err")"
	grep -q "kdds: T = .* $ranks ranks" "$dir/err" || fail "$what: no statistics"
	for rank in $(seq 0 $((ranks - 1))); do
		[ -s "$dir/d.$rank" ] || fail "$what: no graph of rank $rank"
	done
	timeout 60 ./kdds-trace -q -o "$dir/all" "$dir"/t.* || fail "$what: kdds-trace: $?"
}

if [ -x ./kddsrun ]; then
	seed=$(date +%s)
	for ranks in 2 3; do
		what="the oracle on $ranks ranks, seed $seed"
		KDDS_STATS=1 KDDS_PROGRESS=always KDDS_DOT=$dir/d KDDS_TRACE=$dir/t \
			KDDS_TRACE_SIZE=1M observed
	done
fi

[ $failed = 0 ] || exit 1
echo 'statistics: all shapes'
