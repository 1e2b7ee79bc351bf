/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compresses a file in parallel, in the format of gzip. The file is cut into blocks, and each
 * becomes a member of its own: gzip -d takes a file of several members for the concatenation of
 * what they contain.
 *
 *   in  --> read_block --> text --> compress --> member --> write_block --> out
 *            LOCAL, one after                                LOCAL, one after
 *            the other by in                                 the other by out
 *
 * Only the first process of a job may use the files: what reads and writes them is KDDS_LOCAL. When
 * workers of other ranks wait for blocks, the library reads ahead of those that this process
 * compresses.
 *
 * The compressor is a simple one (RFC 1951): LZ77 over chains of positions whose next four bytes
 * have the same hash, and the fixed Huffman codes.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"pgzip", "[--block BYTES] FILE [OUTPUT]",
	"Compresses FILE into OUTPUT (FILE.gz if not given), which gzip -d expands.\n"
	"\n"
	"  --block BYTES  bytes of FILE per task, 1 to 100000000 (default 262144)\n"
};

#define HEAD_BYTES 10
#define TAIL_BYTES 8
#define STORED_BYTES 65535 /* most bytes of a stored block */
#define HASH_BITS 15
#define REACH 32768        /* how far back a match may lie */
#define CANDIDATES 64      /* positions that are tried */
#define MATCH_MIN 4
#define MATCH_MAX 258

/* Bits, the first in the lowest place. */
struct bits {
	unsigned char *at;
	uint64_t held;
	unsigned count;
};

static void put(struct bits *b, uint32_t value, unsigned n)
{
	b->held |= (uint64_t)value << b->count;
	for (b->count += n; b->count >= 8; b->count -= 8, b->held >>= 8)
		*b->at++ = (unsigned char)b->held;
}

/* A Huffman code begins with its highest bit. */
static void put_code(struct bits *b, uint32_t code, unsigned n)
{
	uint32_t reversed = 0;

	for (unsigned i = 0; i < n; i++)
		reversed |= (code >> i & 1) << (n - 1 - i);
	put(b, reversed, n);
}

/* A literal byte, the end of the block (256) or the number of a length, by the fixed codes. */
static void put_symbol(struct bits *b, uint32_t s)
{
	if (s < 144)
		put_code(b, 0x30 + s, 8);
	else if (s < 256)
		put_code(b, 0x190 + s - 144, 9);
	else if (s < 280)
		put_code(b, s - 256, 7);
	else
		put_code(b, 0xc0 + s - 280, 8);
}

/* The first length of each number from 257 on, and the first distance of each; the difference to
 * the next one says how many bits follow. */
static const uint16_t lengths[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43,
				   51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint16_t distances[] = {1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257,
				     385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289,
				     16385, 24577};
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static uint32_t number_of(const uint16_t *firsts, uint32_t n, uint32_t x)
{
	uint32_t low = 0;

	while (n - low > 1) {
		uint32_t middle = (low + n) / 2;

		if (firsts[middle] <= x)
			low = middle;
		else
			n = middle;
	}
	return low;
}

static void put_match(struct bits *b, uint32_t length, uint32_t distance)
{
	uint32_t i = number_of(lengths, COUNT(lengths), length);
	uint32_t k = number_of(distances, COUNT(distances), distance);

	put_symbol(b, 257 + i);
	put(b, length - lengths[i], i < 8 || length == MATCH_MAX ? 0 : i / 4 - 1);
	put_code(b, k, 5);
	put(b, distance - distances[k], k < 4 ? 0 : k / 2 - 1);
}

static uint32_t load32(const unsigned char *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

/* Positions by the hash of their next four bytes, + 1, each with the last one before it. */
struct chains {
	uint32_t last[1 << HASH_BITS], before[REACH];
};

static void add_position(struct chains *c, const unsigned char *s, size_t i)
{
	uint32_t *last = &c->last[load32(s + i) * 2654435761u >> (32 - HASH_BITS)];

	c->before[i % REACH] = *last;
	*last = (uint32_t)i + 1;
}

static size_t same_bytes(const unsigned char *a, const unsigned char *b, size_t most)
{
	size_t n = 0;

	while (n < most && a[n] == b[n])
		n++;
	return n;
}

/* The longest match for what begins at i, whose position has been added. 0: there is none. */
static size_t find_match(const struct chains *c, const unsigned char *s, size_t i, size_t most,
			 size_t *distance_p)
{
	uint32_t at = c->before[i % REACH];
	size_t best = MATCH_MIN - 1;

	for (unsigned k = 0; at && i + 1 - at < REACH && k < CANDIDATES && best < most; k++) {
		const unsigned char *from = s + at - 1;
		size_t length = from[best] == s[i + best] ? same_bytes(from, s + i, most) : 0;

		if (length > best) {
			best = length;
			*distance_p = i + 1 - at;
		}
		at = c->before[(at - 1) % REACH];
	}
	return best >= MATCH_MIN ? best : 0;
}

/* Compresses s. The end of what it has written, or NULL: it would take more than `most` bytes. */
static unsigned char *deflate(const unsigned char *s, size_t n, unsigned char *to, size_t most)
{
	static _Thread_local struct chains chains;
	struct bits b = {.at = to};
	size_t i = 0;

	memset(chains.last, 0, sizeof(chains.last));
	put(&b, 3, 3); /* the last block; fixed codes */
	while (i < n && (size_t)(b.at - to) + 8 < most) {
		size_t end = n - i < MATCH_MAX ? n - i : MATCH_MAX, length = 0, distance = 0, next;

		if (end >= MATCH_MIN) {
			add_position(&chains, s, i);
			length = find_match(&chains, s, i, end, &distance);
		}
		if (length)
			put_match(&b, (uint32_t)length, (uint32_t)distance);
		else
			put_symbol(&b, s[i]);
		for (next = i + (length ? length : 1); ++i < next;)
			if (n - i >= MATCH_MIN)
				add_position(&chains, s, i);
	}
	put_symbol(&b, 256);
	put(&b, 0, 7);
	return i < n ? NULL : b.at;
}

/* As it is, for what does not become shorter. */
static unsigned char *store(const unsigned char *s, size_t n, unsigned char *to)
{
	do {
		size_t part = n < STORED_BYTES ? n : STORED_BYTES;

		*to++ = part == n; /* whether it is the last */
		*to++ = (unsigned char)part;
		*to++ = (unsigned char)(part >> 8);
		*to++ = (unsigned char)~part;
		*to++ = (unsigned char)(~part >> 8);
		memcpy(to, s, part);
		to += part;
		s += part;
		n -= part;
	} while (n);
	return to;
}

static uint32_t crc_table[256];

static void fill_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
		crc_table[i] = c;
	}
}

