/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ways to put N queens on an N x N board so that none attacks another.
 *
 * Rows are filled from the top. Three masks hold the columns of the next row that the queens above
 * attack straight down and along either diagonal. Of the boards that the square's 8 symmetries map
 * to each other, only one is searched for: the least when boards are compared row by row from the
 * top, with columns counted from the right, as bit b of a row's mask:
 *
 * - A queen in the top right corner. Only the reflection that keeps the corner leads to such a
 *   board again. It exchanges the second row and the second column, whose queens are never equally
 *   far from the corner: the row's must be nearer. Every such board stands for 8.
 * - The top queen at column b, no queen in a corner. On no side of the board may a queen be nearer
 *   than b to a corner, since a symmetry would take it to the top. This prunes the search: the side
 *   columns are closed to rows above b and must both have their queen in rows b to N-1-b, and the
 *   last row is closed within b of the corners. A full board remains to be compared with those of
 *   its three rotations that also have a top queen at b. (A reflection never has: that queen and
 *   the top one would be on one line.) The board stands for 8 boards, for 4 if half a turn does not
 *   change it, for 2 if a quarter turn does not.
 *
 * A task sets one queen in each of the first DEPTH rows; the tasks of the last of them search the
 * rest sequentially.
 */
#include <stdio.h>
#include <stdlib.h>

#include <kdds.h>

#include "common.h"

#define MAX_N 27 /* the largest N whose solutions have been counted; 29 overflows a long */

const struct program program = {
	"nqueens", "N [DEPTH]\n--first K N",
	"Counts the solutions of the N queens problem, and those that are unique under rotation\n"
	"and reflection.\n"
	"\n"
	"  N          side of the board, 1 to 27 (16 takes about 2 seconds on a core)\n"
	"  DEPTH      rows set by tasks; the rest is searched sequentially (default 4)\n"
	"\n"
	"  --first K  print the first K solutions in lexicographic order instead\n"
};

/* Solutions and unique solutions for every N: OEIS A000170, A002562. */
static const long known[MAX_N + 1][2] = {
	{1, 1},
	{1, 1},
	{0, 0},
	{0, 0},
	{2, 1},
	{10, 2},
	{4, 1},
	{40, 6},
	{92, 12},
	{352, 46},
	{724, 92},
	{2680, 341},
	{14200, 1787},
	{73712, 9233},
	{365596, 45752},
	{2279184, 285053},
	{14772512, 1846955},
	{95815104, 11977939},
	{666090624, 83263591},
	{4968057848, 621012754},
	{39029188884, 4878666808},
	{314666222712, 39333324973},
	{2691008701644, 336376244042},
	{24233937684440, 3029242658210},
	{227514171973736, 28439272956934},
	{2207893435808352, 275986683743434},
	{22317699616364044, 2789712466510289},
	{234907967154122528, 29363495934315694},
};

/* Unique solutions by the number of boards they stand for. */
struct tally {
	long by8, by4, by2;
};

KDDS_OP(add_tally, struct tally, ((struct tally){0, 0, 0}), KDDS_EXACT)
{
	x->by8 += y->by8;
	x->by4 += y->by4;
	x->by2 += y->by2;
}

/* A board with queens in all rows above row. */
struct board {
	int row;
	/* the top queen's column; 0: the corner, then the second row's is corner_bound */
	int bound;
	int corner_bound;
	uint32_t down, left, right; /* columns of row that are attacked */
	uint32_t queen[MAX_N];      /* per row, the bit of its column */
};

/* Constant while tasks run. */
static int n, depth;
static uint32_t all;   /* the columns */
static uint32_t sides; /* the outer two */

/*
 * Compares a full board, rotated by half a turn or a quarter turn, with the board: negative if the
 * rotated one is less, 0 if it is the same. Rotated to the right, its rows are the board's columns
 * from the left, and its columns from the right are the board's rows from the top; rotated to the
 * left, both are reversed.
 */
static int compare_half(const uint32_t *queen)
{
	for (int row = 0; row < n; row++) {
		uint32_t turned = 1u << (n - 1 - __builtin_ctz(queen[n - 1 - row]));

		if (turned != queen[row])
			return turned < queen[row] ? -1 : 1;
	}
	return 0;
}

static int compare_quarter(const uint32_t *queen, bool right)
{
	for (int row = 0; row < n; row++) {
		uint32_t column = 1u << (right ? n - 1 - row : row);
		int at = 0;

		while (queen[at] != column)
			at++;
		at = right ? at : n - 1 - at;
		if (1u << at != queen[row])
			return 1u << at < queen[row] ? -1 : 1;
	}
	return 0;
}

/* Counts a full board without a corner queen if it is the least of its rotations. */
static void count_board(const struct board *b, struct tally *t)
{
	const uint32_t *queen = b->queen;
	int far = n - 1 - b->bound;
	int quarter = 1, half = 1;

	if (queen[b->bound] == 1u << (n - 1) && (quarter = compare_quarter(queen, true)) < 0)
		return;
	if (queen[far] == 1 && compare_quarter(queen, false) < 0)
		return;
	if (queen[n - 1] == 1u << far && (half = compare_half(queen)) < 0)
		return;
	if (quarter == 0)
		t->by2++;
	else if (half == 0)
		t->by4++;
	else
		t->by8++;
}

/* The free columns of row that can lead to a least board: see above. For all rows except the
 * last. */
static inline uint32_t allowed_columns(const struct board *b, int row, uint32_t down,
				       uint32_t columns)
{
	if (b->bound == 0)
		return row < b->corner_bound ? columns & ~2u : columns;
	if (row < b->bound)
		return columns & ~sides;
	if (row == n - 1 - b->bound && (down & sides) != sides)
		return down & sides ? columns & sides : 0;
	return columns;
}

