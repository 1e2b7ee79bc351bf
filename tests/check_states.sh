#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves: the states and transitions that doc/protocol.md draws are those of the enums and tables of
# allowed transitions in src/, and one function makes every transition of an object.
set -eu
src=${srcdir:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# drawn DOC TITLE: the states and arrows below that title, up to the next text without an arrow.
drawn()
{
	awk -v title="    $2" '
		on && NF && !/──>/ { exit }
		on && NF {
			n = split($0, part, / *──> */)
			for (i = 1; i <= n; i++) {
				state = part[i]
				sub(/^ */, "", state)
				sub(/ *── .*/, "", state)
				print "state " state
				if (i > 1)
					print last " -> " state
				last = state
			}
		}
		$0 == title { on = 1 }' "$1" | sort -u
}

# coded PREFIX ENUM-FILE ENUM TABLE-FILE: likewise, of an enum whose names have that prefix.
coded()
{
	{
		awk -v prefix="$1" -v name="enum $3 {" '
			/^};/ { on = 0 }
			on && match($0, prefix "[A-Z_]+") {
				name_begin = RSTART + length(prefix)
				print "state " substr($0, name_begin, RLENGTH - length(prefix))
			}
			index($0, name) == 1 { on = 1 }' "$2"
		awk -v prefix="$1" '
			/};/ { on = 0 }
			on && match($0, /\[[A-Z_]+\]/) {
				n = length(prefix)
				from = substr($0, RSTART + 1 + n, RLENGTH - 2 - n)
				while (match($0, /TO\([A-Z_]+\)/)) {
					print from " -> " substr($0, RSTART + 3, RLENGTH - 4)
					$0 = substr($0, RSTART + RLENGTH)
				}
			}
			/allowed\[\] = \{/ { on = 1 }' "$4"
	} | sort -u
}

differences()
{
	diff "$dir/drawn" "$dir/coded" |
		sed -n "s/^</$1: only drawn:/p; s/^>/$1: only in the source:/p"
}

# states TREE TITLE PREFIX ENUM-FILE ENUM TABLE-FILE: prints what is on one side only.
states()
{
	drawn "$1/doc/protocol.md" "$2" > "$dir/drawn"
	coded "$3" "$1/src/$4" "$5" "$1/src/$6" > "$dir/coded"
	differences "${2%% (*}"
	cat "$dir/coded" >> "$dir/all"
}

# compare TREE: lines that are on one side only, and assignments to a state outside of its function.
compare()
{
	states "$1" 'export (victim)' EXPORT_ remote/export.c export_state remote/export.c
	states "$1" 'import (thief)' IMPORT_ remote/import.c import_state remote/import.c
	states "$1" 'host (kddsrun)' RUN_HOST_ kddsrun/run_host.h run_host_state kddsrun/run_host.c
	states "$1" 'rank (kddsrun)' RUN_RANK_ kddsrun/run_job_state.h run_rank_state \
		kddsrun/run_job_state.c
	states "$1" 'end (agent)' RUN_ kddsrun/run_agent_state.h run_agent_stage \
		kddsrun/run_agent_end.c
	(
		cd "$1/src"
		grep -nE '(->|\.)(state|stage) = |(store|exchange|cas)[a-z_]*\(&[a-z>.-]*->state,' \
			remote/export.c remote/import.c kddsrun/run_*.[ch] |
			grep -vE ':.(r|x|h|agent|im)(->|\.)(state|stage) = (to|next);$' |
			grep -vE ':.kd_store_relaxed\(&im->state, to\);$' |
			sed 's/^/a state changes outside of its function: /'
	) || :
}

: > "$dir/all"
compare "$src" > "$dir/faults"
if [ -s "$dir/faults" ]; then
	echo 'FAILED: the states of doc/protocol.md and of src/:'
	cat "$dir/faults"
	failed=1
fi
[ "$(grep -c '^state' "$dir/all")" -ge 24 ] && [ "$(grep -c ' -> ' "$dir/all")" -ge 23 ] || {
	echo 'FAILED: hardly any state was found'
	failed=1
}

# What it is to find: one fault at a time, made by sed in a copy of a file.
try()
{
	rm -rf "$dir/tree"
	mkdir -p "$dir/tree/doc" "$dir/tree/src"
	cp "$src/doc/protocol.md" "$dir/tree/doc"
	cp -R "$src/src/remote" "$src/src/kddsrun" "$dir/tree/src"
	chmod -R u+w "$dir/tree"
	sed "$2" "$src/$1" > "$dir/tree/$1"
	compare "$dir/tree" > "$dir/faults"
	grep -qF "$3" "$dir/faults" || {
		echo "FAILED: not found: $3"
		failed=1
	}
}
try doc/protocol.md 's/ANSWERED ── outputs to read ──> COMING/COMING/' \
	'export: only in the source: ANSWERED -> COMING'
try doc/protocol.md 's/taken ──> BEGUN/taken ──> STARTED/' 'import: only drawn: state STARTED'
try src/remote/export.c 's/= TO(COMPLETE) |/= TO(COMPLETE) | TO(OUT) |/' \
	'export: only in the source: COMING -> OUT'
try src/remote/export.c 's/= TO(ANSWERED) |/=/' 'export: only drawn: OUT -> ANSWERED'
try src/remote/export.c 's/EXPORT_COMING,/EXPORT_GONE,/' \
	'export: only in the source: state GONE'
try src/remote/import.c 's/^.net->imports->live--;/	im->state = IMPORT_BEGUN;/' \
	'outside of its function: remote/import.c'
try src/remote/export.c 's/^.turn(.*/	x->state = EXPORT_OUT;/' \
	'outside of its function: remote/export.c'
try src/kddsrun/run_host.c 's/= TO(SERVING) |/= TO(DONE) |/' \
	'host: only drawn: STARTING -> SERVING'
try doc/protocol.md 's/STRANGER ── exits ──> NEVER_JOINED//' \
	'rank: only in the source: STRANGER -> NEVER_JOINED'
try src/kddsrun/run_agent_end.c 's/| TO(FINISHED)//' 'end: only drawn: ASKED -> FINISHED'
[ $failed = 0 ] || exit 1
echo 'states: as drawn'
