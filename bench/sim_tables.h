/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of doc/scaling.md. */
#ifndef SIM_TABLES_H
#define SIM_TABLES_H

/* Table 1 of Gautier, Roch and Wagner 2007 (doc/scaling.md). Units and bodies come from its T1 and
 * TS: of a call, and of a task that spawns two tasks and a sum, or ten tasks. */
#define FIB_45 "tree=fib:45:20 unit=23560 body=4240 "
#define FIB_40 "tree=fib:40:15 unit=23240 body=3520 "
#define KNARY "tree=knary:35:10:15 unit=14113 body=37356 "
#define NO_SLICE " slice=0 start=0"

static const row paper_rows[] = {
	{"fib(45) th 20, 4", FIB_45 "ranks=4", 3.92, 1},
	{"fib(45) th 20, 8", FIB_45 "ranks=8", 7.14, 0},
	{"fib(45) th 20, 16", FIB_45 "ranks=16", 13.78, 0},
	{"fib(45) th 20, 32", FIB_45 "ranks=32", 23.83, 1},
	{"fib(40) th 15, 4", FIB_40 "ranks=4", 3.30, 0},
	{"fib(40) th 15, 8", FIB_40 "ranks=8", 5.48, 0},
	{"fib(40) th 15, 16", FIB_40 "ranks=16", 9.00, 0},
	{"fib(40) th 15, 32", FIB_40 "ranks=32", 9.19, 1},
	{"knary(35,10) th 15, 8", KNARY "ranks=8", 7.95, 0},
	{"knary(35,10) th 15, 16", KNARY "ranks=16", 15.86, 0},
	{"knary(35,10) th 15, 32", KNARY "ranks=32", 31.35, 0},
	{"knary(35,10) th 15, 64", KNARY "ranks=64", 60.12, 0},
	{"knary(35,10) th 15, 100", KNARY "ranks=100", 91.55, 1},
	{"network alone, fib(45), 32", FIB_45 "ranks=32" NO_SLICE, 23.83, 0},
	{"network alone, fib(40), 32", FIB_40 "ranks=32" NO_SLICE, 9.19, 0},
	{"network alone, knary, 100", KNARY "ranks=100" NO_SLICE, 91.55, 0},
	{"today's rules, fib(45), 32", FIB_45 "ranks=32 rules=now", 23.83, 0},
	{"today's rules, fib(40), 32", FIB_40 "ranks=32 rules=now", 9.19, 0},
	{"today's rules, knary, 100", KNARY "ranks=100 rules=now", 91.55, 0},
};

/* NQueens 23: 4434.9 s on 1422 processors of different speeds, 0.63 % idle. K and sigma are those
 * of the trees of 13 and 14 queens; the time of a leaf is not known. */
#define QUEENS(grain) "ranks=1422 tree=random:6.267e15:15:.3:" grain

static const row grid_rows[] = {
	{"leaves of 20 s at most", QUEENS("20e9"), 0, 0},
	{"leaves of 10 s", QUEENS("10e9"), 0, 0},
	{"leaves of 1 s", QUEENS("1e9"), 0, 1},
	{"leaves of 0.1 s", QUEENS("1e8"), 0, 0},
	{"leaves of 10 s, today's rules", QUEENS("10e9 rules=now"), 0, 0},
	{"leaves of 1 s, today's rules", QUEENS("1e9 rules=now"), 0, 0},
};

/* bench/ranks, one worker per rank, on 2 shared cores: counts, not times. */
static const row here_rows[] = {
	{"fib(46) th 20, 2 ranks", "ranks=2 tree=fib:46:20 unit=1220", 0, 1},
	{"fib(46) th 20, 4 ranks", "ranks=4 tree=fib:46:20 unit=1220", 0, 1},
	{"fib(46) th 20, 8 ranks", "ranks=8 tree=fib:46:20 unit=1220", 0, 1},
	{"fib(46) th 20, 16 ranks", "ranks=16 tree=fib:46:20 unit=1220", 0, 1},
	{"knary(29,10) th 14, 2 ranks", "ranks=2 tree=knary:29:10:14 unit=1220", 0, 1},
	{"knary(29,10) th 14, 4 ranks", "ranks=4 tree=knary:29:10:14 unit=1220", 0, 1},
	{"knary(29,10) th 14, 8 ranks", "ranks=8 tree=knary:29:10:14 unit=1220", 0, 1},
	{"knary(29,10) th 14, 16 ranks", "ranks=16 tree=knary:29:10:14 unit=1220", 0, 1},
};

