#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that the manual pages have the current version and no mistakes that groff or mandoc would
# warn about; that every function and macro they describe is in the headers, and every function in
# the headers has a page; and that the example of each page compiles without a warning and runs,
# that of kdds-ranks(7) also on three ranks.
set -eu
srcdir=${srcdir:-.}
build=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
	echo "FAILED: $*"
	failed=$((failed + 1))
}

version=$(sed -n 's/^#define KDDS_VERSION_[A-Z]* *\([0-9]*\)$/\1/p' "$srcdir/include/kdds.h" |
	tr '\n' . | sed 's/\.$//')
for page in "$srcdir"/doc/*.[1-9]; do
	grep -q "^\.TH [A-Z_-]* [1-9] [0-9-]* \"libkdds $version\" " "$page" ||
		fail "$page: the title is not that of version $version"
	if command -v groff > /dev/null; then
		groff -man -ww -Tutf8 -z "$page" > "$dir/log" 2>&1 && [ ! -s "$dir/log" ] ||
			fail "$page: groff: $(cat "$dir/log")"
	fi
	if command -v mandoc > /dev/null; then
		mandoc -Tlint -W warning "$page" > "$dir/log" 2>&1 ||
			fail "$page: mandoc: $(cat "$dir/log")"
	fi
done

# names PAGE: the names in its NAME section.
names()
{
	sed -n '/^\.SH NAME/,/ \\- /{ /^\.SH/d; s/ \\- .*//; s/,//g; p; }' "$1" | tr ' ' '\n' |
		grep .
}

for page in "$srcdir"/doc/*.3; do
	names "$page"
done | sort > "$dir/documented"
twice=$(uniq -d "$dir/documented")
[ -z "$twice" ] || fail "in two pages: $twice"
cat "$srcdir/include/kdds.h" "$srcdir/include/kdds/task.h" "$srcdir/include/kdds/inline.h" \
	> "$dir/headers"
while read -r name; do
	grep -q "\b$name\b" "$dir/headers" || fail "$name has a page, but is in no header"
done < "$dir/documented"
# What is declared outside @cond internal.
sed '/@cond internal/,/@endcond/d; /^typedef/d' "$srcdir/include/kdds.h" \
	"$srcdir/include/kdds/task.h" |
	sed -n -e 's/^#define \(kdds_[a-z_]*\)(.*/\1/p' -e 's/^#define \(KDDS_[A-Z_]*\)(.*/\1/p' \
		-e 's/^[a-z][a-z_ ]*[ *]\(kdds_[a-z_]*\)(.*/\1/p' |
	sort -u > "$dir/declared"
[ "$(wc -l < "$dir/declared")" -gt 30 ] ||
	fail "few names were found in the headers: $(cat "$dir/declared")"
# Attributes are described in kdds_spawn(3).
comm -23 "$dir/declared" "$dir/documented" | grep -v '^KDDS_ON_' > "$dir/missing" || :
[ ! -s "$dir/missing" ] || fail "no manual page names $(tr '\n' ' ' < "$dir/missing")"

# example PAGE: the program in its EXAMPLE section.
example()
{
	sed -n '/^\.SH EXAMPLES/,/^\.EE/p' "$1" | sed '1,/^\.EX/d; /^\.EE/d; s/\\-/-/g; s/\\e/\\/g'
}

# Runs $program on three ranks: it prints the same.
on_ranks()
{
	[ -x ./kddsrun ] || return 0
	LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 120 \
		./kddsrun -n 3 --workers 1 --provider loop --timeout 100 "$program" \
		> "$dir/ranks" 2> "$dir/log" ||
		fail "$page: its example on 3 ranks: status $?: $(cat "$dir/log")"
	cmp -s "$dir/out" "$dir/ranks" ||
		fail "$page: its example on 3 ranks: $(cat "$dir/ranks")"
}

examples=0
for page in "$srcdir"/doc/*.[37]; do
	program=$dir/$(basename "$page" | tr . _)
	example "$page" > "$program.c"
	[ -s "$program.c" ] || {
		fail "$page has no example"
		continue
	}
	${CC:-cc} ${SANITIZE:+-fsanitize=$SANITIZE} -std=c11 -Wall -Wextra -Werror -O1 \
		-I"$srcdir/include" -o "$program" "$program.c" \
		-L.libs -lkdds > "$dir/log" 2>&1 || {
		fail "$page: its example does not compile: $(head -n 20 "$dir/log")"
		continue
	}
	LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} KDDS_WORKERS=3 \
		timeout 60 "$program" > "$dir/out" 2> "$dir/log" ||
		fail "$page: its example ends with status $?: $(cat "$dir/log")"
	[ -s "$dir/out" ] && [ ! -s "$dir/log" ] ||
		fail "$page: its example prints nothing, or complains: $(cat "$dir/log")"
	case $page in
	*-ranks.7) on_ranks ;;
	esac
	examples=$((examples + 1))
done
echo "$examples examples"
[ $failed = 0 ]
