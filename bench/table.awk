# SPDX-License-Identifier: BSD-3-Clause
# From medians (table.csv) to text: libkdds compared with sequential C and the best of the others,
# then all programs side by side.
BEGIN { FS = "," }
FNR == 1 { next }
{
	if (!($1 in unit)) {
		workload[++nworkloads] = $1
		unit[$1] = $3
		label[$1] = $1 ($2 == "" || $2 == 0 ? "" : "(" $2 ")")
		gsub(/ /, ",", label[$1])
	}
	if ($4 != "plain" && !($4 in known)) {
		program[++nprograms] = $4
		known[$4] = 1
	}
	if ($6 == 1 && $5 > most)
		most = $5
	if ($6 > 1 && !($6 in is_rank)) {
		rank[++nranks] = $6
		is_rank[$6] = 1
	}
	row = $1 SUBSEP $4 SUBSEP $5 SUBSEP $6
	each[row] = $8
	spread[row] = ($10 - $9) / $8
	t1_ts[row] = $11
	t1_tp[row] = $12
	peer[row] = $14
	ratio[row] = $15
}

# A time with about three digits, in ns; in ms for a run. A dash if it is not known.
function time(w, p, n, r,   x)
{
	if (!((w, p, n, r) in each))
		return "-"
	x = each[w, p, n, r]
	if (unit[w] == "run")
		x /= 1e6
	return sprintf(x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : "%.0f", x)
}

function number(x)
{
	return x == "" ? "-" : sprintf("%.3f", x)
}

function unit_of(w)
{
	return (unit[w] == "run" ? "ms" : "ns") "/" unit[w]
}


END {
	print "libkdds: Ts is sequential C, T1 one worker, T" most " " most "; after a " \
		"peer's name, its time over that of libkdds"
	print ""
	printf "%-22s %-8s %7s %7s %7s %7s %6s %6s  %-14s  %s\n", "", "", \
		"Ts", "T1", "T" most, "spread", "T1/Ts", "T1/T" most, "best peer on 1", "on " most
	for (i = 1; i <= nworkloads; i++) {
		w = workload[i]
		one = w SUBSEP "libkdds" SUBSEP 1 SUBSEP 1
		all = w SUBSEP "libkdds" SUBSEP most SUBSEP 1
		printf "%-22s %-8s %7s %7s %7s %7s %6s %6s  %-8s %6s  %-8s %6s\n", \
			label[w], unit_of(w), time(w, "plain", 0, 1), time(w, "libkdds", 1, 1), \
			time(w, "libkdds", most, 1), sprintf("%.0f %%", 100 * spread[all]), \
			number(t1_ts[one]), number(t1_tp[all]), \
			peer[one] == "" ? "-" : peer[one], number(ratio[one]), \
			peer[all] == "" ? "-" : peer[all], number(ratio[all])
	}

	print ""
	print "all: on 1 and on " most " workers"
	print ""
	printf "%-22s %-8s %7s", "", "", "plain C"
	for (p = 1; p <= nprograms; p++)
		printf "  %15s", program[p]
	print ""
	for (i = 1; i <= nworkloads; i++) {
		w = workload[i]
		printf "%-22s %-8s %7s", label[w], unit_of(w), time(w, "plain", 0, 1)
		for (p = 1; p <= nprograms; p++)
			printf "  %7s %7s", time(w, program[p], 1, 1), time(w, program[p], most, 1)
		print ""
	}

	if (!nranks)
		exit
	print ""
	print "libkdds on processes of one worker each, and T1 over that"
	print ""
	printf "%-22s %-8s %7s", "", "", "1"
	for (r = 1; r <= nranks; r++)
		printf "  %15s", rank[r]
	print ""
	for (i = 1; i <= nworkloads; i++) {
		w = workload[i]
		printf "%-22s %-8s %7s", label[w], unit_of(w), time(w, "libkdds", 1, 1)
		for (r = 1; r <= nranks; r++)
			printf "  %8s %6s", time(w, "libkdds", 1, rank[r]), \
				number(t1_tp[w, "libkdds", 1, rank[r]])
		print ""
	}
}