/* Irregular trees of 1 s per worker unless stated otherwise, with leaves of at most 1 ms. */
#define TREE(work) "tree=random:" work ":8:1:1e6 "

static const row scale_rows[] = {
	{"10 x 1", "ranks=10 " TREE("1e10"), 0, 1},
	{"100 x 1", "ranks=100 " TREE("1e11"), 0, 1},
	{"1000 x 1", "ranks=1000 " TREE("1e12"), 0, 1},
	{"1000 x 1, 10 s each", "ranks=1000 " TREE("1e13"), 0, 0},
	{"1000 x 1, 0.1 s each", "ranks=1000 " TREE("1e11"), 0, 0},
	{"10 x 128", "ranks=10 workers=128 " TREE("1.28e12"), 0, 0},
	{"100 x 128, 10 ms leaves", "ranks=100 workers=128 tree=random:1.28e13:8:1:1e7", 0, 0},
	{"1000 x 128, 100 ms leaves", "ranks=1000 workers=128 tree=random:1.28e14:8:1:1e8", 0, 0},
};

#define THOUSAND "ranks=1000 " TREE("1e12")

/* The launcher's time for each address, when ranks requested them. */
#define ASKED "get=12e3 "

static const row rules_rows[] = {
	{"as it is", THOUSAND, 0, 1},
	{"addresses asked for (was)", THOUSAND ASKED "hold=0", 0, 1},
	{"... first request lost (was)", THOUSAND ASKED "rules=lossy", 0, 0},
	{"back-off not held (was)", THOUSAND "hold=0", 0, 1},
	{"random only", THOUSAND "lifelines=0", 0, 0},
	{"random only, 3.2 ms at most", THOUSAND "lifelines=0 doublings=6", 0, 0},
	{"random only, 50 us", THOUSAND "lifelines=0 doublings=0", 0, 0},
	{"lifelines at once", THOUSAND "tries=0", 0, 0},
	{"no connection to wait for", THOUSAND "contact=0", 0, 0},
	{"1 try before lifelines", THOUSAND "tries=1", 0, 0},
	{"10 tries", THOUSAND "tries=10", 0, 0},
	{"rank 0 first", THOUSAND "first=1", 0, 0},
	{"any rank first", THOUSAND "first=2", 0, 0},
	{"last victim not first", THOUSAND "last=0", 0, 0},
	{"half of a frame", THOUSAND "half=1", 0, 0},
	{"one closure", THOUSAND "want=1", 0, 0},
	{"imports of 10 ms", THOUSAND "target=10e6", 0, 0},
	{"lists are left", THOUSAND "leave=1", 0, 0},
	{"half, and lists are left", THOUSAND "half=1 leave=1", 0, 1},
	{"... and no connection to wait for", THOUSAND "half=1 leave=1 contact=0", 0, 0},
	{"back off to 0.4 ms at most", THOUSAND "doublings=3", 0, 0},
	{"held for 30 refusals", THOUSAND "hold=30", 0, 0},
	{"back off from 10 us", THOUSAND "backoff=10e3", 0, 0},
	{"from 500 us", THOUSAND "backoff=500e3", 0, 0},
};

/* Of the graphs with data, under the rules that each table has. */
static const row flat_rows[] = {
	{"1 x 1", "ranks=1", 0, 1},
	{"2 x 1", "ranks=2", 0, 1},
	{"4 x 1", "ranks=4", 0, 0},
	{"16 x 1", "ranks=16", 0, 0},
	{"64 x 1", "ranks=64", 0, 0},
	{"1 x 4", "ranks=1 workers=4", 0, 0},
	{"2 x 4", "ranks=2 workers=4", 0, 0},
	{"4 x 4", "ranks=4 workers=4", 0, 0},
	{"16 x 4", "ranks=16 workers=4", 0, 0},
	{"64 x 4", "ranks=64 workers=4", 0, 0},
};

