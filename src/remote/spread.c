/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/spread.h"

#include <stdlib.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "core/frozen.h"
#include "core/value.h"
#include "core/worker.h"
#include "remote/balance.h"
#include "remote/net.h"

#define LOOPS 32     /* of different lengths that may give periods */
#define PERIODS 8    /* the latest, of which the mean counts, */
#define PAUSE 2      /* times as long as others: main has done other things, too */
#define FEWEST 4     /* at home, before a trial; */
#define FEWEST_LONG 2 /* or that many, of such a length and equal but for a fourth; then only a */
#define LONG_NS 10000000 /* clear gain counts */
#define EQUAL_PART 4
#define SETTLING 2   /* the first of a trial, and after it, in which data move */
#define MEASURED 6   /* the others; or fewer, if they say it clearly, and an even number: */
#define MEASURED_CLEAR 4
#define CLEAR_PERCENT 85 /* of the time at home, or less; */
#define HOPELESS_PERCENT 150 /* or more */
#define PATIENCE 2   /* a trial waits for so many times of what it may cost, */
#define PART_NS 150000 /* for each loop, besides the data, */
#define TAG_BYTES_PER_NS 2 /* that are compared by tags, if they are not moved (read.h) */
#define FAILED_TIMES 2 /* for so many times longer after each one in vain, */
#define FAILED_MOST 8  /* at most that often */
#define USES 8       /* of a loop, that are compared with those of others; others count each time */
#define WRITTEN 64   /* latest values that loops have written; data of older ones count as not */
#define SAMPLE_ALL 16  /* periods, and starts of a loop; later, since loops may be short, */
#define SAMPLE_EVERY 8 /* every eighth period, and of eight starts */
#define SAMPLE_RUN 2   /* two in a row: two arrays may alternate */
#define GAIN_PERCENT 97 /* of the time at home: a trial must not take longer, */
#define LOSS_PERCENT 110 /* and what comes after it not longer than that */
#define SHORT_NS 10000  /* shorter loops gain nothing on other ranks, so of that many */
#define SHORT_LOOPS 16  /* only one is looked at, after that many in a row; */
#define SHORT_ROW 64
#define SHORT_ROW_MOST 65536 /* twice as many each time that there were long ones among them */
#define STRIKES 2    /* of the clock within one step */
#define LOST_PERIODS 8 /* without a start, then another loop gives the periods */

/* Memory from the first byte of a value to its last one. */
struct span {
	uint64_t begin, end;
};

/* Data that a loop uses. */
struct use {
	struct span span;
	uint64_t bytes;
	int written, given; /* given: it only reads them, and they are not frozen */
};

/* A loop of main. */
struct loop {
	const struct kdds_loop *loop;
	size_t n;
	uint64_t begun_ns, starts;
	uint64_t period_ns; /* between the last two starts */
	uint64_t strikes; /* of the clock, when it began */
	uint64_t least_ns; /* until the next loop of main, lately */
	struct use uses[USES];
	uint32_t nuses;
	uint64_t bytes, written; /* of other data that it uses, and writes */
};

enum spread_state { SPREAD_HOME, SPREAD_TRIAL, SPREAD_SPREAD };

struct kd_spread {
	uint32_t lock;
	uint32_t unseen; /* loops that have yet to be left out, because they are short */
	int shorts;      /* some are left out; if none are: */
	uint32_t row, row_least; /* loops since then; so many must be short */
	uint64_t since_ns; /* the last one that was looked at, or the first of the row */
	enum spread_state state;
	struct loop loops[LOOPS];
	uint32_t nloops;
	struct loop *clock; /* the one that gives the periods; NULL: none yet */
	struct loop *last;  /* the latest; NULL: none, or one that is not among them */
	struct span written[WRITTEN]; /* a ring */
	uint32_t nwritten;
	uint64_t period[PERIODS], periods; /* in this state */
	uint64_t strikes; /* of all clocks */
	uint32_t settled;   /* the first periods of the trial, and after it */
	uint64_t home_ns;   /* a period at home */
	int early;          /* the trial began after FEWEST_LONG */
	uint64_t cost_ns, trial_ns; /* what the trial may cost, and has taken */
	uint32_t failed;    /* trials in vain, in a row */
	uint64_t lost_ns;   /* by the last of these */
	int returns;        /* the data have yet to be read here */
};

