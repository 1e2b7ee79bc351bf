#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that what `make install' installs is sufficient for programs outside the tree, in C and
# C++, with the shared and the static library, alone and as two ranks under the installed kddsrun;
# that the shared library exports exactly the kdds_ names that the headers declare and the Debian
# package lists; that every manual page is installed under its own name; and that `make uninstall'
# leaves nothing. The build tree can be used in the same way, uninstalled.
set -eu
[ -z "${SANITIZE-}" ] || exit 77
[ -n "${PKG_CONFIG-}" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
build=$PWD
symbols=$(cd "${srcdir:-.}" && pwd)/debian/libkdds0.symbols # not in a distribution

unset MAKEFLAGS MFLAGS MAKELEVEL
$MAKE -s install DESTDIR="$dir/root" > "$dir/log" 2>&1 || {
	cat "$dir/log"
	exit 1
}
root=$dir/root
for file in "$includedir/kdds.h" "$includedir/kdds/inline.h" "$includedir/kdds/saved.h" \
	"$includedir/kdds/task.h" \
	"$libdir/libkdds.so" "$libdir/libkdds.a" "$pkgconfigdir/kdds.pc" \
	"$libdir/cmake/kdds/kddsConfig.cmake" "$bindir/kddsrun"; do
	[ -e "$root$file" ] || {
		echo "FAILED: $file is not installed"
		exit 1
	}
done

cat > "$dir/program.c" <<'END'
#include <stdio.h>

#include <kdds.h>

KDDS_TASK(add, READ(long, a), READ(long, b), WRITE(long, r)) { **r = **a + **b; }

KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
{
	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib, n - 1, x);
	kdds_spawn(fib, n - 2, y);
	kdds_spawn(add, x, y, r);
}

KDDS_TASK(count, VALUE(double, v), REDUCE(double, s, KDDS_SUM(double))) { **s += v; }

int main()
{
	if (kdds_init())
		return 1;
	KDDS_DATA(long, r);
	KDDS_DATA(double, s);
	**s = 0;
	kdds_spawn(fib, 20, r);
	for (int i = 1; i <= 4; i++)
		kdds_spawn(count, i, s);
	kdds_sync();
	printf("%s %ld %g\n", kdds_version(), **r, **s);
	return kdds_finalize() ? 1 : 0;
}
END
cp "$dir/program.c" "$dir/program.cc"

kdds_flags()
{
	PKG_CONFIG_PATH=$root$pkgconfigdir${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
		$PKG_CONFIG --define-variable=libdir="$root$libdir" \
			--define-variable=includedir="$root$includedir" "$@" kdds
}
version=$(kdds_flags --modversion)
failed=0

# runs COMMAND...: it must end with status 0 and print the right result.
runs()
{
	(cd "$dir" && LD_LIBRARY_PATH=$libraries KDDS_WORKERS=3 timeout 60 "$@") \
		> "$dir/out" 2>> "$dir/log" &&
		[ "$(cat "$dir/out")" = "$version 6765 10" ]
}

# program HOW COMPILE-COMMAND...: compiles and runs the program, and checks what it prints.
program()
{
	how=$1
	shift
	if "$@" -o "$dir/program" > "$dir/log" 2>&1 && runs ./program &&
		runs "$launcher" -n 2 ./program; then
		echo "ok: $how"
	else
		echo "FAILED: $how: $*"
		cat "$dir/log" "$dir/out"
		failed=1
	fi
}
libraries=$root$libdir launcher=$root$bindir/kddsrun

shared=$(kdds_flags --cflags --libs)
# The libraries below libkdds stay shared: their static versions are not always installed.
static=$(kdds_flags --static --cflags --libs | sed "s|-lkdds|$root$libdir/libkdds.a|")
cd "$dir"
program 'C, shared' $CC -std=c11 -Wall -Wextra -Werror -O2 program.c $shared
LD_LIBRARY_PATH=$root$libdir ldd ./program | grep -q "libkdds.* => $root" ||
	{ echo 'FAILED: it does not run with the installed library'; failed=1; }
program 'C, static' $CC -std=c11 -Wall -Wextra -Werror -O2 program.c $static
! ldd ./program | grep libkdds || { echo 'FAILED: that was not static'; failed=1; }
if command -v "${CXX%% *}" > /dev/null; then
	program 'C++, shared' $CXX -std=c++17 -Wall -Wextra -Werror -O2 program.cc $shared
	program 'C++, static' $CXX -std=c++17 -Wall -Wextra -Werror -O2 program.cc $static
else
	echo 'no C++ compiler: C only'
fi

# The uninstalled build tree, whose programs find the library by themselves.
libraries= launcher=$build/kddsrun
program 'C, uninstalled' $CC -std=c11 -Wall -Wextra -Werror -O2 program.c \
	$(PKG_CONFIG_PATH=$build${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
		$PKG_CONFIG --cflags --libs kdds)

# The library must not export names that no header declares.
cat "$root$includedir/kdds.h" "$root$includedir"/kdds/*.h | grep -v '^ *\*' |
	grep -oE '\bkdds_[a-z_]+(\(|\[)' | tr -d '([' | sort -u > "$dir/declared"
nm -D --defined-only "$root$libdir/libkdds.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	sort -u > "$dir/exported"
[ -s "$dir/exported" ] || { echo 'FAILED: libkdds.so exports nothing'; failed=1; }
unknown=$(comm -13 "$dir/declared" "$dir/exported")
[ -z "$unknown" ] || { echo "FAILED: exported, but in no header: $unknown"; failed=1; }
if [ -e "$symbols" ]; then
	sed -n 's/^ \(kdds_[a-z_]*\)@.*/\1/p' "$symbols" | sort |
		comm -3 - "$dir/exported" > "$dir/log"
	[ ! -s "$dir/log" ] ||
		{ echo "FAILED: not as in debian/libkdds0.symbols: $(cat "$dir/log")"; failed=1; }
fi

# mandb indexes a page under the name in its title.
find "$root$mandir" -type f | while read -r page; do
	name=${page##*/}
	grep -q "^\.so man" "$page" ||
		grep -iq "^\.TH \"*${name%.*}\"* \"*${name##*.}\"* " "$page" || echo "$page"
done > "$dir/log"
[ ! -s "$dir/log" ] ||
	{ echo "FAILED: manual pages under other names: $(cat "$dir/log")"; failed=1; }

cd "$build"
$MAKE -s uninstall DESTDIR="$root" > "$dir/log" 2>&1 && left=$(find "$root" -type f -o -type l) &&
	[ -z "$left" ] || {
	echo "FAILED: make uninstall leaves $left"
	failed=1
}
[ $failed = 0 ]
