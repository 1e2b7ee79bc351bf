#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that each public header compiles alone, and when included twice, in C11 and C++17, with
# every compiler installed and all its warnings enabled. So does a program in which other headers
# define the short names of parameters as macros, with the prefixed names, one with tasks in C++
# namespaces, and one whose tasks and data have names that the library's own names end in. No name
# of the library begins as those do that the macros generate from the program's.
set -eu
[ -z "${SANITIZE-}" ] || exit 77 # what compiles does not depend on the build
srcdir=${srcdir:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
checked=0 failed=0

# compiles WHAT COMPILER: $dir/program
compiles()
{
	case $2 in *++) language=c++ standard=c++17 ;; *) language=c standard=c11 ;; esac
	command -v "$2" > /dev/null || return 0
	for level in -O0 -O2; do
		if "$2" $level -std=$standard -x $language -Wall -Wextra -Wundef -Wvla -Werror \
			-pedantic -I"$srcdir/include" -c -o "$dir/object" "$dir/program"; then
			echo "ok: $1 with $2, $level"
		else
			echo "FAILED: $1 with $2, $level"
			failed=$((failed + 1))
		fi
		checked=$((checked + 1))
	done
}

parameters='VALUE READ WRITE UPDATE REDUCE READ_ARRAY WRITE_ARRAY UPDATE_ARRAY REDUCE_ARRAY RANGE
	READ_EACH WRITE_EACH UPDATE_EACH READ_LIST WRITE_LIST UPDATE_LIST'

# What follows an underscore in a name that begins with kd_, and, if the name is completed with that
# of a task, x.
ends=$(cat "$srcdir/include/kdds.h" "$srcdir"/include/kdds/*.h | tr -cs 'a-zA-Z0-9_' '\n' |
	awk '/^kd_/ {
		end = substr($0, 4)
		while (i = index(end, "_")) {
			end = substr(end, i + 1)
			print end (end ~ /_$/ ? "x" : "")
		}
	}' | sort -u | grep '^[a-z]' | grep -vxE 'do|double|float|for|int|long|return')

words=$(cat "$srcdir/include/kdds.h" "$srcdir"/include/kdds/*.h | grep -oE '\bkd_[a-z_]+_##' |
	sed 's/^kd_//; s/_##$//' | sort -u)
for word in $words; do
	case $word in
	*_*)
		echo "FAILED: kd_${word}_## has two words"
		failed=$((failed + 1))
		;;
	esac
	names=$(cat "$srcdir/include/kdds.h" "$srcdir"/include/kdds/*.h |
		grep -oE "\bkd_${word}_[a-z0-9_]*(##)?" | grep -v '##$' | sort -u)
	[ -z "$names" ] || {
		echo "FAILED: the macros generate names of that kind:" $names
		failed=$((failed + 1))
	}
done

for compiler in gcc clang g++ clang++; do
	for header in kdds.h kdds/inline.h kdds/saved.h kdds/task.h; do
		printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' \
			$header $header > "$dir/program"
		compiles $header $compiler
	done
	{
		printf '#define %s 1\n' $parameters
		echo '#include <kdds.h>'
		cat <<-'END'
		KDDS_TASK(one, KDDS_VALUE(int, n), KDDS_READ(long, a), KDDS_WRITE(long, b),
			  KDDS_UPDATE(long, c), KDDS_REDUCE(long, d, KDDS_SUM(long)))
		{
			**b = n;
			**c += **a;
			**d += 1;
		}
		KDDS_TASK(many, KDDS_READ_ARRAY(long, a), KDDS_WRITE_ARRAY(long, b),
			  KDDS_UPDATE_ARRAY(long, c), KDDS_REDUCE_ARRAY(long, d, KDDS_SUM(long)))
		{
			(*b)[0] = (*a)[0];
			(*c)[0]++;
			(*d)[0]++;
		}
		KDDS_TASK(each, KDDS_RANGE(i), KDDS_READ_EACH(long, a), KDDS_WRITE_EACH(long, b),
			  KDDS_UPDATE_EACH(long, c))
		{
			(*b)[0] = (*a)[0] + (long)i.begin;
			(*c)[0]++;
		}
		KDDS_TASK(some, KDDS_READ_LIST(long, a), KDDS_WRITE_LIST(long, b),
			  KDDS_UPDATE_LIST(long, c))
		{
			**b.ref[0] = **a.ref[a.count - 1];
			++**c.ref[0];
		}
		void use(long *const *a, long *const *b, long *const *c, long *const *d);
		void use(long *const *a, long *const *b, long *const *c, long *const *d)
		{
			kdds_spawn(one, 1, a, b, c, d);
			kdds_spawn(many, a, b, c, d);
			kdds_for(each, kdds_range(0, 1), a, b, c);
			kdds_spawn(some, kdds_list(&a, 1), kdds_list(&b, 1), kdds_list(&c, 1));
		}
		END
	} > "$dir/program"
	compiles 'the prefixed names' $compiler
	{
		echo '#include <kdds.h>'
		case $compiler in *++) echo 'namespace some {' ;; esac
		for end in x $ends; do
			echo "KDDS_TASK($end, VALUE(int, n), WRITE(long, r)) { **r = n; }"
			echo "void use_$end(long *const *r);"
			echo "void use_$end(long *const *r) { kdds_spawn($end, 1, r); }"
		done
		echo 'void use_all(void);'
		echo 'void use_all(void) {'
		for end in x $ends; do
			echo "KDDS_DATA(long, $end);"
			echo "kdds_spawn(x, 1, $end);"
		done
		echo '}'
		case $compiler in *++) echo '}' ;; esac
	} > "$dir/program"
	compiles 'tasks and data of any name' $compiler
	case $compiler in *++) ;; *) continue ;; esac
	cat > "$dir/program" <<-'END'
	#include <kdds.h>
	namespace a { namespace b {
	KDDS_TASK(twice, READ(long, x), WRITE(long, y)) { **y = 2 * **x; }
	KDDS_TASK(clear, WRITE_EACH(long, x)) { (*x)[0] = 0; }
	} }
	void use(long *const *x, long *const *y);
	void use(long *const *x, long *const *y)
	{
		using namespace a::b;
		kdds_spawn(twice, x, y);
		kdds_for(clear, y);
	}
	END
	compiles 'tasks in namespaces' $compiler
done

[ $checked -gt 0 ] || exit 77
[ $failed -eq 0 ]
