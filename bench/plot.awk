# SPDX-License-Identifier: BSD-3-Clause
#
# A plot (SVG) of medians (table.csv): a row for each workload, a mark for each program, on a
# logarithmic axis. A bar through a mark reaches from its fastest to its slowest round.
#
#   what=overhead  time on one worker over sequential C: what tasks cost
#   what=speedup   sequential C over time on the largest number of workers: speed-up
BEGIN {
	FS = ","
	left = 130; width = 620; top = 74; step = 26
	split("#1f4e9c #d95f02 #1b9e77 #7b3fa0 #606060 #b8860b", colour, " ")
}
FNR == 1 { next }
$6 != 1 { next }
{
	if (!($1 in is_workload)) {
		workload[++nworkloads] = $1
		is_workload[$1] = 1
	}
	if ($4 == "plain") {
		plain[$1] = $8
		next
	}
	if (!($4 in is_program)) {
		program[++nprograms] = $4
		is_program[$4] = 1
	}
	if ($5 > most)
		most = $5
	each[$1, $4, $5] = $8
	min[$1, $4, $5] = $9
	max[$1, $4, $5] = $10
}

function value(w, ns)
{
	return what == "overhead" ? ns / plain[w] : plain[w] / ns
}

function log10(x)
{
	return log(x) / log(10)
}

function x_of(v)
{
	return left + width * (log10(v) - low) / (high - low)
}

# The mark of program number p at (x, y).
function mark(p, x, y,   c)
{
	c = "fill=\"" colour[p] "\""
	if (p == 1)
		return sprintf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" %s/>", x, y, c)
	if (p == 2)
		return sprintf("<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" %s/>", x - 4, \
			y - 4, c)
	if (p == 3)
		return sprintf("<path d=\"M%.1f %.1fl5 9h-10z\" %s/>", x, y - 5.5, c)
	if (p == 4)
		return sprintf("<path d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\" %s/>", x, y - 5, c)
	c = "fill=\"none\" stroke-width=\"2.5\" stroke=\"" colour[p] "\""
	return sprintf("<path d=\"M%.1f %.1fl8 8m0 -8l-8 8\" %s/>", x - 4, y - 4, c)
}

function text(x, y, anchor, words)
{
	printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words
}

END {
	n = what == "overhead" ? 1 : most
	low = 0
	high = 0
	for (i = 1; i <= nworkloads; i++)
		for (p = 1; p <= nprograms; p++)
			if ((workload[i], program[p], n) in each) {
				v = log10(value(workload[i], min[workload[i], program[p], n]))
				if (v > high) high = v
				if (v < low) low = v
				v = log10(value(workload[i], max[workload[i], program[p], n]))
				if (v > high) high = v
				if (v < low) low = v
			}
	low -= 0.08
	high += 0.08
	height = top + nworkloads * step + 44

	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"", \
		left + width + 30, height
	print " font-family=\"sans-serif\" font-size=\"13\">"
	print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
	if (what == "overhead")
		text(left, 22, "start", "Time on one worker over sequential C: what tasks cost " \
			"(1: nothing; left is better)")
	else
		text(left, 22, "start", "Sequential C over time on " most " workers: speed-up " \
			"(right is better)")
	x = left
	for (p = 1; p <= nprograms; p++) {
		print mark(p, x + 6, 42)
		text(x + 18, 46, "start", program[p])
		x += 110
	}
	bottom = top + nworkloads * step
	for (d = int(low) - 1; d <= high; d++)
		for (m = 1; m < 10; m++) {
			v = log10(m) + d
			if (v < low || v > high)
				continue
			x = left + width * (v - low) / (high - low)
			printf "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\" " \
				"stroke-width=\"%s\"/>\n", x, top - 8, bottom, \
				m == 1 ? "#b0b0b0" : "#e6e6e6", m == 1 && d == 0 ? 2 : 1
			if (m == 1 || high - low < 2.2 && (m == 2 || m == 5))
				text(x, bottom + 18, "middle", m * 10 ^ d)
		}
	for (i = 1; i <= nworkloads; i++) {
		w = workload[i]
		y = top + (i - 0.5) * step
		text(left - 10, y + 4.5, "end", w)
		printf "<path d=\"M%d %.1fh%d\" stroke=\"#e6e6e6\"/>\n", left, top + i * step, width
		# libkdds last, on top
		for (p = nprograms; p >= 1; p--) {
			if (!((w, program[p], n) in each) || !(w in plain))
				continue
			dy = (p - (nprograms + 1) / 2) * 2.5 # or equal ones hide each other
			printf "<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\" stroke-width=\"1.5\"/>", \
				x_of(value(w, min[w, program[p], n])), y + dy, \
				x_of(value(w, max[w, program[p], n])), colour[p]
			print mark(p, x_of(value(w, each[w, program[p], n])), y + dy)
		}
	}
	print "</svg>"
}
