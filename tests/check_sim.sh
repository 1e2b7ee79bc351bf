#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves the invariants of a simulation: the same seed gives the same run, work is neither lost nor
# done twice, no job is faster than its work and its longest path allow, and one worker takes as
# long as the work.
set -eu
[ "${SANITIZE-}" != thread ] || exit 77 # it has one thread

sim=bench/sim
failed=0

# check WHAT CONDITION JOB...: CONDITION is an awk expression over the keys of the result.
check()
{
	what=$1 condition=$2
	shift 2
	$sim run "$@" | awk -v what="$what" -v job="$*" '{
		for (i = 1; i <= NF; i++) { split($i, pair, "="); v[pair[1]] = pair[2] }
		time = v["time"]; work = v["work"]; depth = v["depth"]
		done = v["done"]; speed = v["speed"]
	}
	END {
		if (NR != 1 || !('"$condition"')) {
			print "check_sim: failed: " what ": " job
			print
			exit 1
		}
	}' || failed=1
}

for tree in fib:30:10 knary:20:10:8 random:1e9:8:1:1e5; do
	check 'one worker takes as long as the work' 'time == work && done == work' ranks=1 \
		tree=$tree
	for job in 'ranks=2' 'ranks=7 workers=3' 'ranks=16 cores=2' 'ranks=33 rules=random' \
		'ranks=20 rules=lossy' 'ranks=9 workers=9 half=1 leave=1' \
		'ranks=50 tries=0 backoff=1000' 'ranks=12 slow=.5 fast=2'; do
		for seed in 1 2 3; do
			words="$job tree=$tree seed=$seed"
			check 'all work is done, once' 'done == work' $words
			check 'no longer path than time' \
				'time * 2 >= depth && (speed != 1 || time >= depth)' $words
			case $job in
			*workers=3) p=21 ;;
			*cores=2) p=2 ;;
			*workers=9*) p=81 ;;
			*) p=$(echo "$job" | sed 's/^ranks=\([0-9]*\).*/\1/') ;;
			esac
			check 'no more work than workers can do' \
				"time * speed * $p >= work * .999999" $words
		done
	done
	a=$($sim run ranks=40 workers=4 tree=$tree seed=7)
	b=$($sim run ranks=40 workers=4 tree=$tree seed=7)
	[ "$a" = "$b" ] || { echo "check_sim: two runs with one seed differ: $tree"; failed=1; }
done
check 'one worker of Cholesky' 'time == work' ranks=1 nt=8
check 'one worker of CG' 'time == work' ranks=1 blocks=8 points=1024 steps=3 cg=1
for ranks in 2 5 16; do
	for graph in nt=12 'nt=12 placed=1' 'nt=12 depth=0 peers=2' 'nt=12 rules=return' \
		'blocks=20 points=2048 steps=5' 'blocks=20 points=2048 steps=5 cg=1 placed=1' \
		'blocks=20 points=2048 steps=5 cg=1 sync=1 peers=0'; do
		check 'a graph: all work, no more than the workers can do, no path cut' \
			"done == work && time >= depth && time * $ranks >= work" ranks=$ranks $graph
	done
done
exit $failed
