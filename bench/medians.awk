# SPDX-License-Identifier: BSD-3-Clause
#
# From measurements (runs.csv) to medians (table.csv): a line for each workload, program, number of
# workers and number of ranks. Times are per unit (call, task, node, run), since sizes may differ
# between programs. Ratios are medians of ratios within rounds.
#
#   each, min, max  nanoseconds of a unit
#   t1_ts           one worker over sequential C
#   t1_tp           one worker over this number of workers (or processes)
#   ts_tp           sequential C over this number
#   peer, ratio     for libkdds: the fastest other program on as many workers, and its time over
#                   that of libkdds
BEGIN { FS = OFS = "," }
FNR == 1 { next }
{
	key = $1 SUBSEP $4 SUBSEP $5 SUBSEP $6
	if (!(key in size)) {
		order[++n] = key
		size[key] = $2
		unit[key] = $3
	}
	t[key, $7] = $8 / $9 * 1e9
	if (!($7 in seen)) {
		seen[$7] = 1
		round[++rounds] = $7
	}
}

# The median of list[1..k], which is sorted.
function median(list, k,   i, j, x)
{
	for (i = 2; i <= k; i++)
		for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
			x = list[j]
			list[j] = list[j - 1]
			list[j - 1] = x
		}
	return k % 2 ? list[(k + 1) / 2] : (list[k / 2] + list[k / 2 + 1]) / 2
}

# The median of a's time over b's, of the rounds that have both; empty if there is none.
function ratio(a, b,   i, k, list)
{
	for (i = 1; i <= rounds; i++)
		if ((a, round[i]) in t && (b, round[i]) in t)
			list[++k] = t[a, round[i]] / t[b, round[i]]
	return k ? sprintf("%.4f", median(list, k)) : ""
}

function times(key, list,   i, k)
{
	for (i = 1; i <= rounds; i++)
		if ((key, round[i]) in t)
			list[++k] = t[key, round[i]]
	return k
}

END {
	for (i = 1; i <= n; i++) {
		count[order[i]] = times(order[i], list)
		each[order[i]] = median(list, count[order[i]])
		min[order[i]] = list[1]
		max[order[i]] = list[count[order[i]]]
	}
	print "workload,size,unit,program,workers,ranks,rounds,each,min,max," \
		"t1_ts,t1_tp,ts_tp,peer,ratio"
	for (i = 1; i <= n; i++) {
		key = order[i]
		split(key, part, SUBSEP)
		plain = part[1] SUBSEP "plain" SUBSEP 0 SUBSEP 1
		one = part[1] SUBSEP part[2] SUBSEP 1 SUBSEP 1
		peer = ""
		for (j = 1; j <= n && part[2] == "libkdds" && part[4] == 1; j++) {
			split(order[j], other, SUBSEP)
			if (other[1] == part[1] && other[2] != "plain" && other[2] != "libkdds" &&
			    other[3] == part[3] && (peer == "" || each[order[j]] < each[peer]))
				peer = order[j]
		}
		split(peer, other, SUBSEP)
		print part[1], size[key], unit[key], part[2], part[3], part[4], count[key], \
			sprintf("%.3f,%.3f,%.3f", each[key], min[key], max[key]), \
			ratio(one, plain), ratio(one, key), ratio(plain, key), \
			other[2], ratio(peer, key)
	}
}
