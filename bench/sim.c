/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scenarios of the simulation (sim.h). The tables of doc/scaling.md come from here.
 *
 *   sim [-c FILE] quick|full [TABLE]...   the tables, and a line of FILE (CSV) for each row
 *   sim run KEY=VALUE...                  one job; its result as KEY=VALUE. sim keys lists them.
 */
#include "sim.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ll
#define MS 1000000ll

/* Measured on one host with 2 cores, over loopback (doc/scaling.md). The CPU times hold for any
 * network under TCP. */
#define MEASURED \
	.send = 2500, .receive = 2000, .wake = 8 * US, .find = 5 * US, .pack = 2 * US, \
	.local = 2 * US, .rouse = 30 * US, .spin = 1 * MS, .connection_bytes = 19 << 10

static const struct {
	const char *name;
	struct sim_costs cost;
} costs[] = {
	{"here", {MEASURED, .wire = 2 * US, .wan = 2 * US, .contact = 1 * MS, .bandwidth = 3}},
	{"cluster", {MEASURED, .wire = 10 * US, .wan = 10 * US, .contact = 1 * MS, .bandwidth = 3}},
	/* Pentium III at 733 MHz, Fast Ethernet, Linux 2.4. */
	{"paper",
	 {.wire = 50 * US, .wan = 50 * US, .send = 20 * US, .receive = 20 * US, .wake = 10 * US,
	  .find = 10 * US, .pack = 20 * US, .local = 2 * US, .rouse = 100 * US, .spin = 1 * MS,
	  .contact = 1 * MS, .slice = 40 * MS, .start = 400 * MS, .bandwidth = 0.0115,
	  .connection_bytes = 19 << 10}},
	/* Clusters of 2006 (Gigabit) at several sites, about 5 ms apart. */
	{"grid",
	 {.wire = 40 * US, .wan = 5 * MS, .send = 10 * US, .receive = 10 * US, .wake = 10 * US,
	  .find = 5 * US, .pack = 10 * US, .local = 2 * US, .rouse = 50 * US, .spin = 1 * MS,
	  .contact = 1 * MS, .bandwidth = 0.115, .connection_bytes = 19 << 10}},
};

static const struct {
	const char *name;
	struct sim_rules rules;
} rules[] = {
	/* src/remote/ask.c and import.c as they are. */
	{"now",
	 {FIRST_TREE, 1, 3, 1, 50 * US, 14, 13, 20 * MS, 5, 64, 2 * MS, 2 * MS, 20 * US, 0, 0, 0,
	  200 * MS, {1, 1, 512, 4, 3, 1}}},
	/* The same, but all results return at once, and nothing is weighed. */
	{"return",
	 {FIRST_TREE, 1, 3, 1, 50 * US, 14, 13, 20 * MS, 5, 64, 2 * MS, 2 * MS, 20 * US, 0, 0, 0,
	  200 * MS, {0}}},
	/* As ask.c was when the first request to a rank was lost, because the connection was not
	 * up, and repeated after half a second. */
	{"lossy",
	 {FIRST_TREE, 1, 3, 1, 50 * US, 14, 0, 500 * MS, 0, 64, 2 * MS, 0, 0, 1, 0, 0, 0, {0}}},
	/* The paper's: a victim at random each time. */
	{"random",
	 {FIRST_RANDOM, 0, 0, 0, 50 * US, 0, 0, 500 * MS, 0, 1, 0, INT64_MAX, 0, 0, 0, 0, 0,
	  {0}}},
};

struct key {
	const char *name, *help;
	char kind; /* i int, t time in ns, d double, u uint32_t, b bytes */
	size_t field;
};

#define KEY(name, kind, field, help) {name, help, kind, offsetof(struct sim_job, field)}