static const row others_rows[] = {
	{"as it is", "", 0, 0},
	{"all results return, nothing is weighed", "rules=return", 0, 0},
	{"no network", "bandwidth=1e6 wire=0", 0, 0},
	{"12.5 GB/s", "bandwidth=12.5", 0, 0},
	{"written data count once", "writes=1", 0, 0},
	{"nothing is weighed", "weigh=0", 0, 0},
	{"read by way of rank 0", "peers=0", 0, 0},
	{"no limit of messages", "depth=0", 0, 0},
	{"..., read by way of rank 0", "depth=0 peers=0", 0, 0},
	{"..., read from any copy", "depth=0 peers=2", 0, 0},
	{"read from any copy", "peers=2", 0, 0},
	{"..., written data count once", "writes=1 peers=2", 0, 0},
	{"..., nothing is weighed", "peers=2 weigh=0", 0, 0},
	{"..., threads copy at 3 GB/s", "peers=2 touch=.33", 0, 0},
	{"placed", "placed=1", 0, 0},
	{"placed, 12.5 GB/s", "placed=1 bandwidth=12.5", 0, 0},
};

/* examples/cholesky on 2 ranks of one worker, which share a machine: 1 GB/s as read there. */
static const row real_rows[] = {
	{"5120 by 256, 41 GFLOP/s", "nt=20 tile=256 gflops=41", 1.01, 1},
	{"8192 by 512, 45 GFLOP/s", "nt=16 tile=512 gflops=45", 1.38, 1},
};

/* Tiles of 256, 512 KiB, 1.7 ms a gemm at 20 GFLOP/s. */
#define CHOLESKY "cost=cluster nt=40 "
/* 8 MiB a block, which takes 3.4 ms a step at 5 GB/s. */
#define JACOBI "cost=cluster blocks=64 points=8192 steps=50 cache=4e9 "
#define CG JACOBI "cg=1 steps=20 "

static const struct table tables[] = {
	{"paper", "table 1 of Gautier, Roch, Wagner 2007", "cost=paper rules=random", 5,
	 ROWS(paper_rows)},
	{"grid", "NQueens 23 on 1422 processors of 9 sites, 4434.9 s",
	 "cost=grid rules=random sites=9 slow=.6 fast=1.4", 1, ROWS(grid_rows)},
	{"here", "what bench/ranks does on 2 cores", "cost=here cores=2 wake=2e6", 10,
	 ROWS(here_rows)},
	{"scale", "ranks x workers, predicted: one second of work for each, unless said otherwise",
	 "cost=cluster", 3, ROWS(scale_rows)},
	{"rules", "other rules, 1000 x 1", "cost=cluster", 5, ROWS(rules_rows)},
	{"real", "examples/cholesky on 2 ranks", "cost=here ranks=2 bandwidth=1", 3,
	 ROWS(real_rows)},
	{"cholesky", "Cholesky, 40 x 40 tiles", CHOLESKY, 3, ROWS(flat_rows)},
	{"cholesky-copies", "..., read from any copy", CHOLESKY "peers=2", 3, ROWS(flat_rows)},
	{"cholesky-placed", "... tasks placed by the program", CHOLESKY "placed=1", 3,
	 ROWS(flat_rows)},
	{"others", "Cholesky on 16 x 1, other rules", CHOLESKY "ranks=16", 3, ROWS(others_rows)},
	{"jacobi", "Jacobi, 64 blocks of rows", JACOBI, 3, ROWS(flat_rows)},
	{"jacobi-copies", "... as cholesky-copies", JACOBI "peers=2", 3, ROWS(flat_rows)},
	{"jacobi-placed", "... placed", JACOBI "placed=1", 3, ROWS(flat_rows)},
	{"cg", "conjugate gradients, 64 blocks of rows, kdds_sync", CG "sync=1", 3,
	 ROWS(flat_rows)},
	{"cg-placed-sync", "... placed", CG "placed=1 sync=1", 3, ROWS(flat_rows)},
	{"cg-placed", "... placed, kdds_wait", CG "placed=1", 3, ROWS(flat_rows)},
};

#endif
