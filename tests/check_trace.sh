#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves, by reading them with another program, that the files of KDDS_TRACE and KDDS_DOT are
# well-formed: times in order on each track, slices nested, both ends of every arrow present, and
# every task there. A ring that is too small is reported; a file that cannot be written is reported
# and removed. kdds-trace reads, merges and draws traces, corrects clocks, and refuses other files.
# KDDS_PROGRESS prints nothing unless stderr is a terminal.
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
trace = json.load(open(sys.argv[1]))
tasks, merged = int(sys.argv[2]), int(sys.argv[3])
last, open_, ends, counts, reads = {}, {}, {}, {}, {}
for e in trace['traceEvents']:
    if e['ph'] == 'M':
        continue
    track = (e['pid'], e['tid'])
    assert e['ts'] >= last.get(track, 0), 'time goes back: %s' % e
    last[track] = e['ts']
    if e['ph'] == 'X' and e['cat'] != 'net':
        begin, end = round(e['ts'] * 1000), round((e['ts'] + e['dur']) * 1000)
        stack = open_.setdefault(track, [])
        while stack and stack[-1] <= begin:
            stack.pop()
        assert not stack or end <= stack[-1] + 1, 'slices overlap: %s' % e
        stack.append(end)
    if e['ph'] == 'X':
        counts[e['cat']] = counts.get(e['cat'], 0) + 1
    if e['ph'] == 'b':
        assert e['cat'] == 'read' and e['id'] not in reads, 'a read begins twice'
        assert e['args']['rank'] != e['pid'], 'a rank reads from itself'
        reads[e['id']] = e
    if e['ph'] == 'e':
        begin = reads[e['id']]
        assert (e['pid'], e['name']) == (begin['pid'], begin['name']), 'another read ends'
        ns = round((e['ts'] - begin['ts']) * 1000)
        # a double has 53 bits, and times since the host's start are long
        assert abs(ns - begin['args'].pop('ns')) < 100, 'the length of a read: %s' % begin
    if e['ph'] in 'sf':
        key = (e['id'], e['ph'])
        assert key not in ends, 'an arrow begins or ends twice'
        ends[key] = e['ts']
for id, ph in list(ends):
    if ph == 's' and (id, 'f') not in ends or ph == 'f' and (id, 's') not in ends:
        assert not merged, 'one end of arrow %s' % id
        assert int(id, 16) >> 63, 'one end of arrow %s within a rank' % id
    elif ph == 's':
        assert ends[id, 'f'] >= ends[id, 's'], 'an arrow into the past'
assert not any('ns' in e['args'] for e in reads.values()), 'a read does not end'
if len(sys.argv) > 4: # the statistics: what the ranks have read
    for r in json.load(open(sys.argv[4]))['rank']:
        mine = [e['args']['bytes'] for e in reads.values() if e['pid'] == r['rank']]
        assert sum(mine) == r['fetched_bytes'], 'rank %d has read %s' % (r['rank'], mine)
    assert reads and {e['args']['task'] for e in reads.values()} <= {'stamp', ''}, 'tasks'
if tasks >= 0:
    assert counts.get('task', 0) == tasks, '%d tasks' % counts.get('task', 0)
END

cat > "$dir/svg.py" << 'END'
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
ns = '{http://www.w3.org/2000/svg}'
assert root.tag == ns + 'svg'
width, height = float(root.get('width')), float(root.get('height'))
rects = list(root.iter(ns + 'rect'))[1:]
assert rects, 'nothing is drawn'
for r in rects:
    x, y, w, h = (float(r.get(k)) for k in ('x', 'y', 'width', 'height'))
    assert x >= 0 and y >= 0 and w > 0 and h > 0, 'outside the page'
    assert x + w <= width and y + h <= height, 'outside the page'
rows = [t.text for t in root.findall(ns + 'text') if t.get('text-anchor') == 'end']
assert [t.replace(' ', ':') for t in rows] == sys.argv[2:], rows
END