static const struct key keys[] = {
	KEY("ranks", 'u', ranks, "ranks"),
	KEY("workers", 'u', workers, "workers of each"),
	KEY("cores", 'i', cores, "cores that all workers share; 0: each has its own"),
	KEY("sites", 'u', sites, "sites the ranks are divided among"),
	KEY("slow", 'd', slow, "speed of the slowest rank"),
	KEY("fast", 'd', fast, "... and the fastest"),
	KEY("seed", 't', seed, "of victims, speeds and irregular trees"),
	KEY("wire", 't', cost.wire, "ns from sending a message to its arrival"),
	KEY("wan", 't', cost.wan, "... from one site to another"),
	KEY("send", 't', cost.send, "ns of CPU time to send a message"),
	KEY("receive", 't', cost.receive, "... to receive it"),
	KEY("wake", 't', cost.wake, "ns until a sleeping thread polls"),
	KEY("slice", 't', cost.slice, "... at most this in addition, if a worker computes"),
	KEY("find", 't', cost.find, "ns to look for closures to take"),
	KEY("pack", 't', cost.pack, "ns to pack or unpack a steal message"),
	KEY("local", 't', cost.local, "ns of a steal within a rank"),
	KEY("rouse", 't', cost.rouse, "ns until a sleeping worker works"),
	KEY("spin", 't', cost.spin, "ns that a worker looks for work before it sleeps"),
	KEY("contact", 't', cost.contact, "ns to connect to a rank"),
	KEY("get", 't', cost.get, "ns the launcher needs for an address"),
	KEY("start", 't', cost.start, "ns for start and end"),
	KEY("bandwidth", 'd', cost.bandwidth, "bytes per ns of a rank's link"),
	KEY("touch", 'd', cost.touch, "ns of CPU time of a byte that is read, at both ends"),
	KEY("first", 'i', rules.first, "which rank to ask first: 0 a tree, 1 rank 0, 2 any"),
	KEY("last", 'i', rules.last, "first ask the rank that had work last"),
	KEY("tries", 'i', rules.tries, "random victims before lifelines"),
	KEY("lifelines", 'i', rules.lifelines, "neighbours remember the thief"),
	KEY("backoff", 't', rules.backoff, "ns to wait after the first refusal, then doubled"),
	KEY("doublings", 'i', rules.doublings, "how often it doubles"),
	KEY("hold", 'i', rules.hold, "refusals before it doubles more than three times"),
	KEY("lost", 't', rules.lost, "ns after which a request is given up"),
	KEY("want", 'i', rules.want_max, "the most closures of a request"),
	KEY("target", 't', rules.target, "ns that the closures of a request should take"),
	KEY("pass", 't', rules.pass_on,
	    "ns after which work that is not begun may move on to another rank"),
	KEY("patience", 't', rules.patience, "ns to look within the rank before asking others"),
	KEY("drops", 'i', rules.drops, "the first request to a rank is lost"),
	KEY("half", 'i', rules.half, "take half of a frame's ready closures"),
	KEY("leave", 'i', rules.leave, "a rank that has work again tells its neighbours"),
	KEY("crowd", 't', rules.crowd,
	    "ns between the first requests of ranks that share a core"),
	KEY("weigh", 'i', rules.flat.weigh, "what is given away is weighed"),
	KEY("retain", 'i', rules.flat.retain, "results may stay with thieves"),
	KEY("values", 'i', rules.flat.values, "... at most so many"),
	KEY("writes", 'i', rules.flat.writes,
	    "how much what a task writes counts for the rank it belongs to"),
	KEY("depth", 'i', rules.flat.depth,
	    "steal messages at a rank, beyond which others may have its tasks; 0: no limit"),
	KEY("peers", 'i', rules.flat.peers,
	    "read values 0 by way of rank 0, 1 from the rank that retains them, 2 from any copy"),
	KEY("unit", 't', tree.unit, "ps of a sequential call of fib or knary"),
	KEY("body", 't', tree.body, "ns of a task that spawns others"),
	KEY("nt", 'i', nt, "Cholesky: tiles in a column"),
	KEY("tile", 'i', tile, "... rows of a tile"),
	KEY("gflops", 'd', gflops, "... of a worker"),
	KEY("cache", 't', cache,
	    "bytes of copies that a rank keeps, and of results that may stay with thieves"),
	KEY("blocks", 'i', blocks, "Jacobi and cg: blocks of rows"),
	KEY("points", 'i', points, "... points in a row and in a column"),
	KEY("steps", 'i', steps, "... steps"),
	KEY("stream", 'd', stream, "... bytes per ns of a worker"),
	KEY("cg", 'i', cg, "conjugate gradients instead of Jacobi"),
	KEY("sync", 'i', sync, "cg: kdds_sync in each step instead of kdds_wait"),
	KEY("placed", 'i', placed, "the program has placed data and tasks"),
};

