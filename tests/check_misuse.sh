#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that what a task's declaration rules out does not compile, in C and in C++, while the same
# program with that one line corrected does. Each case below is compiled with BAD=0, which must pass
# without a warning, and with BAD=1, which must fail even with warnings disabled. A use that
# violates a sentence of kdds.h must fail with that sentence. The compilers are those of the build.
set -eu
[ -z "${SANITIZE-}" ] || exit 77 # what compiles does not depend on the build
srcdir=${srcdir:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0 checked=0

compilers=
for pair in "${CC:-cc}:c11" "${CXX:-c++}:c++17"; do
	! command -v "${pair%%:*}" > /dev/null || compilers="$compilers $pair"
done
[ -n "$compilers" ] || exit 77

fail()
{
	echo "FAILED: $*"
	failed=$((failed + 1))
}

# misuse NAME [SENTENCE [LANGUAGE]] < program
misuse()
{
	sentence=${2-} only=${3-}
	{
		cat <<-'END'
		#include <kdds.h>
		struct pair { long a, b; };
		KDDS_TASK(get, READ(long, a)) { (void)**a; }
		KDDS_TASK(put, WRITE(long, r)) { **r = 1; }
		KDDS_TASK(bump, UPDATE(long, x)) { ++**x; }
		KDDS_TASK(add, VALUE(long, n), REDUCE(long, s, KDDS_SUM(long))) { **s += n; }
		KDDS_TASK(total, READ_ARRAY(long, a), WRITE(long, r)) { **r = (*a)[0]; }
		KDDS_TASK(fill, WRITE_ARRAY(long, a)) { (*a)[0] = 1; }
		KDDS_TASK(swap, UPDATE(struct pair, p))
		{
			long a = (**p).a;
			(**p).a = (**p).b;
			(**p).b = a;
		}
		END
		cat
	} > "$dir/program"
	for pair in $compilers; do
		compiler=${pair%%:*} standard=${pair#*:}
		case $standard in c++*) language=c++ ;; *) language=c ;; esac
		[ -z "$only" ] || [ "$only" = $language ] || continue
		compile="$compiler -std=$standard -x $language -I$srcdir/include"
		compile="$compile -O1 -c -o $dir/object $dir/program"
		$compile -DBAD=0 -Wall -Wextra -Werror -pedantic > "$dir/log" 2>&1 || {
			fail "$1: $compiler rejects the control:"
			head -n 20 "$dir/log"
		}
		! $compile -DBAD=1 -w > "$dir/log" 2>&1 || fail "$1: $compiler accepts it"
		grep -qF -- "$sentence" "$dir/log" || {
			fail "$1: $compiler does not say '$sentence':"
			head -n 20 "$dir/log"
		}
	done
	checked=$((checked + 1))
	echo "checked: $1"
}

misuse 'a task that is not declared' <<'END'
KDDS_TASK(t, READ(long, a))
{
#if BAD
	kdds_spawn(gets_, a);
#else
	kdds_spawn(get, a);
#endif
}
END

misuse 'a task that is not declared, with attributes' <<'END'
KDDS_TASK(t, READ(long, a))
{
#if BAD
	kdds_spawn_with(KDDS_LOCAL, gets_, a);
#else
	kdds_spawn_with(KDDS_LOCAL, get, a);
#endif
}
END

misuse 'a loop whose task is not declared' <<'END'
KDDS_TASK(some, READ_EACH(long, a)) { (void)a; }
KDDS_TASK(t, READ_ARRAY(long, a))
{
#if BAD
	kdds_for(sums, a);
#else
	kdds_for(some, a);
#endif
}
END

misuse 'READ handed on to WRITE' <<'END'
KDDS_TASK(t, READ(long, a))
{
#if BAD
	kdds_spawn(put, a);
#else
	kdds_spawn(get, a);
#endif
}
END

misuse 'READ handed on to UPDATE' <<'END'
#if BAD
KDDS_TASK(t, READ(long, a))
#else
KDDS_TASK(t, UPDATE(long, a))
#endif
{
	kdds_spawn(bump, a);
}
END