check()
{
	python3 "$dir/check.py" "$@" 2> "$dir/why" || fail "$what: $1: $(tail -n 1 "$dir/why")"
}

# one process
for shape in 'tree 6 50' 'chain 40 20' 'fan 40 20' 'reduce 40 20' 'synced 20 20' 'wide 3000 0'; do
	for workers in 1 4; do
		what="$shape on $workers"
		KDDS_WORKERS=$workers KDDS_TRACE=$dir/t.json timeout 60 tests/observed $shape \
			> "$dir/out" 2> "$dir/err" ||
			fail "$what: status $?"
		[ ! -s "$dir/err" ] || fail "$what: $(cat "$dir/err")"
		read -r tasks path < "$dir/out"
		check "$dir/t.json" "$tasks" 1
		timeout 60 ./kdds-trace -s "$dir/t.svg" -o "$dir/all.json" "$dir/t.json" \
			> "$dir/summary" || fail "$what: kdds-trace: $?"
		check "$dir/all.json" "$tasks" 1
		[ "$(awk '/^task/ { on = 1; next }
			/^worker/ { on = 0 }
			on { n += $2 }
			END { print n }' "$dir/summary")" = "$tasks" ] ||
			fail "$what: the summary counts otherwise: $(cat "$dir/summary")"
	done
	python3 "$dir/svg.py" "$dir/t.svg" 0.0 0.1 0.2 0.3 2> "$dir/why" ||
		fail "$what: svg: $(tail -n 1 "$dir/why")"
done

# too little room: the trace has its last events, and the number of those dropped
what='KDDS_TRACE_SIZE=64K'
KDDS_WORKERS=1 KDDS_TRACE_SIZE=64K KDDS_TRACE=$dir/t.json timeout 60 tests/observed wide 4000 0 \
	> /dev/null || fail "$what: $?"
check "$dir/t.json" -1 1
python3 -c '
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
there = sum(e.get("cat") in ("task", "part", "idle", "steal") for e in events)
assert there + events[0]["args"]["dropped"] >= 4000 > there == 65536 // 40, (there, events[0])' \
	"$dir/t.json" 2> "$dir/why" ||
	fail "$what: $(tail -n 1 "$dir/why")"
timeout 60 ./kdds-trace "$dir/t.json" | grep -q 'events had no room' ||
	fail "$what: kdds-trace does not say so"

# several ranks: a file per rank, and a merged one
if [ -x ./kddsrun ]; then
	for ranks in 2 3; do
		what="$ranks ranks"
		rm -f "$dir"/t.*
		KDDS_PROVIDER=loop timeout 120 ./kddsrun -n $ranks --workers 2 --timeout 100 \
			--env "KDDS_TRACE=$dir/t.json" --env "KDDS_DOT=$dir/t.dot" \
			tests/observed tree 6 1000 \
			> "$dir/out" 2> "$dir/err" || fail "$what: $(cat "$dir/err")"
		read -r tasks path < "$dir/out"
		for i in $(seq 0 $((ranks - 1))); do
			check "$dir/t.json.$i" -1 0
			[ -s "$dir/t.dot.$i" ] || fail "$what: no graph of rank $i"
		done
		timeout 60 ./kdds-trace -q -o "$dir/all.json" -s "$dir/all.svg" "$dir"/t.json.* ||
			fail "$what: kdds-trace: $?"
		check "$dir/all.json" "$tasks" 1
		python3 "$dir/svg.py" "$dir/all.svg" \
			$(for i in $(seq 0 $((ranks - 1))); do echo $i.0 $i.1; done) \
			2> "$dir/why" ||
			fail "$what: svg: $(tail -n 1 "$dir/why")"
	done
fi

# What ranks read from each other: bars, as many bytes as the statistics say. Ranks that have read
# something have a row for it.
if [ -x ./kddsrun ]; then
	what='reads'
	rm -f "$dir"/t.*
	KDDS_PROVIDER=loop timeout 120 ./kddsrun -n 3 --workers 1 --timeout 100 --stats=json \
		--env "KDDS_TRACE=$dir/t.json" tests/observed blocks 64 3000 \
		> "$dir/out" 2> "$dir/err" || fail "$what: $(cat "$dir/err")"
	timeout 60 ./kdds-trace -o "$dir/all.json" -s "$dir/all.svg" "$dir"/t.json.* \
		> "$dir/summary" || fail "$what: kdds-trace: $?"
	read -r tasks path < "$dir/out"
	check "$dir/all.json" "$tasks" 1 "$dir/err"
	python3 "$dir/svg.py" "$dir/all.svg" $(for i in 0 1 2; do
		echo $i.0
		! grep -q '"ph":"b"' "$dir/t.json.$i" || echo $i:reads
	done) 2> "$dir/why" || fail "$what: svg: $(tail -n 1 "$dir/why")"
	grep -q '<title>read input of stamp: [0-9]* bytes from rank 0, [0-9.]* us</title>' \
		"$dir/all.svg" || fail "$what: svg: no bars"
	awk '/^read for/ { on = 1; next } on { mb += $(NF - 4) + $(NF - 1); n += $(NF - 2) }
		END { exit !(n > 0 && mb > 0) }' "$dir/summary" ||
		fail "$what: $(cat "$dir/summary")"
fi

# clocks: rank 1 runs on another host, whose clock is 5 s ahead; a message takes 10 us there and 30
# us back
what='two clocks'
python3 - "$dir" << 'END'
import sys
head = ('{"traceEvents":[\n{"name":"kdds_rank","ph":"M","pid":%d,'
        '"args":{"rank":%d,"ranks":2,"workers":1,"dropped":0,"host":"h%d"}}')
event = (',\n{"name":"%s","cat":"net","ph":"X","pid":%d,"tid":1,"ts":%d.000,"dur":0.000,'
         '"args":{"rank":0,"flow":"0x8000000000000001"}}')
with open(sys.argv[1] + '/c.0', 'w') as f:
    f.write(head % (0, 0, 0) + event % ('export', 0, 1000) + event % ('result', 0, 2000) + '\n]}\n')
with open(sys.argv[1] + '/c.1', 'w') as f:
    f.write(head % (1, 1, 1) + event % ('arrive', 1, 5001010) + event % ('done', 1, 5001970) +
            '\n]}\n')
END
timeout 60 ./kdds-trace -o "$dir/all.json" "$dir/c.0" "$dir/c.1" > "$dir/summary" ||
	fail "$what: $?"
grep -q '^rank 1: its clock was 4999990.000 us ahead, corrected (give or take 20.000 us)$' \
	"$dir/summary" ||
	fail "$what: $(cat "$dir/summary")"
grep -q '"arrive".*"ts":1020.000,' "$dir/all.json" &&
	grep -q '"done".*"ts":1980.000,' "$dir/all.json" ||
	fail "$what: $(cat "$dir/all.json")"

# times out of range
what='a damaged trace'
sed 's/"ts":[0-9]*/"ts":9223372036854775807/; s/"dur":[0-9]*/"dur":-9223372036854775808/' \
	"$dir/c.1" > "$dir/c.2"
timeout 60 ./kdds-trace -o "$dir/all.json" -s "$dir/all.svg" "$dir/c.0" "$dir/c.2" \
	> "$dir/summary" 2> "$dir/err" || [ $? = 1 ] || fail "$what: $?"
! grep 'runtime error' "$dir/err" || fail "$what"

# the graph
what=KDDS_DOT
cat > "$dir/dot.py" << 'END'
import re, sys
nodes, arrows, nested = {}, set(), {}
text = open(sys.argv[1]).read()
assert text.count('{') == text.count('}') == 1
for line in text.split('{')[1].split('}')[0].strip().split('\n'):
    node = re.fullmatch(r'\t?n(\d+) \[label="(.*)", ?.*\];|\t?n(\d+) \[label="(.*)"\];', line)
    if '->' in line:
        a, b = re.match(r'\tn(\d+) -> n(\d+)', line).groups()
        if 'dotted' in line:
            nested[b] = a
        else:
            arrows.add((a, b))
    elif node:
        nodes[node[1] or node[3]] = node[2] or node[4]
assert set(nested) == set(nodes) - {'0'} and set(nested.values()) <= set(nodes), 'nesting'
assert all(nested[a] == nested[b] for a, b in arrows), 'an arrow between strangers'
n = int(sys.argv[3])
kind = {k: v.split('\\n')[0] for k, v in nodes.items()}
expected = {'chain': n - 1, 'wide': 0, 'fan': 2 * n, 'reduce': n, 'tree': 2 * (2 ** n - 1),
            'synced': 2 * n, 'empty': 5 * n - 1}[sys.argv[2]]
assert len(arrows) == expected, '%d arrows instead of %d' % (len(arrows), expected)
assert len(nodes) - 1 == int(sys.argv[4]), '%d tasks' % (len(nodes) - 1)
END
for shape in 'chain 20' 'wide 20' 'fan 20' 'reduce 20' 'tree 4' 'synced 5' 'empty 5'; do
	for workers in 1 4; do
		KDDS_WORKERS=$workers KDDS_DOT=$dir/t.dot timeout 60 tests/observed $shape 20 \
			> "$dir/out" || fail "$what: $shape: $?"
		read -r tasks path < "$dir/out"
		python3 "$dir/dot.py" "$dir/t.dot" $shape "$tasks" 2> "$dir/why" ||
			fail "$what: $shape: $(tail -n 1 "$dir/why")"
		! command -v dot > /dev/null || dot -Tsvg "$dir/t.dot" > /dev/null ||
			fail "$what: $shape: dot refuses it"
	done
done
KDDS_DOT=$dir/t.dot timeout 60 tests/observed tree 12 0 > /dev/null 2> "$dir/err" ||
	fail "$what: 12286 tasks: $?"
grep -q 'has the first 9999 of 12286 closures' "$dir/err" ||
	fail "$what: 12286 tasks: $(cat "$dir/err")"
[ "$(grep -c 'n[0-9]* \[label' "$dir/t.dot")" = 10000 ] ||
	fail "$what: 12286 tasks: not 10000 nodes"

# files that cannot be written
for variable in KDDS_TRACE KDDS_DOT; do
	status=0
	env $variable="$dir/no/such" timeout 60 tests/observed wide 10 0 \
		> "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 2 ] && grep -q "^kdds: $variable: cannot write $dir/no/such: " "$dir/err" &&
		[ "$(wc -l < "$dir/err")" = 1 ] ||
		fail "$variable in no directory: status $status, $(cat "$dir/err")"
	[ ! -c /dev/full ] || {
		status=0
		env $variable=/dev/full timeout 60 tests/observed wide 1000 0 \
			> "$dir/out" 2> "$dir/err" || status=$?
		[ $status = 1 ] &&
			grep -q "^kdds: $variable: cannot write all of /dev/full: " "$dir/err" &&
			[ "$(wc -l < "$dir/err")" = 1 ] ||
			fail "$variable on a full disk: status $status, $(cat "$dir/err")"
		[ -c /dev/full ] || fail "$variable has removed /dev/full"
	}
	case ${SANITIZE-} in
	*thread*) continue ;; # needs large files itself
	esac
	status=0
	(ulimit -f 8 &&
		exec env $variable="$dir/big" timeout 60 tests/observed wide 4000 0) \
		> "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 1 ] &&
		grep -q "^kdds: $variable: cannot write all of $dir/big: .*removed" "$dir/err" &&
		[ ! -e "$dir/big" ] ||
		fail "$variable beyond the limit: status $status, $(cat "$dir/err")"