void kd_spread_start(struct kd_net *net)
{
	net->spread = kd_must(calloc(1, sizeof(*net->spread)));
	net->spread->row_least = SHORT_ROW;
}

void kd_spread_stop(struct kd_net *net)
{
	free(net->spread);
	net->spread = NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* How long a period takes. If a loop starts twice in a step, they are long and short in turn, so a
 * median would not do; a single long one does not count. */
static uint64_t period_ns(const struct kd_spread *me)
{
	uint64_t sorted[PERIODS], sum = 0;
	size_t n = kd_min(me->periods, (uint64_t)PERIODS);

	for (size_t i = 0; i < n; i++)
		sorted[i] = me->period[i];
	qsort(sorted, n, sizeof(*sorted), compare);
	if (n > 2 && sorted[n - 1] > PAUSE * sorted[n - 2])
		n--;
	for (size_t i = 0; i < n; i++)
		sum += kd_min(sorted[i], PAUSE * sorted[n / 2]);
	return n ? sum / n : 0;
}

static void enter(struct kd_spread *me, enum spread_state state)
{
	me->state = state;
	me->periods = me->trial_ns = 0;
	me->settled = 0;
}

static void go_home(struct kd_spread *me)
{
	uint64_t home_ns = (SETTLING + me->periods) * me->home_ns;

	me->lost_ns = me->trial_ns > home_ns ? me->trial_ns - home_ns : 0;
	me->failed = kd_min(me->failed + 1, (uint32_t)FAILED_MOST);
	me->returns = 1;
	enter(me, SPREAD_HOME);
}

/* Whether an access before number i has data in common with it. */
static int is_repeated(struct kdds_closure *c, uint32_t i, const struct kd_value *v)
{
	for (uint32_t k = 0; k < i; k++) {
		struct kd_value before = kd_value_of(c, k);

		if (kd_value_overlaps(&before, v))
			return 1;
	}
	return 0;
}

static struct span span_of(const struct kd_value *v)
{
	uint64_t begin = (uintptr_t)v->data;

	return (struct span){begin, begin + ((v->rows - 1) * v->ld + v->cols) * v->size};
}

/* Records what the loop, which begins, uses. */
static void use(struct kd_net *net, struct kd_spread *me, struct loop *l, struct kdds_closure *c)
{
	l->bytes = l->written = l->nuses = 0;
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		uint64_t bytes = v.rows * v.cols * v.size;
		uint32_t mode = c->type->access[i].mode;

		if (mode == KDDS_CW || !bytes)
			continue;
		if (mode != KDDS_R)
			me->written[me->nwritten++ % WRITTEN] = span_of(&v);
		if (is_repeated(c, i, &v))
			continue;
		if (l->nuses < USES) {
			l->uses[l->nuses++] = (struct use){
				span_of(&v), bytes, mode != KDDS_R,
				mode == KDDS_R && !kd_frozen_number(&net->pool->frozen, &v)};
		} else {
			l->bytes += bytes;
			l->written += mode != KDDS_R ? bytes : 0;
		}
	}
}

static int overlap(const struct span *a, const struct span *b)
{
	return a->begin < b->end && b->begin < a->end;
}

static int is_written(const struct kd_spread *me, const struct span *s)
{
	for (uint32_t i = 0; i < kd_min(me->nwritten, (uint32_t)WRITTEN); i++)
		if (overlap(&me->written[i], s))
			return 1;
	return 0;
}

/* What the loops of the last period use. Data of several of them count once. */
struct period_use {
	uint64_t bytes, written;
	uint64_t given; /* that no loop writes */
	uint64_t ns; /* without what main does in between */
	uint32_t loops;
};

static int in_period(const struct kd_spread *me, const struct loop *l)
{
	return l->begun_ns >= me->clock->begun_ns;
}

/* Whether a loop of the period before number n uses the data, or writes them. */
static int is_counted(const struct kd_spread *me, uint32_t n, const struct use *u, int written)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; in_period(me, &me->loops[i]) && k < me->loops[i].nuses; k++) {
			const struct use *before = &me->loops[i].uses[k];

			if (before->written >= written && overlap(&before->span, &u->span))
				return 1;
		}
	return 0;
}

