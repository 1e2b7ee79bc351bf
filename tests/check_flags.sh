#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests/flags, whose first comment says what it proves: on 1 to 16 workers, on 2 to 9 ranks, and
# in other orders that the links allow (KDDS_CHECK).
set -eu
seconds=1
seed=${FLAGS_SEED:-$(date +%s)}
echo "first seed $seed"

for workers in 1 2 4 16; do
	KDDS_WORKERS=$workers timeout 60 tests/flags -s $seconds "$seed"
	seed=$((seed + 1000003))
done
for provider in loop "loop:$seed" tcp; do
	for ranks in 2 5 9; do
		seed=$((seed + 1000003))
		timeout -k 5 60 ./kddsrun -n $ranks --workers 2 --provider "$provider" \
			tests/flags -s $seconds "$seed"
	done
done
for order in 1 2 3; do
	seed=$((seed + 1000003))
	KDDS_CHECK=$order timeout 60 tests/flags -n 10 "$seed"
done
