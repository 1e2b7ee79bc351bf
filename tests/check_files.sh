#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that tasks which a header declares (KDDS_TASK_EXTERN) and one file defines can be spawned
# from another file: in C and C++, with every compiler installed, from a static and a shared
# library, in one process and on three ranks; and that a definition with other parameters or modes,
# or a second definition, is an error. A library that dlclose would remove keeps its tasks to
# itself.
set -eu
[ -z "${SANITIZE-}" ] || exit 77
build=$PWD
include=$(cd "${srcdir:-.}" && pwd)/include
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0 checked=0
LD_LIBRARY_PATH=$dir:$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

cat > "$dir/tasks.h" <<'END'
#ifndef TASKS_H
#define TASKS_H
#include <kdds.h>
#ifdef __cplusplus
extern "C" {
#endif
KDDS_TASK_EXTERN(fib, VALUE(int, n), WRITE(long, r))
KDDS_TASK_EXTERN(twice, READ_EACH(long, x), WRITE_EACH(long, y), REDUCE(long, s, KDDS_SUM(long)))
KDDS_TASK_EXTERN(halves, UPDATE_ARRAY(long, a), UPDATE(long, n))
struct path { long step[4]; int n; };
KDDS_TASK_EXTERN(walk, VALUE(struct path, p), REDUCE(long, s, KDDS_SUM(long)))
KDDS_TASK_EXTERN(nothing)
#ifdef __cplusplus
}
#endif
#endif
END

cat > "$dir/tasks" <<'END'
#include "tasks.h"

KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r)) { **r = **a + **b; }

KDDS_TASK_DEFINE(fib, VALUE(int, n), WRITE(long, r))
{
	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib, n - 1, x);
	kdds_spawn(fib, n - 2, y);
	kdds_spawn(sum, x, y, r);
}

KDDS_TASK_DEFINE(twice, READ_EACH(long, x), WRITE_EACH(long, y), REDUCE(long, s, KDDS_SUM(long)))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		**s += (*y)[k] = 2 * (*x)[k];
}

KDDS_TASK(bump, UPDATE_ARRAY(long, a), UPDATE(long, n))
{
	(*a)[0]++;
	++**n;
}

/* If it is called, its callers do not know what its closures use. */
KDDS_TASK_DEFINE(halves, UPDATE_ARRAY(long, a), UPDATE(long, n))
{
	size_t half = kdds_count(a) / 2;
	KDDS_OVER_ARRAY(long, left, *a, half);
	KDDS_OVER_ARRAY(long, right, *a + half, half);

	kdds_spawn(bump, left, n);
	kdds_spawn_with(KDDS_LOCAL, bump, right, n);
}

/* All sequences of up to four steps 0 and 1: adds their lengths and steps. */
KDDS_TASK_DEFINE(walk, VALUE(struct path, p), REDUCE(long, s, KDDS_SUM(long)))
{
	**s += p.n + p.step[0] + p.step[1] + p.step[2] + p.step[3];
	if (p.n++ == 4)
		return;
	for (int i = 0; i < 2; i++) {
		p.step[p.n - 1] = i;
		kdds_spawn(walk, p, s);
	}
}

KDDS_TASK_DEFINE(nothing)
{
}
END

cat > "$dir/main" <<'END'
#include <stdio.h>

#include "tasks.h"

KDDS_TASK(both, VALUE(int, n), WRITE(long, r), WRITE(long, q))
{
	kdds_spawn(fib, n, r);
	kdds_spawn(nothing);
	kdds_spawn(fib, n - 1, q);
}

KDDS_TASK(many, UPDATE_ARRAY(long, a), UPDATE(long, n))
{
	for (int i = 0; i < 100; i++)
		kdds_spawn(halves, a, n);
}

static long a[1000], b[1000];