static void count_uses(const struct kd_spread *me, uint32_t n, struct period_use *u)
{
	const struct loop *l = &me->loops[n];

	for (uint32_t k = 0; k < l->nuses; k++) {
		const struct use *d = &l->uses[k];

		if (!is_counted(me, n, d, 0))
			u->bytes += d->bytes;
		if (d->written && !is_counted(me, n, d, 1))
			u->written += d->bytes;
		if (d->given && !is_written(me, &d->span))
			u->given += d->bytes;
	}
	u->bytes += l->bytes;
	u->written += l->written;
}

static struct period_use count_use(const struct kd_spread *me)
{
	struct period_use u = {0};

	for (uint32_t i = 0; i < me->nloops; i++) {
		if (!in_period(me, &me->loops[i]))
			continue;
		u.loops++;
		u.ns += me->loops[i].least_ns;
		count_uses(me, i, &u);
	}
	return u;
}

/* Whether the first periods say enough: they are long, and about equal, so main has not done other
 * things in one of them, and the clock does not strike twice in a step. */
static int are_long(const struct kd_spread *me)
{
	uint64_t a = me->period[0], b = me->period[1];

	return me->periods == FEWEST_LONG && kd_min(a, b) >= LONG_NS &&
	       kd_max(a, b) - kd_min(a, b) <= kd_min(a, b) / EQUAL_PART;
}

/* Whether a trial begins: it costs little in comparison with the time so far. Half of the data
 * move, and what has been written may have to move back. What loops read and do not write, main may
 * have written meanwhile, so it is compared in each period, if not moved. While that takes longer
 * than the other rank can save, there is no trial. */
static int may_try(struct kd_net *net, struct kd_spread *me)
{
	struct period_use u;
	uint64_t given_ns, wait_ns;

	me->early = me->periods < FEWEST;
	if (me->early && !are_long(me))
		return 0;
	u = count_use(me);
	given_ns = kd_min(kd_balance_spread_ns(net, u.given / 2), u.given / 2 / TAG_BYTES_PER_NS);
	if (given_ns > u.ns / 2)
		return 0;
	me->cost_ns = kd_balance_spread_ns(net, (u.bytes + u.written) / 2) +
		      (uint64_t)u.loops * (SETTLING + MEASURED) * PART_NS;
	wait_ns = me->cost_ns;
	if (me->failed)
		wait_ns = kd_max(wait_ns, kd_max(me->lost_ns, SETTLING * me->home_ns));
	for (uint32_t i = 0; i < me->failed; i++)
		wait_ns *= FAILED_TIMES;
	return me->periods * me->home_ns >= PATIENCE * wait_ns;
}

/* A period of the trial has passed; they take so many per cent of the time at home. */
static void judge(struct kd_spread *me, uint64_t percent)
{
	int clear = percent <= CLEAR_PERCENT || percent >= HOPELESS_PERCENT;

	if (me->periods < (clear ? MEASURED_CLEAR : MEASURED))
		return;
	if (percent > (me->early ? CLEAR_PERCENT : GAIN_PERCENT)) {
		go_home(me);
		return;
	}
	me->failed = 0;
	enter(me, SPREAD_SPREAD);
}

/* The clock has struck after ns. */
static void note(struct kd_net *net, struct kd_spread *me, uint64_t ns)
{
	int moves = me->state == SPREAD_TRIAL || (me->state == SPREAD_HOME && me->failed);

	if (!moves || me->settled++ >= SETTLING)
		me->period[me->periods++ % PERIODS] = ns;
	switch (me->state) {
	case SPREAD_HOME:
		if (me->periods > SAMPLE_ALL && me->periods % SAMPLE_EVERY)
			break;
		me->home_ns = period_ns(me);
		if (may_try(net, me))
			enter(me, SPREAD_TRIAL);
		break;
	case SPREAD_TRIAL:
		me->trial_ns += kd_min(ns, PAUSE * me->home_ns + me->cost_ns);
		judge(me, me->home_ns ? 100 * period_ns(me) / me->home_ns : 0);
		break;
	case SPREAD_SPREAD:
		if (me->periods >= PERIODS && period_ns(me) * 100 > me->home_ns * LOSS_PERCENT)
			go_home(me);
		break;
	}
}

