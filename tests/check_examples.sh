#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that every example prints the right result on any number of workers and nothing on stderr,
# and that a wrong command line ends it with status 2 and one line.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
	echo "FAILED: $*"
	failed=$((failed + 1))
}

# example EXPECTED PROGRAM ARGUMENTS...: the program must print the expected lines, then the four
# lines of times and counts. Its standard input is $dir/in.
example()
{
	expected=$1 program=$2
	shift 2
	[ -x "examples/$program" ] || {
		echo "not built: $program"
		return 0
	}
	for workers in 1 2 4 16; do
		what="KDDS_WORKERS=$workers $program $*"
		status=0
		KDDS_WORKERS=$workers timeout 60 "examples/$program" "$@" \
			< "$dir/in" > "$dir/out" 2> "$dir/err" || status=$?
		[ $status = 0 ] || fail "$what: status $status"
		[ ! -s "$dir/err" ] || fail "$what: on stderr: $(cat "$dir/err")"
		# speed and rounding differ from machine to machine
		[ "$(head -n -4 "$dir/out" |
			sed 's/[0-9.]* GFLOP/G GFLOP/; s/^residual = .*/residual = R/
			s/^\(stencil.*\) = .*/\1 = M/')" = "$expected" ] ||
				fail "$what: expected $expected, got $(cat "$dir/out")"
		times=$(tail -n 4 "$dir/out" | tr '\n' ' ')
		lines="^T = [0-9.]+ s workers = $workers tasks = [0-9]+ steals = [0-9]+ \$"
		echo "$times" | grep -Eq "$lines" ||
			fail "$what: the last lines are $times"
	done
	echo "ran: $program $*"
}

# wrong PROGRAM ARGUMENTS...: must end with status 2, nothing on stdout, and one line on stderr that
# begins with the program's name.
wrong()
{
	program=$1
	shift
	[ -x "examples/$program" ] || return 0
	status=0
	timeout 60 "examples/$program" "$@" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 2 ] || fail "$program $*: status $status instead of 2"
	[ ! -s "$dir/out" ] || fail "$program $*: on stdout: $(cat "$dir/out")"
	[ "$(wc -l < "$dir/err")" = 1 ] && grep -q "^$program: " "$dir/err" ||
		fail "$program $*: not one line '$program: ...' on stderr: $(cat "$dir/err")"
}

# help PROGRAM: --help and -h must print the same text on stdout, including the table of variables.
help()
{
	[ -x "examples/$1" ] || return 0
	"examples/$1" --help > "$dir/out" && "examples/$1" -h > "$dir/out.h" ||
		fail "$1 --help: status $?"
	cmp -s "$dir/out" "$dir/out.h" || fail "$1: -h is not --help"
	grep -q "^Usage: $1 " "$dir/out" && grep -q KDDS_WORKERS "$dir/out" ||
		fail "$1 --help: $(cat "$dir/out")"
}

[ -x examples/fib ] || exit 77
: > "$dir/in"

example 'fib(0) = 0' fib 0
example 'fib(23) = 28657' fib 23
example 'fib(30) = 832040' fib 30 15
wrong fib
wrong fib x
wrong fib ''
wrong fib 3x
wrong fib -1
wrong fib -- -1
wrong fib 91
wrong fib 99999999999999999999
wrong fib 3 4 5
wrong fib -x 3
wrong fib --nonsense 3
wrong fib --help=yes
help fib

example 'nqueens(1) = 1
unique = 1' nqueens 1
example 'nqueens(3) = 0
unique = 0' nqueens 3
example 'nqueens(8) = 92
unique = 12' nqueens 8 8
example 'nqueens(12) = 14200
unique = 1787' nqueens 12
wrong nqueens
wrong nqueens 0
wrong nqueens 28
wrong nqueens 8 0
wrong nqueens --first
wrong nqueens --first 0 8
wrong nqueens --first 1 8 4
help nqueens
cat > "$dir/boards" <<'END'
. Q . .
. . . Q
Q . . .
. . Q .

. . Q .
Q . . .
. . . Q
. Q . .
END
examples/nqueens --first 3 4 > "$dir/out" && cmp "$dir/out" "$dir/boards" ||
	fail 'nqueens --first 3 4'

example 'knary(0, 3) = 1' knary 0 3
example 'knary(16, 3) = 37921' knary 16 3
example 'knary(20, 10) = 5219841' knary 20 10 15
example 'knary(6, 4, 2) = 1365' knary --cilk 6 4 2
wrong knary 3
wrong knary 3 0
wrong knary 3 3 3 3
wrong knary --cilk 3 3
wrong knary --cilk 3 3 4
wrong knary 100 1000
help knary

example 'stencil(60, 20, 7) = M
the same bits as sequentially' stencil 60 20 7
example 'stencil(1, 0, 5) = M' stencil --no-check 1 0 5
example 'stencil(60, 20, 7) = M
the same bits as sequentially' stencil --checkpoint "$dir/state" --every 6 60 20 7
[ -z "$(ls "$dir" | grep state || :)" ] || fail 'stencil --checkpoint leaves files'
wrong stencil --checkpoint
wrong stencil --every 0 60 20 7
wrong stencil 60 20
wrong stencil 60 20 0
wrong stencil 60 -1 7
help stencil

# alone PROGRAM ARGUMENTS...: what it prints on one worker, above the four lines.
alone()
{
	program=$1
	shift
	KDDS_WORKERS=1 timeout 60 "examples/$program" "$@" | head -n -4
}