int main(void)
{
	struct path p = {{0, 0, 0, 0}, 0};
	long x, y, s = 0, n = 0, w = 0;
	KDDS_OVER(long, r, &x);
	KDDS_OVER(long, q, &y);
	KDDS_OVER(long, total, &s);
	KDDS_OVER(long, count, &n);
	KDDS_OVER(long, walked, &w);
	KDDS_OVER_ARRAY(long, from, a, 1000);
	KDDS_OVER_ARRAY(long, to, b, 1000);

	for (int i = 0; i < 1000; i++)
		a[i] = i;
	if (kdds_init())
		return 1;
	kdds_spawn(both, 20, r, q);
	kdds_for(twice, from, to, total);
	kdds_spawn(many, to, count);
	kdds_spawn(walk, p, walked);
	kdds_sync();
	printf("%ld %ld %ld %ld %ld %ld %ld\n", x, y, s, n, b[0], b[500], w);
	return kdds_finalize() ? 1 : 0;
}
END

# language COMPILER
language()
{
	case $1 in *++) echo -x c++ -std=c++17 ;; *) echo -x c -std=c11 ;; esac
}

# expect WHAT COMMAND...
expect()
{
	what=$1
	shift
	if [ "$(timeout 60 "$@")" = '6765 4181 999000 200 100 1100 147' ]; then
		echo "ok: $what"
	else
		echo "FAILED: $what"
		failed=$((failed + 1))
	fi
	checked=$((checked + 1))
}

flags="-Wall -Wextra -Werror -pedantic -I$include -I$dir"
library="-L$build/.libs -lkdds"
compilers=
for compiler in gcc clang g++ clang++; do
	! command -v $compiler > /dev/null || compilers="$compilers $compiler"
done
for one in $compilers; do
	for other in $compilers; do
		for level in -O0 -O2; do
			$one $(language $one) $level $flags -c "$dir/tasks" -o "$dir/tasks.o"
			$other $(language $other) $level $flags -c "$dir/main" -o "$dir/main.o"
			case $one in *++) cxx=-lstdc++ ;; *) cxx= ;; esac
			$other "$dir/main.o" "$dir/tasks.o" -o "$dir/program" $library $cxx
			expect "defined with $one, spawned with $other, $level" \
				env KDDS_WORKERS=2 "$dir/program"
		done
	done
	$one $(language $one) -O2 $flags -fPIC -shared "$dir/tasks" -o "$dir/libtasks.so" $library
	$one $(language $one) -O2 $flags -c "$dir/main" -o "$dir/main.o"
	$one "$dir/main.o" -o "$dir/program" -L"$dir" -ltasks $library
	expect "in a shared library, with $one" env KDDS_WORKERS=4 "$dir/program"
	expect "in a shared library, with $one, on three ranks" \
		env KDDS_WORKERS=1 ./kddsrun -n 3 "$dir/program"

	for parameters in 'VALUE(long, n), WRITE(long, r)' 'VALUE(int, n), UPDATE(long, r)'; do
		printf '#include "tasks.h"\nKDDS_TASK_DEFINE(fib, %s) { **r = n; }\n' "$parameters" \
			> "$dir/wrong"
		! $one $(language $one) $flags -c "$dir/wrong" -o "$dir/wrong.o" 2> /dev/null || {
			echo "FAILED: $one accepts a definition with other parameters: $parameters"
			failed=$((failed + 1))
		}
	done
	$one $(language $one) $flags -c "$dir/tasks" -o "$dir/again.o"
	! $one "$dir/main.o" "$dir/tasks.o" "$dir/again.o" -o "$dir/twice" $library 2> /dev/null || {
		echo "FAILED: $one links two definitions"
		failed=$((failed + 1))
	}
done
[ $checked -gt 0 ] || exit 77

# A child writes a VALUE of its parent, which a function has lent it, while the parent spawns
# (kd_renew).
cat > "$dir/lend.c" <<'END'
#include <kdds.h>
#include <stdio.h>

static int started;

KDDS_TASK(add, VALUE(int *, n))
{
	for (int i = 0; i < 20000; i++) {
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
		if (i == 200)
			__atomic_store_n(&started, 1, __ATOMIC_RELAXED);
	}
}

