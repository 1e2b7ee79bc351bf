#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that the library works where the kernel refuses membarrier(2): tests/oracle's random
# programs give the sequential values on 2, 4 and 16 workers, with steals and without any
# membarrier. That the fence in every claim suffices is proved in tests/models; random runs do not
# find a missing fence. ORACLE_SEED=n repeats a run with that seed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
seed=${ORACLE_SEED:-$(date +%s)}
steals=0

# total NAME: a counter of the statistics.
total()
{
	sed -n 's/.*"total":{\(.*\)}.*/,\1,/p' "$dir/err" | sed -n "s/.*,\"$1\":\([0-9]*\),.*/\1/p"
}

for workers in 2 4 16; do
	status=0
	KDDS_STATS=json KDDS_WORKERS=$workers timeout -k 10 80 \
		tests/without_membarrier tests/oracle -j -s "${ORACLE_SECONDS:-5}" -n "$seed" \
		> "$dir/out" 2> "$dir/err" || status=$?
	cat "$dir/out"
	if [ $status != 0 ]; then
		cat "$dir/err" >&2
		[ $status = 77 ] || echo "status $status: KDDS_WORKERS=$workers, seed $seed" >&2
		exit $status
	fi
	echo "$workers workers: $(total steals) steals, $(total membarriers) membarriers"
	[ "$(total membarriers)" = 0 ]
	steals=$((steals + $(total steals)))
	seed=$((seed + 100003))
done
[ $steals -gt 0 ]