static uint32_t crc32(const unsigned char *s, size_t n)
{
	uint32_t c = ~0u;

	for (size_t i = 0; i < n; i++)
		c = crc_table[(c ^ s[i]) & 255] ^ c >> 8;
	return ~c;
}

static unsigned char *put32(unsigned char *to, uint32_t x)
{
	for (int i = 0; i < 4; i++, x >>= 8)
		*to++ = (unsigned char)x;
	return to;
}

/* Most bytes that a member for n bytes takes. */
static size_t member_bytes(size_t n)
{
	return HEAD_BYTES + n + 5 * (n / STORED_BYTES + 1) + TAIL_BYTES;
}

static size_t make_member(const unsigned char *s, size_t n, unsigned char *to)
{
	static const unsigned char head[HEAD_BYTES] = {0x1f, 0x8b, 8, [9] = 255};
	unsigned char *at = to + HEAD_BYTES, *end = deflate(s, n, at, n);

	memcpy(to, head, sizeof(head));
	if (!end)
		end = store(s, n, at);
	end = put32(end, crc32(s, n));
	return (size_t)(put32(end, (uint32_t)n) - to);
}

struct file {
	int fd;
	const char *name;
	long bytes;
};

/* Also moves the bytes from one file to the other, in order: each task updates its file. */
KDDS_TASK(read_block, UPDATE(struct file, in), WRITE_ARRAY(unsigned char, text))
{
	size_t have = 0, n = kdds_count(text);

	while (have < n) {
		ssize_t got = read((*in)->fd, *text + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			fail("%s: %s", (*in)->name, got ? strerror(errno) : "has become shorter");
		have += (size_t)got;
	}
	(*in)->bytes += (long)n;
}

KDDS_TASK(compress, READ_ARRAY(unsigned char, text), WRITE_ARRAY(unsigned char, member),
	  WRITE(size_t, bytes))
{
	**bytes = make_member(*text, kdds_count(text), *member);
}

KDDS_TASK(write_block, UPDATE(struct file, out), READ_ARRAY(unsigned char, member),
	  READ(size_t, bytes))
{
	size_t done = 0;

	while (done < **bytes) {
		ssize_t n = write((*out)->fd, *member + done, **bytes - done);

		if (n < 0 && errno != EINTR)
			fail("%s: %s", (*out)->name, strerror(errno));
		if (n > 0)
			done += (size_t)n;
	}
	(*out)->bytes += (long)**bytes;
}

static void compress_file(size_t size, size_t block, struct file *in, struct file *out)
{
	KDDS_OVER(struct file, input, in);
	KDDS_OVER(struct file, output, out);

	do {
		size_t n = size < block ? size : block;
		KDDS_DATA_ARRAY(unsigned char, text, n);
		KDDS_DATA_ARRAY(unsigned char, member, member_bytes(n));
		KDDS_DATA(size_t, bytes);

		kdds_spawn_with(KDDS_LOCAL, read_block, input, text);
		kdds_spawn(compress, text, member, bytes);
		kdds_spawn_with(KDDS_LOCAL, write_block, output, member, bytes);
		size -= n;
	} while (size);
	kdds_sync();
}

static char *name_of_output(const char *name)
{
	size_t n = strlen(name);
	char *output = allocate(n + 4, 1);

	memcpy(output, name, n);
	memcpy(output + n, ".gz", 4);
	return output;
}

static int open_or_fail(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC, 0666);

	if (fd < 0)
		fail("%s: %s", name, strerror(errno));
	return fd;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		HELP_OPTION, {"block", required_argument, NULL, OPT_OWN}, {0}};
	struct file in = {0}, out = {0};
	size_t block = 262144;
	struct stat st;
	double t;

	for (int opt; (opt = next_option(argc, argv, options)) != -1;)
		block = (size_t)integer("--block", optarg, 1, 100000000);
	argv = arguments(argc, argv, 1, 2, &argc);
	fill_crc_table();

	start();
	in.name = argv[0];
	in.fd = open_or_fail(in.name, O_RDONLY);
	if (fstat(in.fd, &st) || !S_ISREG(st.st_mode))
		fail("%s: not a file", in.name);
	out.name = argc > 1 ? argv[1] : name_of_output(in.name);
	out.fd = open_or_fail(out.name, O_WRONLY | O_CREAT | O_TRUNC);
	t = now();
	compress_file((size_t)st.st_size, block, &in, &out);
	t = now() - t;
	if (close(out.fd))
		fail("%s: %s", out.name, strerror(errno));
	close(in.fd);
	printf("pgzip: %ld bytes became %ld\n", in.bytes, out.bytes);
	return finish(t, true);
}