static void fail(const char *what, const char *text)
{
	fprintf(stderr, "sim: %s: %s\n", text, what);
	exit(2);
}

static void set(struct sim_job *job, const struct key *k, const char *value)
{
	char *end, *p = (char *)job + k->field;
	double x = strtod(value, &end);

	if (*end == 'k')
		x *= 1e3, end++;
	if (*end || end == value || x < 0)
		fail("a number is expected", k->name);
	if (k->kind == 'i')
		*(int *)p = (int)x;
	else if (k->kind == 'u')
		*(uint32_t *)p = (uint32_t)x;
	else if (k->kind == 't')
		*(int64_t *)p = (int64_t)x;
	else
		*(double *)p = x;
}

static int preset(struct sim_job *job, const char *word)
{
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++)
		if (!strncmp(word, "cost=", 5) && !strcmp(word + 5, costs[i].name)) {
			job->cost = costs[i].cost;
			return 1;
		}
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (!strncmp(word, "rules=", 6) && !strcmp(word + 6, rules[i].name)) {
			job->rules = rules[i].rules;
			return 1;
		}
	return 0;
}

/* Takes words KEY=VALUE; later ones override earlier ones. The tree is made last, since it depends
 * on the others. */
static void read_words(struct sim_job *job, const char *text, char tree[200])
{
	char *words = strdup(text), *save = NULL;

	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		const struct key *k = keys, *end = keys + sizeof(keys) / sizeof(*keys);

		if (!value)
			fail("KEY=VALUE is expected", word);
		if (!strncmp(word, "tree=", 5)) {
			snprintf(tree, 200, "%s", value + 1);
			continue;
		}
		if (preset(job, word))
			continue;
		while (k < end &&
		       (strncmp(k->name, word, (size_t)(value - word)) || k->name[value - word]))
			k++;
		if (k == end)
			fail("no such key, or value (see sim keys)", word);
		set(job, k, value + 1);
	}
	free(words);
}

static struct sim_result simulate(struct sim_job *job, const char *common, const char *row)
{
	struct sim_result r;
	char tree[200] = "fib:40:20";

	*job = (struct sim_job){.ranks = 1, .workers = 1, .sites = 1, .slow = 1, .fast = 1,
				.seed = 1, .tile = 256, .gflops = 20, .cache = 256 << 20,
				.points = 4096, .steps = 100, .stream = 5};
	job->cost = costs[1].cost;
	job->rules = rules[0].rules;
	job->tree.unit = 720;
	job->tree.body = 20;
	read_words(job, common, tree);
	read_words(job, row, tree);
	if (!job->ranks || job->ranks > 65536 || !job->workers || job->workers > 4096 ||
	    !job->sites || job->slow <= 0 || job->fast < job->slow)
		fail("out of range", row);
	if (job->nt || job->blocks) {
		sim_flat(job, &r);
		return r;
	}
	if (sim_tree_parse(&job->tree, tree))
		fail("no such tree", tree);
	sim_steal(job, &r);
	return r;
}

static double workers_of(const struct sim_job *job)
{
	return job->cores ? job->cores : (double)job->ranks * job->workers;
}

