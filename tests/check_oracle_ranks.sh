#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that tests/oracle's random programs give the sequential values on 1 to 8 ranks, over an
# engine that loses, duplicates and delays messages, over TCP, with and without reads by the kernel,
# and over libfabric, with one worker per rank and with more. Prints the first seed. ORACLE_SEED=n
# repeats a run with that seed, within the limits of timing. `make soak SECONDS=...' runs it longer.
set -eu
case ${SANITIZE-} in
'') seconds=60 ;;
*) seconds=40 ;;
esac
seconds=${ORACLE_SECONDS:-$seconds}
seed=${ORACLE_SEED:-$(date +%s)}
echo "first seed $seed"

# Each line: ranks, workers per rank (0: one per CPU), provider, KDDS_DIRECT if not 1.
configurations='1 0 loop
2 1 loop
2 2 loop:
3 1 loop:
4 2 tcp
4 1 loop:
5 1 tcp 0
6 2 loop:
8 1 loop:
8 1 tcp;ofi_rxm'
n=$(echo "$configurations" | wc -l)
each=$(((seconds + n - 1) / n))

echo "$configurations" | while read -r ranks workers provider direct; do
	case $provider in
	*ofi*) ldconfig -p 2> /dev/null | grep -q 'libfabric\.so\.1' || continue ;;
	*:) provider=$provider$seed ;;
	esac
	echo "$ranks ranks of $workers workers, provider $provider, seed $seed:"
	status=0
	KDDS_PROVIDER=$provider KDDS_WORKERS=$workers KDDS_DIRECT=${direct:-1} \
		timeout -k 10 $((4 * each + 30)) ./kddsrun -n "$ranks" tests/oracle -j -s "$each" \
		-n "$seed" < /dev/null || status=$?
	if [ $status != 0 ]; then
		echo "status $status: KDDS_PROVIDER='$provider' KDDS_WORKERS=$workers" \
			"KDDS_DIRECT=${direct:-1} ./kddsrun -n $ranks tests/oracle -j -n $seed" >&2
		exit 1
	fi
	seed=$((seed + 100003))
done