/*
 * Searches the rows from row on. Free columns are computed before the call that needs them, because
 * most boards run out of them several rows before the last. Inline, since gcc then unrolls the
 * recursion by several rows, each with its own branches to predict: this saves 2 % of the time at
 * -O2, 8 % at -O3.
 */
static inline void search_corner(struct board *b, int row, uint32_t columns, uint32_t down,
				 uint32_t left, uint32_t right, struct tally *t)
{
	if (row == n - 1) {
		t->by8++;
		return;
	}
	if (row < b->corner_bound)
		columns &= ~2u;
	while (columns) {
		uint32_t q = columns & -columns;
		uint32_t d = down | q, l = (left | q) << 1, r = (right | q) >> 1;
		uint32_t next = all & ~(d | l | r);

		columns ^= q;
		if (next)
			search_corner(b, row + 1, next, d, l, r, t);
	}
}

static inline void search(struct board *b, int row, uint32_t columns, uint32_t down, uint32_t left,
			  uint32_t right, struct tally *t)
{
	if (row == n - 1) {
		b->queen[row] = columns;
		if (columns & (all >> b->bound) & (all << b->bound))
			count_board(b, t);
		return;
	}
	columns = allowed_columns(b, row, down, columns);
	while (columns) {
		uint32_t q = columns & -columns;
		uint32_t d = down | q, l = (left | q) << 1, r = (right | q) >> 1;
		uint32_t next = all & ~(d | l | r);

		columns ^= b->queen[row] = q;
		if (next)
			search(b, row + 1, next, d, l, r, t);
	}
}

static struct board with_queen(struct board b, uint32_t q)
{
	b.queen[b.row++] = q;
	b.down |= q;
	b.left = (b.left | q) << 1;
	b.right = (b.right | q) >> 1;
	return b;
}

KDDS_TASK(place, VALUE(struct board, b), REDUCE(struct tally, solutions, &add_tally))
{
	uint32_t columns = all & ~(b.down | b.left | b.right);

	if (!columns)
		return;
	if (b.row >= depth || b.row == n - 1) {
		if (b.bound)
			search(&b, b.row, columns, b.down, b.left, b.right, *solutions);
		else
			search_corner(&b, b.row, columns, b.down, b.left, b.right, *solutions);
		return;
	}
	for (columns = allowed_columns(&b, b.row, b.down, columns); columns; columns &= columns - 1)
		kdds_spawn(place, with_queen(b, columns & -columns), solutions);
}

static struct tally solve(void)
{
	struct tally t = {0, 0, 0};
	kdds_data(struct tally) solutions;

	kdds_bind(solutions, &t);
	for (int c = 2; c < n - 1; c++) {
		struct board b = {.bound = 0, .corner_bound = c};

		kdds_spawn(place, with_queen(with_queen(b, 1), 1u << c), kdds_ref(solutions));
	}
	for (int c = 1; c < n - 1 - c; c++) {
		struct board b = {.bound = c};

		kdds_spawn(place, with_queen(b, 1u << c), kdds_ref(solutions));
	}
	kdds_sync();
	return t;
}

static void print_board(const int *column)
{
	char line[2 * MAX_N];

	for (int row = 0; row < n; row++) {
		for (int c = 0; c < n; c++) {
			line[2 * c] = c == column[row] ? 'Q' : '.';
			line[2 * c + 1] = c == n - 1 ? '\0' : ' ';
		}
		puts(line);
	}
}

/* Backtracking, columns from the left: boards are printed in lexicographic order. Returns their
 * number. */
static long print_first(long max)
{
	int column[MAX_N] = {0}, row = 0;
	long boards = 0;

	while (row >= 0 && boards < max) {
		bool attacked = false;

		for (int r = 0; r < row && !attacked; r++)
			attacked = column[r] == column[row] ||
				   abs(column[r] - column[row]) == row - r;
		if (!attacked && column[row] < n && row < n - 1) {
			column[++row] = 0;
			continue;
		}
		if (!attacked && column[row] < n) {
			if (boards++)
				putchar('\n');
			print_board(column);
		}
		while (row >= 0 && ++column[row] >= n)
			row--;
	}
	return boards;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		HELP_OPTION, {"first", required_argument, NULL, OPT_OWN}, {0}};
	long first = 0, total, unique;
	struct tally count;
	double t;

	for (int opt; (opt = next_option(argc, argv, options)) != -1;)
		if (opt == OPT_OWN)
			first = integer("--first", optarg, 1, 1000000000);
	argv = arguments(argc, argv, 1, first ? 1 : 2, &argc);
	n = (int)integer("N", argv[0], 1, MAX_N);
	depth = argc > 1 ? (int)integer("DEPTH", argv[1], 1, MAX_N) : 4;
	all = (1u << n) - 1;
	sides = 1u << (n - 1) | 1;

	if (first) {
		if (!print_first(first))
			printf("no solution for N = %d\n", n);
		return flush_output();
	}
	start();
	t = now();
	count = solve();
	t = now() - t;
	if (n == 1)
		unique = total = 1; /* the one board that all symmetries map to itself */
	else {
		unique = count.by8 + count.by4 + count.by2;
		total = 8 * count.by8 + 4 * count.by4 + 2 * count.by2;
	}
	if (total != known[n][0] || unique != known[n][1])
		fail("found %ld solutions, %ld unique for N = %d, there are %ld and %ld", total,
		     unique, n, known[n][0], known[n][1]);
	printf("nqueens(%d) = %ld\n", n, total);
	printf("unique = %ld\n", unique);
	return finish(t, true);
}