static void print_one(const struct sim_job *job, const struct sim_result *r)
{
	int64_t depth = job->nt || job->blocks ? r->depth : sim_tree_depth(&job->tree);

	printf("time=%lld work=%lld depth=%lld done=%lld speed=%.6f efficiency=%.6f busy=%.6f "
	       "overhead=%.6f local=%llu exports=%llu exported=%llu "
	       "requests=%llu refused=%llu lost=%llu unsolicited=%llu forwarded=%llu "
	       "messages=%llu rank_messages=%.0f peak_messages=%.0f connections=%u "
	       "mean_connections=%.1f peer_bytes=%.0f bytes=%.0f zero_bytes=%.0f "
	       "events=%llu\n",
	       (long long)r->time, (long long)r->work, (long long)depth, (long long)r->done,
	       r->speed, (double)r->work / r->speed / ((double)r->time * workers_of(job)), r->busy,
	       r->overhead, (unsigned long long)r->local, (unsigned long long)r->exports,
	       (unsigned long long)r->exported, (unsigned long long)r->requests,
	       (unsigned long long)r->refused, (unsigned long long)r->lost,
	       (unsigned long long)r->unsolicited, (unsigned long long)r->forwarded,
	       (unsigned long long)r->messages, r->rank_messages, r->peak_messages, r->connections,
	       r->mean_connections, (double)r->connections * (double)job->cost.connection_bytes,
	       r->bytes, r->zero_bytes, (unsigned long long)r->events);
}

struct table {
	const char *name, *title, *common;
	int runs; /* seeds */
	const struct {
		const char *label, *words;
		double seen; /* the speed-up that was measured; 0: none */
		int quick;   /* part of the quick size */
	} *rows;
	int nrows;
};

#define ROWS(array) array, (int)(sizeof(array) / sizeof(*array))
typedef __typeof__(*((struct table *)0)->rows) row;

#include "sim_tables.h"

struct mean {
	double sum, squares;
	int n;
};

static void add(struct mean *m, double x)
{
	m->sum += x;
	m->squares += x * x;
	m->n++;
}

static double mean(const struct mean *m)
{
	return m->sum / m->n;
}

/* Half of the 95 % confidence interval of the mean, estimated from few runs. */
static double error(const struct mean *m)
{
	double v = m->n > 1 ? (m->squares - m->sum * m->sum / m->n) / (m->n - 1) : 0, s = 0;

	for (double step = 1e12; step > 1e-9; step /= 2) /* one square root without libm */
		if ((s + step) * (s + step) <= v / m->n)
			s += step;
	return 2 * s;
}

