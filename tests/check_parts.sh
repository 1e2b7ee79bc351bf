#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests/parts and tests/lists, whose first comments say what they prove: on 1 to 16 workers, also
# with windows that are often full, on 2 to 5 ranks, and in other orders that the links allow
# (KDDS_CHECK).
set -eu
seconds=1
orders='1 2 3 4 5 6'
[ -z "${SANITIZE-}" ] || orders='1 4' # in one thread, and slow
seed=${PARTS_SEED:-$(date +%s)}
echo "first seed $seed"

for program in tests/parts tests/lists; do
	for workers in 1 2 4 16; do
		KDDS_WORKERS=$workers timeout 60 $program -s $seconds "$seed"
		seed=$((seed + 1000003))
	done
	KDDS_WINDOW=64K KDDS_WORKERS=4 timeout 60 $program -s $seconds "$seed"
	for provider in loop "loop:$seed" tcp; do
		for ranks in 2 3 5; do
			seed=$((seed + 1000003))
			timeout -k 5 60 ./kddsrun -n $ranks --workers 2 --provider "$provider" \
				$program -s $seconds "$seed"
		done
	done
	for order in $orders; do
		seed=$((seed + 1000003))
		KDDS_CHECK=$order timeout 60 $program -s $seconds "$seed"
	done
done