done

# the file is created at the end of the run, and not at all by a run that was killed
for variable in KDDS_TRACE KDDS_DOT; do
	what="$variable of a process that is killed" status=0
	rm -f "$dir/killed"
	env $variable="$dir/killed" timeout 60 tests/observed killed 1 0 \
		> "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 137 ] || fail "$what: status $status"
	[ ! -e "$dir/killed" ] || fail "$what: $(wc -c < "$dir/killed") bytes are left"
done

# the user's own links and /dev/stdout are followed; links of another user are not, nor are files of
# others in a directory that everybody can write to
for variable in KDDS_TRACE KDDS_DOT; do
	what="$variable and links"
	rm -rf "$dir/links"
	mkdir -p "$dir/links/deeper"
	ln -s deeper/second "$dir/links/first"
	ln -s "$dir/links/real" "$dir/links/deeper/second"
	env $variable="$dir/links/first" timeout 60 tests/observed wide 10 0 \
		> "$dir/out" 2> "$dir/err" || fail "$what: status $?"
	[ -s "$dir/links/real" ] && [ -L "$dir/links/first" ] ||
		fail "$what: not followed: $(cat "$dir/err")"
	(cd "$dir/links" && ln -s real once &&
		env $variable=once timeout 60 "$OLDPWD/tests/observed" wide 20 0) \
		> "$dir/out" 2> "$dir/err" ||
		fail "$what: in the current directory: $?"
	for file in /dev/stdout /proc/self/fd/1; do
		env $variable=$file timeout 60 tests/observed wide 10 0 2> "$dir/err" | grep -q . ||
			fail "$what: $file: $(cat "$dir/err")"
	done
	ln -s loop "$dir/links/loop"
	chmod 1777 "$dir/links"
	echo mine > "$dir/links/target"
	ln -s target "$dir/links/theirs"
	echo bait > "$dir/links/bait"
	chmod 666 "$dir/links/bait"
	refused='loop'
	if [ "$(id -u)" = 0 ]; then
		chown -h 65534 "$dir/links/theirs" "$dir/links/bait" "$dir/links/first" \
			"$dir/links/deeper/second"
		refused='loop theirs bait first'
	fi
	for name in $refused; do
		status=0
		env $variable="$dir/links/$name" timeout 60 tests/observed wide 10 0 \
			> "$dir/out" 2> "$dir/err" || status=$?
		[ $status = 2 ] &&
			grep -q "^kdds: $variable: cannot write $dir/links/$name: " "$dir/err" &&
			[ "$(wc -l < "$dir/err")" = 1 ] ||
			fail "$what: $name: status $status, $(cat "$dir/err")"
	done
	[ "$(cat "$dir/links/target" "$dir/links/bait")" = 'mine
bait' ] || fail "$what: another user's file was written"
done

# a trace does not say which machine it is from
what='the host in a trace'
KDDS_TRACE=$dir/t.json timeout 60 tests/observed wide 10 0 > /dev/null || fail "$what: $?"
for file in /etc/machine-id /proc/sys/kernel/random/boot_id; do
	[ ! -s $file ] || ! grep -q "$(cat $file)" "$dir/t.json" || fail "$what: $file"
done

# a pipe without a reader does not end the program
cat > "$dir/deaf.py" << 'END'
import os, subprocess, sys
def run(shape, stream, **env):
    r, w = os.pipe()
    os.close(r)
    p = subprocess.run(['tests/observed', *shape.split()], timeout=60,
                       env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                       **{'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, stream: w})
    os.close(w)
    return p
for env in {'KDDS_STATS': '1'}, {'KDDS_STATS': 'json'}, {'KDDS_PROGRESS': 'always'}:
    p = run('wide 20 70000', 'stderr', KDDS_WORKERS='2', **env)
    assert p.returncode == 0 and p.stdout == b'20 1\n', (env, p)
for name in 'KDDS_TRACE', 'KDDS_DOT':
    p = run('wide 20 0', 'stdout', **{name: '/dev/stdout'})
    assert p.returncode == 1 and p.stderr.count(b'\n') == 1 and name.encode() in p.stderr, (name, p)
END
python3 "$dir/deaf.py" 2> "$dir/why" || fail "nobody reads: $(tail -n 1 "$dir/why")"

# a graph uses no memory for the tasks it leaves out
what='KDDS_DOT of 2,000,000 tasks'
for dot in '' "$dir/t.dot"; do
	[ -z "${SANITIZE-}" ] || continue # sanitizers use memory of their own
	KDDS_STATS=json KDDS_DOT=$dot KDDS_WORKERS=1 timeout 120 tests/observed crowd 2000 0 \
		2> "$dir/err" > /dev/null || fail "$what: $?"
	grep -o '"peak_bytes":[0-9]*' "$dir/err" | tail -n 1 | cut -d: -f2
done > "$dir/bytes"
[ -n "${SANITIZE-}" ] ||
	[ "$(($(tail -n 1 "$dir/bytes") - $(head -n 1 "$dir/bytes")))" -lt 8000000 ] ||
	fail "$what: bytes without and with: $(cat "$dir/bytes")"

what='one file for both' status=0
KDDS_TRACE=$dir/both KDDS_DOT=$dir/both timeout 60 tests/observed wide 10 0 \
	> "$dir/out" 2> "$dir/err" || status=$?
[ $status = 2 ] && grep -q '^kdds: KDDS_TRACE and KDDS_DOT' "$dir/err" ||
	fail "$what: status $status, $(cat "$dir/err")"

# files that are not traces, or are damaged
for text in '' '{}' '{"traceEvents":[' "$(head -c 400 "$dir/all.json")" '{"traceEvents":[
{"name":"x","ph":"X","pid":0,"tid":0,"ts":1}
]}'; do
	printf '%s\n' "$text" > "$dir/bad"
	status=0
	timeout 60 ./kdds-trace "$dir/bad" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] && grep -q '^kdds-trace: ' "$dir/err" ||
		fail "kdds-trace of '$text': status $status, $(cat "$dir/err")"
