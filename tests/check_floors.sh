#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that a file of src/ includes only files of its own folder and of the folders below it, and
# that no two files include each other, however indirectly (NAME.c and NAME.h count as one), and
# that no two have the same name, as their objects would.
# CONTRIBUTING.md has the drawing.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# Each folder, followed by the folders that its files may include from.
cat > "$dir/floors" << 'END'
base: base
core: core base
comm: comm base
boot: boot base
remote: remote core comm boot base
observe: observe remote core comm boot base
kddsrun: kddsrun core boot base
kdds-trace: kdds-trace base
top: top observe remote core comm boot base
END

# faults SRC: prints a line for each include that violates the order, each cycle, and each name of
# several files below SRC.
faults()
{
	(
		cd "$1"
		grep -r '^ *# *include "' --include='*.[ch]' . | grep -v '"kdds\(\.h\|/\)' |
			# the public headers are below all
			sed 's|^\./\([^:]*\):[^"]*"\([^"]*\)".*|\1 \2|' |
			sed 's|^\([^/ ]*\) |top/\1 |; s| \([^/]*\)$| top/\1|' > "$dir/includes"
	)
	awk 'NR == FNR {
			folder = substr($1, 1, length($1) - 1)
			known[folder]
			for (i = 2; i <= NF; i++)
				may[folder, $i]
			next
		}
		{
			split($1, from, "/"); split($2, to, "/")
			if (!(from[1] in known))
				print $1 ": a folder that is not in the order"
			else if (!((from[1], to[1]) in may))
				print $1 " includes " $2
		}' "$dir/floors" "$dir/includes" | sort -u
	sed 's/\.[ch]//g' "$dir/includes" | awk '$1 != $2' | tsort 2>&1 > /dev/null |
		sed 's/^tsort: //'
	find "$1" -name '*.c' | sed 's|.*/\(.*\)|several files named \1|' | sort | uniq -d
}

faults "${srcdir:-.}/src" > "$dir/faults"
if [ -s "$dir/faults" ]; then
	echo 'FAILED: the floors of src/:'
	cat "$dir/faults"
	failed=1
fi
[ "$(wc -l < "$dir/includes")" -gt 300 ] || {
	echo 'FAILED: hardly any include was found'
	failed=1
}

# The test of this test: a tree with one fault of each kind.
mkdir -p "$dir/src/base" "$dir/src/core" "$dir/src/attic"
echo '#include "core/steal.h"' > "$dir/src/base/log.c"
echo '#include "core/steal.h"' > "$dir/src/core/worker.c"
echo '#include "core/worker.h"' > "$dir/src/core/steal.h"
echo '#include "base/log.h"' > "$dir/src/attic/old.c"
echo '#include "core/steal.h"' > "$dir/src/api.c"
: > "$dir/src/core/log.c"
faults "$dir/src" > "$dir/faults"
for fault in 'base/log.c includes core/steal.h' 'attic/old.c: a folder that is not in the order' \
	'contains a loop' 'several files named log.c'; do
	grep -q "$fault" "$dir/faults" || {
		echo "FAILED: not found: $fault"
		failed=1
	}
done
if grep -q '^top' "$dir/faults"; then
	echo 'FAILED: api.c may include core/steal.h'
	failed=1
fi
[ $failed = 0 ] || exit 1
echo 'floors: in order'