static struct loop *find(struct kd_spread *me, const struct kdds_loop *loop, size_t n)
{
	for (uint32_t i = 0; i < me->nloops; i++)
		if (me->loops[i].loop == loop && me->loops[i].n == n)
			return &me->loops[i];
	if (me->nloops == LOOPS)
		return NULL;
	me->loops[me->nloops] = (struct loop){.loop = loop, .n = n};
	return &me->loops[me->nloops++];
}

/* Whether a loop, which begins again, gives periods rather than the clock: there is none, or it has
 * not struck for long, or it strikes several times while this loop takes most of the time. */
static int is_better(const struct kd_spread *me, const struct loop *l, uint64_t now)
{
	const struct loop *clock = me->clock;

	if (!clock || now - clock->begun_ns > LOST_PERIODS * kd_max(l->period_ns, clock->period_ns))
		return 1;
	return me->state == SPREAD_HOME && me->strikes - l->strikes > STRIKES &&
	       l->least_ns > l->period_ns / 2;
}

static void begin(struct kd_net *net, struct kd_spread *me, struct kdds_closure *c, size_t n,
		  uint64_t now)
{
	struct loop *l = find(me, c->type->loop, n), *last = me->last;

	if (last && me->state == SPREAD_HOME)
		last->least_ns = kd_min(now - last->begun_ns,
					last->least_ns ? last->least_ns + last->least_ns / 8 :
							 UINT64_MAX);
	me->last = l;
	if (!l)
		return;
	l->period_ns = now - l->begun_ns;
	if (l == me->clock) {
		me->strikes++;
		note(net, me, l->period_ns);
	} else if (l->starts && is_better(me, l, now)) {
		me->clock = l;
		me->returns = me->state != SPREAD_HOME;
		enter(me, SPREAD_HOME);
	}
	l->begun_ns = now;
	l->strikes = me->strikes;
	if (l->starts < SAMPLE_ALL || l->starts % SAMPLE_EVERY < SAMPLE_RUN)
		use(net, me, l, c);
	l->starts++;
}

/* Whether loops are so short that most are left out. When there are long ones again, periods are
 * counted anew. */
static int are_short(struct kd_spread *me, uint64_t now)
{
	uint64_t ns = now - me->since_ns;
	uint32_t row = me->shorts ? SHORT_LOOPS : me->row_least;

	if (!me->since_ns)
		me->since_ns = now;
	if (!me->shorts && me->row++ < row)
		return 0;
	me->since_ns = now;
	me->row = 0;
	if (me->state == SPREAD_HOME && ns < row * (uint64_t)SHORT_NS) {
		me->shorts = 1;
		return 1;
	}
	if (me->shorts) {
		me->row_least = kd_min(2 * me->row_least, (uint32_t)SHORT_ROW_MOST);
		me->clock = me->last = NULL;
		enter(me, SPREAD_HOME);
	}
	me->shorts = 0;
	return 0;
}

/* How many ranks take part. */
static uint32_t ranks_of(const struct kd_net *net, size_t n)
{
	uint32_t ranks = 1;

	while (2 * ranks <= net->size && 2 * ranks <= n && 2 * ranks <= KD_SPREAD_MOST)
		ranks *= 2;
	for (uint32_t r = 1; r < ranks; r++)
		if (!kd_net_takes(net, r))
			return 1;
	return ranks;
}

int kd_spread_loop(struct kd_remote *remote, struct kdds_closure *c, size_t n)
{
	struct kd_net *net = kd_net_of(remote);
	struct kd_spread *me = net->spread;
	uint64_t now;
	int ranks;

	if (net->rank || net->survives || kd_env.spread == KD_SPREAD_NEVER)
		return 0;
	if (kd_env.spread == KD_SPREAD_ALWAYS)
		return (int)ranks_of(net, n);
	if (kd_load_relaxed(&me->unseen)) {
		kd_store_relaxed(&me->unseen, kd_load_relaxed(&me->unseen) - 1);
		return 0;
	}
	while (kd_exchange(&me->lock, 1))
		kd_os_yield();
	now = kd_os_now_ns();
	if (are_short(me, now))
		kd_store_relaxed(&me->unseen, SHORT_LOOPS - 1);
	else
		begin(net, me, c, n, now);
	ranks = me->state == SPREAD_HOME ? -me->returns : (int)ranks_of(net, n);
	me->returns = 0;
	kd_store_release(&me->lock, 0);
	return ranks;
}