example "$(alone heat 60 1000 2000)" heat 60 1000 2000
example "$(alone heat --no-check 1)" heat --no-check 1
wrong heat
wrong heat 0
wrong heat 10 10 -1
help heat

example '0.00        100 ############################################################' \
	histogram 100 1
example "$(alone histogram 100000 30)" histogram 100000 30
wrong histogram
wrong histogram 0
wrong histogram 10 1000001
help histogram

example "$(alone cg 40)" cg 40
example 'cg(2): 1 steps, residual 0' cg 2
wrong cg
wrong cg 1
wrong cg 10 0
help cg

example "$(alone mergesort 100000)" mergesort 100000
example "$(alone mergesort 5000 2)" mergesort 5000 2
example 'mergesort(1): from 2065550767 to 2065550767' mergesort 1
wrong mergesort
wrong mergesort 10 1
wrong mergesort 10 11
help mergesort

example 'lu(12, 20): 86 blocks
residual = R' lu 12 20 25
example 'lu(1, 1): 1 blocks
residual = R' lu 1 1
example 'lu(4, 30): 16 blocks
residual = R' lu 4 30 100
wrong lu
wrong lu 0
wrong lu 10 10 101
help lu

example "$(alone pagerank 20000 5)" pagerank 20000 5
example 'pagerank(1, 1): 1 iterations, page 0 has rank 1.000000e+00 of 1.000000' pagerank 1 1
wrong pagerank
wrong pagerank 0
wrong pagerank 10 0
help pagerank

example "$(alone barneshut 3000 3)" barneshut 3000 3
example 'barneshut(2): 1 steps, forces differ from sums by 0.0000' barneshut 2 1
wrong barneshut
wrong barneshut 1
wrong barneshut 10 0
help barneshut

example "$(alone kmeans 30000 7)" kmeans 30000 7
example 'kmeans(1, 1): 2 steps, 0 points changed in the last
mean square distance = 0' kmeans 1 1 5
wrong kmeans 10
wrong kmeans 10 11
wrong kmeans 10 2 0
help kmeans

# Expanded by gzip; blocks of an input that has none, one, and many, and one that does not shrink.
pgzip()
{
	cat "$0" "$0" > "$dir/long"
	head -c 300000 /dev/urandom > "$dir/random"
	printf x > "$dir/short"
	for input in long random short in; do
		for block in 4096 262144; do
			example "$(alone pgzip --block $block "$dir/$input" "$dir/gz")" \
				pgzip --block $block "$dir/$input" "$dir/gz"
			gzip -dc "$dir/gz" | cmp - "$dir/$input" || fail "pgzip --block $block: $input"
		done
	done
	[ "$(examples/pgzip "$dir/long" | head -n 1)" = \
		"$(examples/pgzip "$dir/long" "$dir/gz" | head -n 1)" ] &&
		cmp "$dir/long.gz" "$dir/gz" || fail 'pgzip without OUTPUT'
	wrong pgzip
	wrong pgzip --block 0 "$dir/long"
	wrong pgzip a b c
	help pgzip
	status=0
	examples/pgzip "$dir/missing" > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] ||
		fail "pgzip of a missing file: status $status, $(cat "$dir/err")"
}
if [ -x examples/pgzip ]; then
	pgzip
else
	echo 'not built: pgzip'
fi

# Compared with wc, on text with every kind of white space and without a final newline.
{
	printf '\n\n a\tb\rc\v d\fe  \n'
	cat "$0" "$0" "$0"
	printf 'the end'
} > "$dir/text"
cp "$dir/text" "$dir/in"
LC_ALL=C wc < "$dir/text" > "$dir/wc"
read -r lines words bytes < "$dir/wc"
counts=$(printf '%9d %9d %9d' "$lines" "$words" "$bytes")
total=$(printf '%9d %9d %9d total' $((2 * lines)) $((2 * words)) $((2 * bytes)))
for chunk in 1000000 1000 7; do
	example "$counts $dir/text" wordcount --chunk $chunk "$dir/text"
done
example "$counts -" wordcount --chunk 100
example "$counts $dir/text
$counts $dir/text
$total" wordcount --chunk 999 "$dir/text" "$dir/text"
wrong wordcount --chunk 0 "$dir/text"
wrong wordcount --chunk
help wordcount
status=0
examples/wordcount "$dir/missing" > "$dir/out" 2> "$dir/err" || status=$?
[ $status = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] ||
	fail "wordcount of a missing file: status $status, $(cat "$dir/err")"

example 'cholesky(1, 5) = G GFLOP/s
residual = R' cholesky 1 5
example 'cholesky(150, 32) = G GFLOP/s
residual = R' cholesky 150 32
example 'cholesky(150, 32) = G GFLOP/s' cholesky --no-check --seed 7 150 32
wrong cholesky 150
wrong cholesky 0 32
wrong cholesky 150 0
wrong cholesky --seed x 150 32
help cholesky

# An invalid value of a variable: kdds_init fails with a line that names it.
for setting in KDDS_WORKERS=x KDDS_WORKERS=1025 KDDS_BIND=nowhere KDDS_WINDOW=1 KDDS_STACK=1T \
	KDDS_SPIN_US=-1; do
	status=0
	env "$setting" examples/fib 3 > "$dir/out" 2> "$dir/err" || status=$?
	[ $status = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] && grep -q "$setting" "$dir/err" ||
		fail "$setting: status $status, $(cat "$dir/err")"
done

status=0
examples/fib 3 > /dev/full 2> "$dir/err" || status=$?
[ $status = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] ||
	fail "a full disk: status $status, $(cat "$dir/err")"

[ $failed = 0 ]
