/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kdds-trace/trace_svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 1200
#define LEFT 90
#define TOP 40
#define ROW 22
#define BAR 16
#define ARROWS 1000   /* at most: more would hide the rest */
#define READS 4000    /* the longest ones */
#define COLOURS 12    /* further types share the last */
#define ROWS 2000

static const char *const colours[COLOURS] = {"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1",
					     "#76b7b2", "#edc948", "#9c755f", "#ff9da7",
					     "#1b9e77", "#7570b3", "#a6761d", "#8c8c8c"};

enum { NOTHING = -3, IDLE, STEAL }; /* otherwise the number of a type */

/* A worker of a rank; or, with the number of its workers as the track, what it reads. */
struct row {
	uint32_t rank, track;
	struct slice {
		int64_t from, to;
		int what;
	} *slices; /* nested, sorted by start */
	size_t n;
};

struct picture {
	const struct trace *t;
	struct row *rows;
	size_t nrows;
	int *type_of;   /* by name: the number of the task type; -1: none */
	uint32_t *names; /* and back */
	int ntypes;
};

static struct row *row_of(const struct picture *p, uint32_t rank, uint32_t track)
{
	for (size_t i = 0; i < p->nrows; i++)
		if (p->rows[i].rank == rank && p->rows[i].track == track)
			return &p->rows[i];
	return NULL;
}

static void make_rows(struct picture *p)
{
	for (uint32_t r = 0; r < p->t->nranks; r++) {
		const struct trace_rank *rank = &p->t->ranks[r];
		uint32_t n = rank->workers + (rank->reads != 0);

		for (uint32_t w = 0; w < n && p->nrows < ROWS; w++) {
			p->rows = trace_alloc(p->rows, (p->nrows + 1) * sizeof(*p->rows));
			p->rows[p->nrows++] = (struct row){.rank = r, .track = w};
		}
	}
}

static int type_of(struct picture *p, uint32_t name)
{
	if (p->type_of[name] < 0) {
		p->names[p->ntypes] = name;
		p->type_of[name] = p->ntypes++;
	}
	return p->type_of[name];
}

static int slice_kind(struct picture *p, const struct trace_event *e)
{
	if (e->category == TRACE_IDLE)
		return IDLE;
	return e->category == TRACE_STEAL ? STEAL : type_of(p, e->name);
}

static void fill_rows(struct picture *p)
{
	const struct trace *t = p->t;

	p->type_of = trace_alloc(NULL, t->nnames * sizeof(*p->type_of));
	p->names = trace_alloc(NULL, t->nnames * sizeof(*p->names));
	for (uint32_t i = 0; i < t->nnames; i++)
		p->type_of[i] = -1;
	for (size_t i = 0; i < t->count; i++) {
		const struct trace_event *e = &t->events[i];
		struct row *r;

		if (e->category == TRACE_READ && e->phase == 'b' && *t->names[e->task])
			type_of(p, e->task); /* it has a colour */
		if (e->phase != 'X' || e->category > TRACE_IDLE ||
		    !(r = row_of(p, e->rank, e->track)))
			continue;
		if (!(r->n & (r->n - 1)))
			r->slices = trace_alloc(r->slices,
						(r->n ? 2 * r->n : 1) * sizeof(*r->slices));
		r->slices[r->n++] = (struct slice){e->ns, e->ns + e->duration_ns,
						   slice_kind(p, e)};
	}
}

/* Adds the time [from, to) to `what`: spent[column * (types + 2)...]. */
static void spend(const struct picture *p, double *spent, int64_t from, int64_t to, int what)
{
	double scale = (double)COLUMNS / (double)(p->t->end_ns - p->t->begin_ns + 1);
	double a = (double)(from - p->t->begin_ns) * scale,
	       b = (double)(to - p->t->begin_ns) * scale;
	size_t kinds = (size_t)p->ntypes + 2, k = (size_t)(what < 0 ? what - IDLE : what + 2);

	for (int column = (int)a; column < COLUMNS && column < b; column++) {
		double left = a > column ? a : column, right = b < column + 1 ? b : column + 1;

		if (right > left)
			spent[(size_t)column * kinds + k] += right - left;
	}
}

/* Of nested slices, the innermost gets the time. */
static void spend_row(const struct picture *p, const struct row *r, double *spent)
{
	struct slice *open = trace_alloc(NULL, (r->n + 1) * sizeof(*open));
	int64_t now = p->t->begin_ns;
	size_t depth = 0;

	for (size_t i = 0; i <= r->n; i++) {
		int64_t until = i < r->n ? r->slices[i].from : INT64_MAX;

		while (depth && open[depth - 1].to <= until) {
			if (open[depth - 1].to > now) {
				spend(p, spent, now, open[depth - 1].to, open[depth - 1].what);
				now = open[depth - 1].to;
			}
			depth--;
		}
		if (i == r->n)
			break;
		if (depth && until > now)
			spend(p, spent, now, until, open[depth - 1].what);
		if (until > now)
			now = until;
		open[depth++] = r->slices[i];
	}
	free(open);
}