KDDS_TASK(nothing)
{
}

static void lend(int *n)
{
	kdds_spawn(add, n);
}

KDDS_TASK(parent, VALUE(int, n), REDUCE(long, sum, KDDS_SUM(long)))
{
	lend(&n);
	for (volatile int i = 0; i < 1000000 && !__atomic_load_n(&started, __ATOMIC_RELAXED); i++)
		;
	for (volatile int i = 0; i < 100; i++)
		;
	kdds_spawn(nothing);
	kdds_sync();
	**sum += n;
}

int main(void)
{
	long x = 0;

	if (kdds_init())
		return 1;
	KDDS_OVER(long, sum, &x);
	for (int i = 0; i < 300; i++) {
		started = 0;
		kdds_spawn(parent, i, sum);
		kdds_sync();
	}
	printf("%ld\n", x);
	return kdds_finalize() ? 1 : 0;
}
END
for compiler in $compilers; do
	for level in -O1 -O2; do
		$compiler $(language $compiler) $level $flags -c "$dir/lend.c" -o "$dir/lend.o"
		$compiler "$dir/lend.o" -o "$dir/lend" $library
		what="a VALUE that a child writes, with $compiler, $level"
		sum=$((300 * 20000 + 300 * 299 / 2))
		if [ "$(KDDS_WORKERS=2 timeout 60 "$dir/lend")" = $sum ]; then
			echo "ok: $what"
		else
			echo "FAILED: $what"
			failed=$((failed + 1))
		fi
		checked=$((checked + 1))
	done
done

# Two plug-ins, one after the other. Where the second one takes the place of the first, other ranks
# would run the tasks of the first.
cat > "$dir/plug.c" <<'END'
#include <kdds.h>

KDDS_TASK(step, UPDATE(long, x))
{
	for (volatile int i = 0; i < 200000; i++)
		;
	**x += STEP;
}

void apply(long *const *x);
void apply(long *const *x)
{
	kdds_spawn(step, x);
}
END
cat > "$dir/plugs.c" <<'END'
#include <dlfcn.h>
#include <kdds.h>
#include <stdio.h>

static long value[64];

static void run(void *library)
{
	void (*apply)(long *const *);

	*(void **)&apply = dlsym(library, "apply");
	for (int i = 0; i < 64; i++) {
		KDDS_OVER(long, x, &value[i]);
		apply(x);
	}
	kdds_sync();
}

int main(void)
{
	void *one = dlopen("plug1.so", RTLD_NOW);
	long sum = 0;

	if (!one || kdds_init())
		return 1;
	run(one);
	dlclose(one);
	run(dlopen("plug2.so", RTLD_NOW));
	for (int i = 0; i < 64; i++)
		sum += value[i];
	printf("%ld\n", sum);
	return kdds_finalize() ? 1 : 0;
}
END
set -- $compilers
for step in 1 100; do
	$1 -shared -fPIC -O1 -I"$include" -DSTEP=$step "$dir/plug.c" -o "$dir/plug$step.so" $library
done
mv "$dir/plug100.so" "$dir/plug2.so"
$1 -O1 -I"$include" "$dir/plugs.c" -o "$dir/plugs" $library
# plug COMMAND...: it prints the sum, and may say that plug2's tasks stay in their process.
plug()
{
	if [ "$(timeout 60 "$@" 2> "$dir/err")" = 6464 ] && ! grep -v 'task step stays' "$dir/err"; then
		echo "ok: plug-ins: $*"
	else
		echo "FAILED: plug-ins: $*: $(cat "$dir/err")"
		failed=$((failed + 1))
	fi
}
plug env KDDS_WORKERS=2 "$dir/plugs"
plug env KDDS_WORKERS=1 ./kddsrun -n 2 "$dir/plugs"
plug env KDDS_WORKERS=1 ./kddsrun -n 4 "$dir/plugs"
KDDS_TRACE=$dir/trace plug env KDDS_WORKERS=2 "$dir/plugs"
[ $failed -eq 0 ]