done
for arguments in '' '--no-such' '-o' "$dir/none"; do
	status=0
	timeout 60 ./kdds-trace $arguments > "$dir/out" 2> "$dir/err" || status=$?
	[ $status -ge 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] ||
		fail "kdds-trace $arguments: status $status, $(cat "$dir/err")"
done
timeout 60 ./kdds-trace "$dir/c.0" "$dir/c.0" > "$dir/out" 2> "$dir/err" &&
	fail 'kdds-trace takes the same rank twice'
[ ! -c /dev/full ] || ! timeout 60 ./kdds-trace -q -o /dev/full "$dir/c.0" 2> "$dir/err" ||
	fail 'kdds-trace -o /dev/full: status 0'

# the progress line
KDDS_PROGRESS=1 timeout 60 tests/observed wide 10 1000 > "$dir/out" 2> "$dir/err" ||
	fail "KDDS_PROGRESS=1: $?"
[ ! -s "$dir/err" ] || fail "KDDS_PROGRESS=1 without a terminal: $(cat "$dir/err")"
KDDS_WORKERS=2 KDDS_PROGRESS=always timeout 60 tests/observed wide 20 100000 \
	> "$dir/out" 2> "$dir/err" || fail "KDDS_PROGRESS: $?"
tr '\r' '\n' < "$dir/err" |
	grep -q 'kdds: [0-9.]* s  [0-9]* tasks  [0-9.]*/s  idle [0-9]* %  [0-9]* steals' ||
	fail "KDDS_PROGRESS=always: $(cat "$dir/err")"
[ "$(tail -c 4 "$dir/err" | od -An -c | tr -d ' ')" = '\r033[K' ] ||
	fail 'KDDS_PROGRESS=always: the line stays'

[ $failed = 0 ] || exit 1
echo 'traces and graphs: all'