misuse 'READ handed on to REDUCE' <<'END'
#if BAD
KDDS_TASK(t, READ(long, a))
#else
KDDS_TASK(t, REDUCE(long, a, KDDS_SUM(long)))
#endif
{
	kdds_spawn(add, 1, a);
}
END

misuse 'READ_LIST handed on to UPDATE_LIST' <<'END'
KDDS_TASK(all, UPDATE_LIST(long, xs)) { **xs.ref[0] = 1; }
#if BAD
KDDS_TASK(t, READ_LIST(long, xs))
#else
KDDS_TASK(t, WRITE_LIST(long, xs))
#endif
{
	kdds_spawn(all, kdds_list(xs.ref, xs.count));
}
END

misuse 'item of a READ_LIST handed on to UPDATE' <<'END'
KDDS_TASK(t, READ_LIST(long, xs))
{
#if BAD
	kdds_spawn(bump, xs.ref[0]);
#else
	kdds_spawn(get, xs.ref[0]);
#endif
}
END

misuse 'assignment to an item of a READ_LIST' <<'END'
#if BAD
KDDS_TASK(t, READ_LIST(long, xs)) { **xs.ref[0] = 1; }
#else
KDDS_TASK(t, UPDATE_LIST(long, xs)) { **xs.ref[0] = 1; }
#endif
END

