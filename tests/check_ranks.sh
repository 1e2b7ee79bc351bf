#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests/ranks over UNIX sockets (also losing, duplicating and delaying messages), TCP and
# libfabric, and tests/sleepers. The first comments of these programs say what they prove.
set -eu
export KDDS_WORKERS=1

while read -r ranks provider; do
	echo "$provider, $ranks ranks"
	timeout -k 5 90 ./kddsrun -n "$ranks" --provider "$provider" tests/ranks \
		2> ranks.err < /dev/null || {
		cat ranks.err
		exit 1
	}
	for task in by_pointer by_pointers by_names by_nothing placed_pointer; do
		grep -q "$task stays in its process" ranks.err
	done
done <<'END'
2 loop
3 loop
2 loop:1
5 loop:1
3 loop:2
2 tcp
5 tcp
2 tcp;ofi_rxm
3 tcp;ofi_rxm
END
# With a seed, the loop engine alters 3 % of the reads. They are detected, and the values are right.
# A run makes some 50 reads, so one in five alters none: the next seed is tried.
altered=
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
	KDDS_STATS=json timeout -k 5 90 ./kddsrun -n 2 --provider loop:$seed tests/ranks \
		> ranks.out 2> ranks.err || {
		cat ranks.err
		exit 1
	}
	! grep -q '"total":.*"altered":[1-9]' ranks.err || {
		altered=1
		break
	}
done
[ -n "$altered" ] || {
	echo 'no altered read has been noticed:'
	cat ranks.err
	exit 1
}
timeout -k 5 90 ./kddsrun -n 2 --provider loop tests/ranks tiles > ranks.out 2> ranks.err || {
	cat ranks.err
	exit 1
}
# Two ranks, of which one is kept busy. What the other one updates repeatedly is retained there,
# whether or not its rows have gaps.
for case in retained retained-tiles; do
	KDDS_STATS=json timeout -k 5 90 ./kddsrun -n 2 --provider loop tests/ranks $case \
		> ranks.out 2> ranks.err || {
		cat ranks.err
		exit 1
	}
	grep -q '"total":.*"kept_bytes":[1-9]' ranks.err || {
		echo "no result has stayed at a thief ($case):"
		cat ranks.err
		exit 1
	}
done
# A thief without room for retained results returns them, even if the victim would leave them with
# it.
KDDS_STATS=json timeout -k 5 90 ./kddsrun -n 2 --provider loop \
	sh -c '[ "$KDDS_RANK" = 0 ] || export KDDS_CACHE=0; exec tests/ranks retained' \
	> ranks.out 2> ranks.err || {
	cat ranks.err
	exit 1
}
grep -q '"total":.*"kept_bytes":0[,}]' ranks.err || {
	echo 'results have stayed at a thief without room:'
	cat ranks.err
	exit 1
}
# Rank 1 reads an array of 8 MB once. Packages that are under way at the same time share what they
# read, and later ones find it. After kdds_sync it reads what main has written, in parts of 1 MiB.
# Parts that overlap are not read again either.
for provider in loop tcp; do
	for case in once:8000000 again:8659968 overlaps:8000000; do
		KDDS_STATS=json timeout -k 5 90 ./kddsrun -n 2 --provider $provider \
			tests/ranks ${case%:*} > ranks.out 2> ranks.err || {
			cat ranks.err
			exit 1
		}
		sed -n 's/.*"rank":1,.*"fetched_bytes":\([0-9]*\),.*"total".*/\1/p' ranks.err \
			> ranks.out
		more=$(($(cat ranks.out) - ${case#*:}))
		# A steal message of many closures is read, too.
		if [ "$more" -lt 0 ] || [ "$more" -gt 100000 ]; then
			echo "rank 1 has read something twice ($provider, $case):"
			cat ranks.err
			exit 1
		fi
	done
done
for provider in loop tcp; do
	KDDS_STATS=json timeout -k 5 90 ./kddsrun -n 2 --provider $provider tests/ranks loops \
		> ranks.out 2> ranks.err || {
		cat ranks.err
		exit 1
	}
	sed -n 's/.*"total":.*"fetched_bytes":\([0-9]*\).*/\1/p' ranks.err > ranks.out
	if [ "$(cat ranks.out)" -gt 8500000 ]; then # long steal messages count, too
		echo "loops over 8 MB have moved more ($provider):"
		cat ranks.err
		exit 1
	fi
done
# A rank announces how much memory it has, and is given nothing that needs more. (Sanitizers need
# more.)
if [ -z "${SANITIZE-}" ]; then
	timeout -k 5 60 ./kddsrun -n 2 --provider loop --env KDDS_STACK=64M \
		sh -c '[ "$KDDS_RANK" = 0 ] || ulimit -v 3000000; exec tests/ranks room' \
		> ranks.out 2> ranks.err || {
		cat ranks.err
		exit 1
	}
	[ "$(wc -l < ranks.err)" = 1 ] &&
		grep -q '^kdds: task stay stays in its process: its data have more' ranks.err || {
		echo 'a rank with too little memory:'
		cat ranks.err
		exit 1
	}
fi
# When no worker sleeps, retained results are requested nevertheless. (Ranks that share a processor
# request them when they sleep.)
if [ "$(nproc)" -ge 2 ]; then
	KDDS_SPIN_US=10000000 timeout -k 5 60 ./kddsrun -n 2 --provider loop tests/ranks \
		> ranks.out 2> ranks.err || {
		cat ranks.err
		echo 'failed without sleep'
		exit 1
	}
fi
timeout -k 5 90 ./kddsrun -n 2 --workers 3 --provider loop tests/sleepers
# A rank has some 16 files open before it connects to another. A soft limit is raised if possible;
# otherwise the rank ends instead of waiting forever.
timeout -k 5 60 ./kddsrun -n 2 --provider 'tcp;ofi_rxm' \
	sh -c 'ulimit -Sn 18 && exec tests/ranks' > ranks.out 2> ranks.err || {
	cat ranks.err
	echo 'a low soft limit of open files is not raised'
	exit 1
}
if timeout -k 5 60 ./kddsrun -n 2 --provider 'tcp;ofi_rxm' \
	sh -c 'ulimit -n 18 && exec tests/ranks' > ranks.out 2> ranks.err ||
	! grep -q 'open files' ranks.err; then
	cat ranks.err
	echo 'no complaint about too low a limit of open files'
	exit 1
fi
# A read from a dead rank must be given up, and not every provider is known to do so.
if timeout -k 5 60 ./kddsrun -n 2 --survive --provider sockets tests/ranks \
	> ranks.out 2> ranks.err || ! grep -q 'sockets cannot give up reads' ranks.err; then
	cat ranks.err
	echo 'no complaint about a provider that cannot survive losses'
	exit 1
fi
rm -f ranks.err ranks.out