static int main_use(const double *spent, int ntypes)
{
	int best = NOTHING;
	double most = 0.05; /* the least share of a column that is drawn */

	for (int k = 0; k < ntypes + 2; k++)
		if (spent[k] > most) {
			most = spent[k];
			best = k < 2 ? k + IDLE : k - 2;
		}
	return best;
}

static const char *colour(int what)
{
	if (what == IDLE)
		return "#e4e4e4";
	return what == STEAL ? "#e15759" : colours[kd_min(what, COLOURS - 1)];
}

static void quote(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
			fprintf(out, "&#%d;", *text);
		else
			putc((unsigned char)*text < ' ' || (unsigned char)*text > '~' ? '?' : *text,
			     out);
}

static const char *name_of(const struct picture *p, int what)
{
	return what == IDLE ? "idle" : what == STEAL ? "steal" : p->t->names[p->names[what]];
}

static void put_row(const struct picture *p, size_t index, FILE *out)
{
	const struct row *r = &p->rows[index];
	size_t kinds = (size_t)p->ntypes + 2;
	double *spent = trace_alloc(NULL, COLUMNS * kinds * sizeof(*spent));
	double y = TOP + (double)index * ROW;
	int before = NOTHING, from = 0;

	for (size_t i = 0; i < COLUMNS * kinds; i++)
		spent[i] = 0;
	spend_row(p, r, spent);
	fprintf(out, "<text x=\"%d\" y=\"%g\" text-anchor=\"end\">%u", LEFT - 6, y + 12, r->rank);
	if (r->track < p->t->ranks[r->rank].workers)
		fprintf(out, ".%u</text>\n", r->track);
	else
		fputs(" reads</text>\n", out);
	for (int column = 0; column <= COLUMNS; column++) {
		int what = column < COLUMNS ? main_use(spent + (size_t)column * kinds, p->ntypes) :
					      NOTHING;

		if (what == before && column < COLUMNS)
			continue;
		if (before != NOTHING) {
			fprintf(out,
				"<rect x=\"%d\" y=\"%g\" width=\"%d\" height=\"%d\" "
				"fill=\"%s\"><title>",
				LEFT + from, y, column - from, BAR, colour(before));
			quote(out, name_of(p, before));
			fputs("</title></rect>\n", out);
		}
		before = what;
		from = column;
	}
	free(spent);
}

static double x_of(const struct picture *p, int64_t ns)
{
	return LEFT + (double)(ns - p->t->begin_ns) * COLUMNS /
			      (double)(p->t->end_ns - p->t->begin_ns + 1);
}

static int by_length(const void *x, const void *y)
{
	int64_t a = (*(const struct trace_event *const *)x)->duration_ns,
		b = (*(const struct trace_event *const *)y)->duration_ns;

	return a > b ? -1 : a < b;
}

static void put_read(const struct picture *p, const struct trace_event *e, FILE *out)
{
	const struct row *r = row_of(p, e->rank, p->t->ranks[e->rank].workers);
	const char *task = p->t->names[e->task];
	double x = x_of(p, e->ns), width = x_of(p, e->ns + e->duration_ns) - x;

	if (!r)
		return;
	fprintf(out,
		"<rect x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>", x,
		TOP + (double)(r - p->rows) * ROW, kd_max(width, 0.5), BAR,
		colour(*task ? p->type_of[e->task] : STEAL));
	quote(out, p->t->names[e->name]);
	fputs(*task ? " of " : " (a steal message)", out);
	quote(out, task);
	fprintf(out, ": %" PRIu64 " bytes from rank %u, %.1f us</title></rect>\n", e->bytes, e->peer,
		(double)e->duration_ns / 1e3);
}

/* Reads of a rank overlap. */
static void put_reads(const struct picture *p, FILE *out)
{
	const struct trace_event **reads = trace_alloc(NULL, p->t->count * sizeof(*reads));
	size_t n = 0;

	for (size_t i = 0; i < p->t->count; i++)
		if (p->t->events[i].category == TRACE_READ && p->t->events[i].phase == 'b')
			reads[n++] = &p->t->events[i];
	qsort(reads, n, sizeof(*reads), by_length);
	fputs("<g fill-opacity=\"0.5\">\n", out);
	for (size_t i = 0; i < n && i < READS; i++)
		put_read(p, reads[i], out);
	fputs("</g>\n", out);
	free(reads);
}

static double y_of(const struct picture *p, const struct trace_event *e)
{
	const struct trace_rank *rank = &p->t->ranks[e->rank];
	/* a message comes from the rank, not from a worker: draw it from the rank's first row */
	const struct row *r = row_of(p, e->rank, e->track < rank->workers ? e->track : 0);

	return r ? TOP + (double)(r - p->rows) * ROW + BAR / 2.0 : -1;
}