misuse 'list of another type' <<'END'
KDDS_TASK(all, READ_LIST(long, xs)) { (void)xs; }
#if BAD
void f(int *const *x, int *const *y)
{
	int *const *both[] = {x, y};
#else
void f(long *const *x, long *const *y)
{
	long *const *both[] = {x, y};
#endif
	kdds_spawn(all, kdds_list(both, 2));
}
END

misuse 'one reference in place of a list' <<'END'
KDDS_TASK(all, READ_LIST(long, xs)) { (void)xs; }
void f(long *const *x)
{
#if BAD
	kdds_spawn(all, x);
#else
	kdds_spawn(all, kdds_list(&x, 1));
#endif
}
END

misuse 'part of data of another type' <<'END'
void f(long *const *x)
{
#if BAD
	kdds_part(int) part;
#else
	kdds_part(long) part;
#endif
	kdds_bind_slice(part, x, 0, 1);
	kdds_bind_subtile(part, x, 0, 0, 1, 1);
	kdds_spawn(bump, kdds_ref(part));
}
END

misuse 'part of const data for a task that writes' <<'END'
#if BAD
void f(long const *const *x)
#else
void f(long *const *x)
#endif
{
	kdds_part(long) part;
	kdds_bind_slice(part, x, 0, 1);
	kdds_spawn(bump, kdds_ref(part));
}
END

misuse 'READ_ARRAY handed on to WRITE_ARRAY' <<'END'
#if BAD
KDDS_TASK(t, READ_ARRAY(long, a))
#else
KDDS_TASK(t, WRITE_ARRAY(long, a))
#endif
{
	kdds_spawn(fill, a);
}
END

misuse 'writing through READ' <<'END'
#if BAD
KDDS_TASK(t, READ(long, a))
#else
KDDS_TASK(t, WRITE(long, a))
#endif
{
	**a = 1;
}
END

misuse 'writing an element of READ_ARRAY' <<'END'
#if BAD
KDDS_TASK(t, READ_ARRAY(long, a))
#else
KDDS_TASK(t, UPDATE_ARRAY(long, a))
#endif
{
	(*a)[1] = 1;
}
END

misuse 'retargeting a reference' <<'END'
KDDS_TASK(t, UPDATE(long, a), UPDATE_ARRAY(long, b))
{
	static long other;
#if BAD
	*a = &other;
	*b = &other;
#else
	**a = other;
	(*b)[0] = other;
#endif
}
END

misuse 'retargeting a reference to new data' <<'END'
KDDS_TASK(t, WRITE(long, r))
{
	KDDS_DATA(long, x);
#if BAD
	*x = 0;
#else
	**x = 0;
#endif
	kdds_spawn(put, x);
	kdds_spawn(put, r);
}
END

misuse 'a slice of READ_ARRAY handed on to WRITE_ARRAY' <<'END'
#if BAD
KDDS_TASK(t, READ_ARRAY(long, a))
#else
KDDS_TASK(t, UPDATE_ARRAY(long, a))
#endif
{
	KDDS_SLICE(left, a, 0, kdds_count(a) / 2);
	KDDS_SUBTILE(right, a, 0, kdds_count(a) / 2, 1, 1);
	kdds_spawn(fill, left);
	kdds_spawn(fill, right);
}
END

misuse 'kdds_ref of a bound const object, for WRITE' <<'END'
KDDS_TASK(t, UPDATE(long, a))
{
#if BAD
	kdds_data(const long) d;
#else
	kdds_data(long) d;
#endif
	kdds_bind(d, *a);
	kdds_spawn(put, kdds_ref(d));
}
END

misuse 'an argument too few' <<'END'
KDDS_TASK(t, VALUE(long, n), WRITE(long, r))
{
#if BAD
	kdds_spawn(t, r);
#else
	kdds_spawn(t, n, r);
#endif
	(void)n;
	(void)r;
}
END

misuse 'an argument too many' <<'END'
KDDS_TASK(t, WRITE(long, r))
{
	KDDS_DATA(long, x);
#if BAD
	kdds_spawn(put, x, r);
#else
	kdds_spawn(put, x);
	kdds_spawn(put, r);
#endif
}
END

misuse 'data over memory of another type' <<'END'
KDDS_TASK(t, READ(long, r))
{
	static long yes[4];
	static double no[4];
	KDDS_OVER(const long, x, &yes[0]);
#if BAD
	KDDS_OVER_ARRAY(long, y, no, 4);
#else
	KDDS_OVER_ARRAY(long, y, yes, 4);
#endif
	(void)r;
	(void)x;
	(void)y;
	(void)no;
}
END

misuse 'a reference bound to memory of another type' <<'END'
KDDS_TASK(t, VALUE(int, n))
{
	kdds_array(struct pair) d;
	struct pair m[2] = {{1, 2}, {3, 4}};
#if BAD
	kdds_bind_tile(d, &m[0].a, 1, 2, 2);
#else
	kdds_bind_tile(d, m, 1, 2, 2);
#endif
	(void)d;
	(void)n;
}
END

misuse 'an argument for a task that has no parameters' <<'END'
KDDS_TASK(none)
{
}

KDDS_TASK(t, VALUE(int, n))
{
#if BAD
	kdds_spawn(none, n);
#else
	kdds_spawn(none);
#endif
	(void)n;
}
END

misuse 'a reference to int where long is written' <<'END'
KDDS_TASK(t, VALUE(int, n))
{
	(void)n;
#if BAD
	KDDS_DATA(int, x);
#else
	KDDS_DATA(long, x);
#endif
	kdds_spawn(put, x);
}
END

misuse 'a reference to unsigned long where long is read' <<'END'
#if BAD
KDDS_TASK(t, READ(unsigned long, x))
#else
KDDS_TASK(t, READ(long, x))
#endif
{
	kdds_spawn(get, x);
}
END

misuse 'a reference to long where a struct is updated' <<'END'
#if BAD
KDDS_TASK(t, UPDATE(long, x))
#else
KDDS_TASK(t, UPDATE(struct pair, x))
#endif
{
	kdds_spawn(swap, x);
}
END

misuse 'the data instead of the reference' <<'END'
KDDS_TASK(t, WRITE(long, r))
{
#if BAD
	kdds_spawn(put, *r);
#else
	kdds_spawn(put, r);
#endif
}
END

misuse 'const memory as data that can be written' <<'END'
KDDS_TASK(t, READ_ARRAY(long, a), WRITE(long, r))
{
#if BAD
	KDDS_OVER(long, x, *a);
#else
	KDDS_OVER(const long, x, *a);
#endif
	(void)x;
	(void)r;
}
END

misuse 'const memory as an array that can be written' <<'END'
KDDS_TASK(t, READ_ARRAY(long, a), UPDATE_ARRAY(long, b))
{
	kdds_array(long) d;
#if BAD
	kdds_bind_tile(d, *a, 1, 2, 3);
#else
	kdds_bind_tile(d, *b, 1, 2, 3);
#endif
	(void)a;
	(void)b;
	(void)d;
}
END

misuse 'const bytes as data that can be written' <<'END'
void f(const void *memory, void *other);
void f(const void *memory, void *other)
{
#if BAD
	KDDS_OVER(long, x, memory);
#else
	KDDS_OVER(const long, x, memory);
#endif
	KDDS_OVER(long, y, other);
	(void)x;
	(void)y;
}
END

for bad in 'put, one' 'bump, one' 'add, 1, one' 'fill, part' 'put, &d.at' 'fill, &e.at'; do
	misuse "a part of READ data: kdds_spawn($bad)" <<-END
	KDDS_TASK(t, READ_ARRAY(long, a), WRITE(long, r))
	{
		const long *const from = *a;
		kdds_data(const long) d;
		kdds_array(const long) e;
		KDDS_OVER(const long, one, from + 1);
		KDDS_OVER_ARRAY(const long, part, *a + 1, kdds_count(a) - 1);
		kdds_bind(d, *a);
		kdds_bind_tile(e, *a, 2, 2, 4);
	#if BAD
		kdds_spawn($bad);
	#else
		kdds_spawn(get, one);
		kdds_spawn(get, &d.at);
		kdds_spawn(total, part, r);
		kdds_spawn(total, &e.at, r);
		kdds_spawn(total, one, r);
	#endif
	}
	END
done

misuse "memory of the program's own that was not bound" <<'END'
void f(long *memory);
void f(long *memory)
{
#if BAD
	kdds_spawn(put, memory);
#else
	KDDS_OVER(long, x, memory);
	kdds_spawn(put, x);
#endif
}
END

misuse 'a struct for a number' <<'END'
KDDS_TASK(t, UPDATE(struct pair, p), REDUCE(long, s, KDDS_SUM(long)))
{
#if BAD
	kdds_spawn(add, **p, s);
#else
	kdds_spawn(add, (**p).a, s);
#endif
}
END

misuse 'a task with 17 parameters' <<'END'
#if BAD
KDDS_TASK(t, VALUE(int, a1), VALUE(int, a2), VALUE(int, a3), VALUE(int, a4), VALUE(int, a5),
	  VALUE(int, a6), VALUE(int, a7), VALUE(int, a8), VALUE(int, a9), VALUE(int, a10),
	  VALUE(int, a11), VALUE(int, a12), VALUE(int, a13), VALUE(int, a14),
	  VALUE(int, a15), VALUE(int, a16), VALUE(int, a17))
#else
KDDS_TASK(t, VALUE(int, a1), VALUE(int, a2), VALUE(int, a3), VALUE(int, a4), VALUE(int, a5),
	  VALUE(int, a6), VALUE(int, a7), VALUE(int, a8), VALUE(int, a9), VALUE(int, a10),
	  VALUE(int, a11), VALUE(int, a12), VALUE(int, a13), VALUE(int, a14),
	  VALUE(int, a15), VALUE(int, a16))
#endif
{
	(void)(a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15 +
	       a16);
}
END

misuse 'kdds_fail in a function' 'only the body of a task can fail' <<'END'
#if BAD
static void helper(void) { kdds_fail(1, "helper"); }
#else
static void helper(void) {}
#endif
KDDS_TASK(fails, VALUE(int, n))
{
	helper();
	if (n)
		kdds_fail(n, "body");
}
END

misuse 'an unknown mode' <<'END'
#if BAD
KDDS_TASK(t, MODIFY(long, x))
#else
KDDS_TASK(t, UPDATE(long, x))
#endif
{
	++**x;
}
END

for op in AND OR XOR; do
	misuse "KDDS_$op(double)" <<-END
	const void *f(void);
	const void *f(void)
	{
	#if BAD
		return KDDS_$op(double);
	#else
		return KDDS_$op(unsigned char);
	#endif
	}
	END
done

misuse 'KDDS_AND(double) in a REDUCE' <<'END'
#if BAD
KDDS_TASK(t, REDUCE(double, s, KDDS_AND(double))) { **s = 0; }
#else
KDDS_TASK(t, REDUCE(double, s, KDDS_MAX(double))) { **s = 0; }
#endif
END

misuse 'KDDS_SUM of a struct' <<'END'
const void *f(void);
const void *f(void)
{
#if BAD
	return KDDS_SUM(struct pair);
#else
	return KDDS_SUM(long double);
#endif
}
END

misuse 'KDDS_MAX of a pointer' <<'END'
const void *f(void);
const void *f(void)
{
#if BAD
	return KDDS_MAX(char *);
#else
	return KDDS_MAX(char);
#endif
}
END

misuse 'a VALUE of 64 KiB' \
	'task t, parameter v: a closure has no room for a VALUE of 64 KiB or more' <<'END'
#if BAD
struct value { char bytes[65520 - 15]; };
#else
struct value { char bytes[65520 - 16]; };
#endif
KDDS_TASK(t, VALUE(struct value, v)) { (void)v; }
END

misuse 'a VALUE of 64 KiB in a loop' \
	'task t: a closure has no room for VALUEs of 64 KiB or more' <<'END'
#if BAD
struct value { char bytes[65520 - 32]; };
#else
struct value { char bytes[65520 - 48]; };
#endif
KDDS_TASK(t, RANGE(i), VALUE(struct value, v)) { (void)i; (void)v; }
END

misuse 'VALUEs of 64 KiB together' \
	'task t: a closure has no room for VALUEs of 64 KiB or more' <<'END'
struct value { char bytes[30000]; };
#if BAD
KDDS_TASK(t, VALUE(struct value, v), READ(long, a), VALUE(struct value, w), VALUE(struct value, z))
#else
KDDS_TASK(t, VALUE(struct value, v), READ(long, a), VALUE(struct value, w), READ(struct value, z))
#endif
{
	(void)v;
	(void)a;
	(void)w;
	(void)z;
}
END

misuse 'a VALUE aligned to 32 bytes' \
	'task t, parameter v: a VALUE cannot be aligned to more than 16 bytes' <<'END'
#if BAD
struct value { double x[4]; } __attribute__((aligned(32)));
#else
struct value { double x[4]; } __attribute__((aligned(16)));
#endif
KDDS_TASK(t, VALUE(struct value, v)) { (void)v; }
END

for mode in READ WRITE UPDATE READ_ARRAY WRITE_ARRAY UPDATE_ARRAY; do
	misuse "a $mode aligned to two pages" \
		'task t, parameter a: copies of shared data are aligned to 4096 bytes' <<-END
	#if BAD
	struct value { double x[4]; } __attribute__((aligned(8192)));
	#else
	struct value { double x[4]; } __attribute__((aligned(4096)));
	#endif
	KDDS_TASK(t, $mode(struct value, a)) { (void)a; }
	END
done

misuse 'a data item of 4 GiB' 'task t, parameter a: a single data has less than 4 GiB' <<'END'
#if BAD
struct value { char bytes[1L << 32]; };
#else
struct value { char bytes[(1L << 32) - 1]; };
#endif
KDDS_TASK(t, UPDATE(struct value, a)) { (void)a; }
END

# bad operator, type, good operator
for case in 'KDDS_SUM(double) float KDDS_SUM(float)' 'KDDS_MAX(long) double KDDS_MAX(double)' \
	'KDDS_AND(unsigned) int KDDS_AND(int)' '&widest long KDDS_SUM(long)' \
	'&widest struct:pair &swapped'; do
	set -- $case
	for array in '' _ARRAY; do
		misuse "$1 in a REDUCE$array of $2" \
			'task t, parameter s: the operator is over another type' <<-END
		struct span { long from, length; };
		static const struct span nothing = {0, 0};
		static const struct pair zeroes = {0, 0};
		KDDS_OP(widest, struct span, nothing, KDDS_EXACT)
		{
			if (y->length > x->length)
				*x = *y;
		}
		KDDS_OP(swapped, struct pair, zeroes, KDDS_ORDERED)
		{
			x->a += y->b;
		}
		KDDS_TASK(w, REDUCE(struct span, s, &widest)) { (**s).from = 1; }
		KDDS_TASK(u, REDUCE(struct pair, s, &swapped)) { (**s).a = 1; }
		#if BAD
		KDDS_TASK(t, REDUCE$array($(echo "$2" | tr : ' '), s, $1)) { (void)s; }
		#else
		KDDS_TASK(t, REDUCE$array($(echo "$2" | tr : ' '), s, $3)) { (void)s; }
		#endif
		END
	done
done

misuse 'a VALUE that is not trivially copyable' \
	'task t, parameter v: a VALUE is copied as bytes, but this type is not' c++ <<'END'
#if BAD
struct value { value(const value &from) : p(from.p) {} int *p; };
#else
struct value { value() {} int *p; };
#endif
KDDS_TASK(t, VALUE(value, v)) { (void)v; }
END

misuse 'the address of a pointer in a checkpoint' 'a pointer means nothing in another process' <<'END'
int f(void)
{
	static long step, totals[3];
	static struct pair p;
	KDDS_DATA_ARRAY(double, x, 9);
	double *const *const refs[] = {x, x};
	double *at = *x;

#if BAD
	return kdds_checkpoint("file", &step, &at, x);
#else
	return kdds_checkpoint("file", &step, at, x, totals, &totals, &p, kdds_list(refs, 2));
#endif
}
END

misuse 'an array of pointers in a checkpoint' 'a pointer means nothing in another process' <<'END'
int f(void)
{
	static long *pointers[3], step[3];

#if BAD
	return kdds_restore("file", pointers) + !step[0];
#else
	return kdds_restore("file", step) + !pointers[0];
#endif
}
END

misuse 'a value in a checkpoint' 'kdds_checkpoint takes references and addresses' <<'END'
int f(void)
{
	double t = 0;

#if BAD
	return kdds_checkpoint("file", t);
#else
	return kdds_checkpoint("file", &t);
#endif
}
END

misuse 'an object with pointers in a checkpoint' 'is not trivially copyable' c++ <<'END'
#include <string>
int f(std::string *s)
{
#if BAD
	return kdds_checkpoint("file", s);
#else
	return kdds_checkpoint("file", s->data());
#endif
}
END

misuse 'new data that nobody constructs' 'new data are not initialised, but this type is not' c++ <<'END'
#if BAD
struct value { value(const value &from) : p(from.p) {} int *p; };
#else
struct value { value() {} int *p; };
#endif
void f();
void f()
{
	KDDS_SELF;
	KDDS_DATA(value, x);
	KDDS_DATA_ARRAY(value, y, 3);
	KDDS_DATA_TILE(value, z, 3, 4);
	(void)x, (void)y, (void)z;
}
END

misuse 'a body with another mode than its declaration' <<'END'
KDDS_TASK_DECLARE(t, WRITE(long, x), READ(long, y))
#if BAD
KDDS_TASK_BODY(t, UPDATE(long, x), READ(long, y)) { **x = **y; }
#else
KDDS_TASK_BODY(t, WRITE(long, x), READ(long, y)) { **x = **y; }
#endif
END

misuse 'a reduction of what is not trivially copyable' \
	'task t, parameter s: what is reduced is copied as bytes, but this type is not' c++ <<'END'
struct total {
	long n;
#if BAD
	~total() { n = 0; }
#endif
};
KDDS_OP(sum, total, (total{0}), KDDS_EXACT) { x->n += y->n; }
KDDS_TASK(t, REDUCE(total, s, &sum)) { (**s).n++; }
END

misuse 'a body of the abstract machine that may throw' '' c++ <<'END'
#if BAD
static void body(struct kdds_closure *) {}
#else
static void body(struct kdds_closure *) noexcept {}
#endif
struct kdds_type *f();
struct kdds_type *f()
{
	struct kdds_type *type;
	return kdds_type_create("t", body, NULL, 0, &type) ? NULL : type;
}
END

echo "$checked misuses with$compilers"
[ $failed -eq 0 ]
