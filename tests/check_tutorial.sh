#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that every program in doc/tutorial.md compiles, that every command there prints what the
# tutorial says, and that KDDS_CHECK finds no mistake in the programs but one. Blocks "```c FILE" are files; "```console" blocks are commands, each after "$ " and
# followed by its output. No other blocks are allowed.
set -eu
[ -z "${SANITIZE-}" ] || exit 77
[ -n "${PKG_CONFIG-}" ] || exit 77
build=$PWD
tutorial=$(cd "${srcdir:-.}" && pwd)/doc/tutorial.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The cc, pkg-config and kddsrun that the tutorial uses.
mkdir "$dir/bin" "$dir/work"
for pair in "cc:$CC -Wall -Wextra -Werror" "pkg-config:$PKG_CONFIG"; do
	printf '#!/bin/sh\nexec %s "$@"\n' "${pair#*:}" > "$dir/bin/${pair%%:*}"
	chmod +x "$dir/bin/${pair%%:*}"
done
PATH=$dir/bin:$build:$PATH
PKG_CONFIG_PATH=$build${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH PKG_CONFIG_PATH LD_LIBRARY_PATH

cd "$dir/work"
awk '
/^```/ && inside { inside = 0; next }
/^```c / { inside = 1; file = $2; files++; next }
/^```console$/ { inside = 1; file = "../session"; consoles++; next }
/^```/ { print "FAILED: line " NR ": a block that is neither a file nor commands: " $0; exit 1 }
inside { print > file }
END { if (!files || !consoles || inside) { print "FAILED: no blocks, or an open one"; exit 1 } }' \
	"$tutorial"

# The session again, as it runs here. It shows a command that fails silently.
sed -n 's/^\$ //p' ../session | while read -r command; do
	printf '$ %s\n' "$command"
	timeout 100 sh -c "$command" 2>&1 < /dev/null || echo "status $?"
done > ../here
diff -u ../session ../here || {
	echo 'FAILED: (-) what the tutorial says and (+) what happened differ'
	exit 1
}
for program in *.c; do
	program=${program%.c}
	[ -x "$program" ] && [ "$program" != square ] || continue
	for number in 1 2; do
		KDDS_CHECK=$number timeout 100 "./$program" 2>&1 > ../out < /dev/null |
			sed "s/^/FAILED: KDDS_CHECK=$number $program: /"
	done
done > ../mistakes
cat ../mistakes
[ ! -s ../mistakes ]
echo "$(ls ./*.c | wc -l) programs, $(grep -c '^\$ ' ../session) commands"
