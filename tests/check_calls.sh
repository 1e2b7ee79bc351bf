#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests/calls, whose first comment says what it proves, on 1 to 16 workers and 2 to 5 ranks.
set -eu
seconds=3
seed=${CALLS_SEED:-$(date +%s)}
echo "first seed $seed"

for workers in 1 2 4 16; do
	KDDS_WORKERS=$workers timeout 60 tests/calls -s $seconds "$seed"
	seed=$((seed + 1000003))
done
for provider in loop "loop:$seed" tcp; do
	for ranks in 2 3 5; do
		timeout -k 5 60 ./kddsrun -n $ranks --workers 2 --provider "$provider" \
			tests/calls -s $seconds "$seed"
		seed=$((seed + 1000003))
	done
done