struct arrow {
	uint64_t flow;
	const struct trace_event *event;
};

static int by_flow(const void *x, const void *y)
{
	const struct arrow *a = x, *b = y;

	return a->flow != b->flow ? (a->flow < b->flow ? -1 : 1) :
				    (a->event->phase == 'f') - (b->event->phase == 'f');
}

static void put_arrows(const struct picture *p, FILE *out)
{
	struct arrow *ends = trace_alloc(NULL, p->t->count * sizeof(*ends));
	size_t n = 0, step = p->t->flows / ARROWS + 1;

	for (size_t i = 0; i < p->t->count; i++)
		if (p->t->events[i].category == TRACE_FLOW && !p->t->events[i].drop)
			ends[n++] = (struct arrow){p->t->events[i].flow, &p->t->events[i]};
	qsort(ends, n, sizeof(*ends), by_flow);
	fputs("<g stroke=\"#e15759\" stroke-width=\"0.7\" opacity=\"0.7\">\n", out);
	for (size_t i = 0; i + 1 < n; i += 2 * step) {
		double y1 = y_of(p, ends[i].event), y2 = y_of(p, ends[i + 1].event);

		if (y1 >= 0 && y2 >= 0)
			fprintf(out,
				"<line x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\" "
				"marker-end=\"url(#head)\"/>\n",
				x_of(p, ends[i].event->ns), y1, x_of(p, ends[i + 1].event->ns), y2);
	}
	fputs("</g>\n", out);
	free(ends);
}

/* 1, 2 or 5 times a power of ten, so that there are about ten marks. */
static double mark_ns(double span_ns)
{
	double mark = 1;

	while (mark * 10 < span_ns / 10)
		mark *= 10;
	if (mark * 2 >= span_ns / 10)
		return mark * 2;
	return mark * 5 >= span_ns / 10 ? mark * 5 : mark * 10;
}

static void put_axis(const struct picture *p, FILE *out)
{
	double span = (double)(p->t->end_ns - p->t->begin_ns + 1), mark = mark_ns(span);
	double unit = span < 2e4 ? 1 : span < 2e7 ? 1e3 : span < 2e10 ? 1e6 : 1e9;
	const char *name = unit < 10 ? "ns" : unit < 1e4 ? "us" : unit < 1e7 ? "ms" : "s";
	double bottom = TOP + (double)p->nrows * ROW;

	for (double at = 0; at <= span; at += mark) {
		double x = LEFT + at * COLUMNS / span;

		fprintf(out,
			"<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%g\" stroke=\"#d0d0d0\" "
			"stroke-width=\"0.5\"/>\n"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g %s</text>\n",
			x, TOP - 6, x, bottom, x, TOP - 12, at / unit, name);
	}
}

static void put_legend(const struct picture *p, FILE *out)
{
	double x = LEFT, y = TOP + (double)p->nrows * ROW + 18;

	for (int what = IDLE; what < p->ntypes; what++) {
		const char *name = name_of(p, what);
		double width = 26 + 7.0 * (double)strlen(name);

		if (x + width > LEFT + COLUMNS && x > LEFT) {
			x = LEFT;
			y += 18;
		}
		fprintf(out,
			"<rect x=\"%g\" y=\"%g\" width=\"11\" height=\"11\" fill=\"%s\"/><text "
			"x=\"%g\" y=\"%g\">",
			x, y - 10, colour(what), x + 15, y);
		quote(out, name);
		fputs("</text>\n", out);
		x += width;
	}
}

void trace_svg(const struct trace *t, FILE *out)
{
	struct picture p = {.t = t};
	double height;

	make_rows(&p);
	fill_rows(&p);
	height = TOP + (double)p.nrows * ROW + 30 + 18.0 * (1 + p.ntypes / 6);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\" "
		"viewBox=\"0 0 %d %g\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n"
		"<defs><marker id=\"head\" markerWidth=\"5\" markerHeight=\"4\" refX=\"5\" "
		"refY=\"2\" orient=\"auto\">"
		"<path d=\"M0,0 L5,2 L0,4 z\" fill=\"#e15759\"/></marker></defs>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		LEFT + COLUMNS + 30, height, LEFT + COLUMNS + 30, height);
	put_axis(&p, out);
	for (size_t i = 0; i < p.nrows && !ferror(out); i++)
		put_row(&p, i, out);
	put_reads(&p, out);
	put_arrows(&p, out);
	put_legend(&p, out);
	fputs("</svg>\n", out);
	for (size_t i = 0; i < p.nrows; i++)
		free(p.rows[i].slices);
	free(p.rows);
	free(p.type_of);
	free(p.names);
}
