#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that an exception that leaves a C++ task is a failure of the task, that one in an operator
# ends the program with one line, and that the scheduler is not unwound. Tasks that share objects
# with non-trivial copying are known to stay in their process.
set -eu
command -v "${CXX:-c++}" > /dev/null || exit 77
srcdir=${srcdir:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

cat > "$dir/throws.cc" <<'END'
#include <kdds.h>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
struct total { long n; };
KDDS_TASK(append, UPDATE(std::string, s), READ_ARRAY(long, n)) { **s += (char)(*n)[0]; }
KDDS_OP(sum, total, (total{0}), KDDS_ORDERED)
{
	if (y->n == 7)
		throw std::runtime_error("seven");
	x->n += y->n;
}
KDDS_TASK(counts, VALUE(long, i), REDUCE(total, s, &sum)) { (**s).n += i; }
KDDS_TASK(throws, VALUE(int, i), UPDATE(long, x))
{
	++**x;
	if (i == 3)
		throw std::runtime_error("three is too many");
	if (i == -3)
		throw 3;
}
KDDS_TASK(catches, VALUE(int, i), UPDATE(long, x))
{
	try {
		if (i == 3)
			throw std::logic_error("caught");
	} catch (std::exception &) {
		++**x;
	}
}
KDDS_TASK(spawns, VALUE(int, sign), UPDATE(long, x))
{
	for (int i = 0; i < 10; i++)
		kdds_spawn(throws, sign * i, x);
}
int main(int, char **argv)
{
	if (kdds_init())
		return 2;
	if (!strcmp(argv[1], "shares"))
		return kd_access_append[0].pointers && !kd_access_append[1].pointers ? 4 : 6;
	long n = 0;
	total all = {0};
	KDDS_OVER(long, x, &n);
	KDDS_OVER(total, s, &all);
	try {
		for (int i = 0; i < 10; i++) {
			if (!strcmp(argv[1], "task") || !strcmp(argv[1], "handled"))
				kdds_spawn(throws, i, x);
			else if (!strcmp(argv[1], "type"))
				kdds_spawn(spawns, -1, x);
			else if (!strcmp(argv[1], "operator"))
				kdds_spawn(counts, i, s);
			else
				kdds_spawn(catches, i, x);
		}
		if (kdds_sync() == KDDS_EXCEPTION && !strcmp(argv[1], "handled")) {
			struct kdds_failure f;
			return kdds_failure(&f) != KDDS_EXCEPTION || strcmp(f.task, "throws") ||
			       strcmp(f.text, "three is too many") || n != 4 || kdds_finalize() ? 3 : 4;
		}
		if (n == 1)
			throw std::runtime_error("of main's own");
	} catch (std::exception &) {
		return kdds_finalize() ? 3 : 4;
	}
	return kdds_finalize() ? 3 : 0;
}
END
"${CXX:-c++}" ${SANITIZE:+-fsanitize=$SANITIZE} -std=c++17 -Wall -Wextra -Werror -pedantic \
	-O1 "-I$srcdir/include" -o "$dir/throws" "$dir/throws.cc" -L.libs -lkdds
while read -r case status line; do
	got=0
	LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} KDDS_WORKERS=2 \
		timeout 60 "$dir/throws" "$case" 2> "$dir/log" || got=$?
	[ $got = "$status" ] && [ "$(cat "$dir/log")" = "$line" ] ||
		{
			echo "FAILED: $case: status $got: $(cat "$dir/log")"
			failed=1
		}
done <<'END'
task 1 kdds: task throws has failed with code -65536: three is too many
type 1 kdds: task throws has failed with code -65536: an exception of a type of its own
handled 4
operator 1 kdds: operator sum: a C++ exception leaves its body: seven
catches 4
shares 4
END
[ $failed = 0 ]