static void print_table(const struct table *t, int quick, FILE *csv)
{
	printf("\n%s: %s\n%s, %d seed%s\n\n", t->name, t->title, t->common, quick ? 1 : t->runs,
	       t->runs > 1 && !quick ? "s" : "");
	printf("  %-34s %10s %9s %7s %7s %6s %9s %9s %9s %6s %6s %9s %8s %7s %7s\n", "", "T, s",
	       "+-", "speedup", "seen", "idle%", "exports", "requests", "refused", "lost", "conns",
	       "msg/s", "peak/s", "GB", "rank 0");
	for (int i = 0; i < t->nrows; i++) {
		struct mean time = {0}, speedup = {0}, idle = {0}, exports = {0}, requests = {0},
			    refused = {0}, lost = {0}, connections = {0}, rate = {0}, peak = {0},
			    bytes = {0}, zero = {0};
		struct sim_job job;

		if (quick && !t->rows[i].quick)
			continue;
		for (int seed = 1; seed <= (quick ? 1 : t->runs); seed++) {
			char words[400];
			struct sim_result r;

			snprintf(words, sizeof(words), "%s seed=%d", t->rows[i].words, seed);
			r = simulate(&job, t->common, words);
			add(&time, (double)r.time / 1e9);
			add(&speedup, (double)r.work / (double)r.time);
			add(&idle, 100 * (1 - (double)r.work / r.speed /
						      ((double)r.time * workers_of(&job))));
			add(&exports, (double)r.exports);
			add(&requests, (double)r.requests);
			add(&refused, (double)r.refused);
			add(&lost, (double)r.lost);
			add(&connections, (double)r.connections);
			add(&rate, r.rank_messages);
			add(&peak, r.peak_messages);
			add(&bytes, r.bytes / 1e9);
			add(&zero, r.zero_bytes / 1e9);
		}
		printf("  %-34s %10.4g %9.2g %7.5g ", t->rows[i].label, mean(&time), error(&time),
		       mean(&speedup));
		if (t->rows[i].seen > 0)
			printf("%7.5g", t->rows[i].seen);
		else
			printf("%7s", "-");
		printf(" %6.2f %9.0f %9.0f %9.0f %6.0f %6.0f %9.0f %8.0f %7.2f %7.2f\n",
		       mean(&idle), mean(&exports), mean(&requests), mean(&refused), mean(&lost),
		       mean(&connections), mean(&rate), mean(&peak), mean(&bytes), mean(&zero));
		fflush(stdout);
		if (csv)
			fprintf(csv,
				"%s,%s,\"%s %s\",%d,%.9g,%.3g,%.6g,%.6g,%.4g,"
				"%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.4g,%.4g\n",
				t->name, t->rows[i].label, t->common, t->rows[i].words,
				quick ? 1 : t->runs, mean(&time), error(&time), mean(&speedup),
				t->rows[i].seen, mean(&idle), mean(&exports), mean(&requests),
				mean(&refused), mean(&lost), mean(&connections), mean(&rate),
				mean(&peak), mean(&bytes), mean(&zero));
	}
}

static int print_tables(int argc, char **argv, int quick, FILE *csv)
{
	int found = 0;

	if (csv)
		fprintf(csv, "table,row,job,seeds,seconds,error,speedup,seen,idle_percent,"
			     "exports,requests,refused,lost,connections,"
			     "rank_messages_per_s,peak_messages_per_s,gb,rank_0_gb\n");
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		int wanted = !argc;

		for (int k = 0; k < argc; k++)
			wanted |= !strcmp(argv[k], tables[i].name);
		if (wanted)
			print_table(&tables[i], quick, csv);
		found |= wanted;
	}
	if (!found)
		fail("no such table", argv[0]);
	return fflush(stdout) || ferror(stdout);
}

static int run(int argc, char **argv)
{
	struct sim_job job;
	struct sim_result r;
	char words[4000] = "";

	for (int i = 0; i < argc; i++) {
		strncat(words, argv[i], sizeof(words) - strlen(words) - 2);
		strcat(words, " ");
	}
	r = simulate(&job, "", words);
	print_one(&job, &r);
	return fflush(stdout) || ferror(stdout);
}

static int list_keys(void)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		printf("%-10s %s\n", keys[i].name, keys[i].help);
	printf("tree       fib:N:THRESHOLD, knary:N:K:THRESHOLD, random:WORK:K:SIGMA:GRAIN (ns)\n"
	       "cost       a set of costs:");
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++)
		printf(" %s", costs[i].name);
	printf("\nrules      a set of rules:");
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		printf(" %s", rules[i].name);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	FILE *csv = NULL;
	int status;

	if (argc > 2 && !strcmp(argv[1], "-c")) {
		csv = fopen(argv[2], "w");
		if (!csv)
			fail("cannot be written", argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc > 1 && !strcmp(argv[1], "run"))
		status = run(argc - 2, argv + 2);
	else if (argc > 1 && !strcmp(argv[1], "keys"))
		status = list_keys();
	else if (argc > 1 && (!strcmp(argv[1], "quick") || !strcmp(argv[1], "full")))
		status = print_tables(argc - 2, argv + 2, *argv[1] == 'q', csv);
	else
		status = 2 | (fprintf(stderr, "usage: sim [-c FILE] quick|full [TABLE]... | "
					      "run KEY=VALUE... | keys\n") < 0);
	if (csv && fclose(csv))
		status = 1;
	return status;
}
