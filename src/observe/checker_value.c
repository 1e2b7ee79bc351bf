/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/checker_value.h"

#include <string.h>

#define NEAR 4096u /* numbers that are added to, or taken from, what is poison */
#define PART 64 /* bytes of the parts of a large item that are hashed */

static uint32_t word_of(uintptr_t at)
{
	return 0xfff80000u | (uint32_t)((at >> 2) * 0x9e3779b97f4a7c15u >> 45);
}

static unsigned char poison_of(uintptr_t at)
{
	return (unsigned char)(word_of(at) >> at % 4 * 8);
}

void kd_poison(void *at, size_t n)
{
	unsigned char *p = at, *end = p + n;

	while (p < end && (uintptr_t)p % 4) {
		*p = poison_of((uintptr_t)p);
		p++;
	}
	for (; end - p >= 4; p += 4) {
		uint32_t word = word_of((uintptr_t)p);

		memcpy(p, &word, sizeof(word));
	}
	for (; p < end; p++)
		*p = poison_of((uintptr_t)p);
}

static int poisoned(const void *at, size_t n)
{
	const unsigned char *p = at;

	for (size_t i = 0; i < n; i++)
		if (p[i] != poison_of((uintptr_t)(p + i)))
			return 0;
	return 1;
}

static uint64_t row_bytes(const struct kd_value *v)
{
	return v->cols * v->size;
}

static char *row_at(const struct kd_value *v, uint64_t r)
{
	return (char *)v->data + r * v->ld * v->size;
}

void kd_poison_value(const struct kd_value *v)
{
	for (uint64_t r = 0; r < v->rows && !kd_value_empty(v); r++)
		kd_poison(row_at(v, r), row_bytes(v));
}

int kd_poisoned_value(const struct kd_value *v)
{
	if (kd_value_empty(v) || v->rows * row_bytes(v) < KD_POISON_LEAST)
		return 0;
	for (uint64_t r = 0; r < v->rows; r++)
		if (!poisoned(row_at(v, r), row_bytes(v)))
			return 0;
	return 1;
}

int kd_value_from_poison(const struct kd_value *v)
{
	if (v->size != 8)
		return 0;
	for (uint64_t r = 0; r < v->rows; r++)
		for (uint64_t c = 0; c < v->cols; c++) {
			uintptr_t at = (uintptr_t)row_at(v, r) + c * 8;
			uint64_t now, off;

			memcpy(&now, (void *)at, 8);
			off = now - (word_of(at) | (uint64_t)word_of(at + 4) << 32);
			if (at % 4 == 0 && off && off + NEAR < 2 * NEAR)
				return 1;
		}
	return 0;
}

static uint64_t hash(uint64_t h, const char *p, size_t n)
{
	uint64_t word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (; n; n--, p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	return h;
}

uint64_t kd_value_hash(const struct kd_value *v, size_t most)
{
	uint64_t h = 0x2545f4914f6cdd1du, row = row_bytes(v), all = v->rows * row, step;

	if (kd_value_empty(v))
		return h;
	if (all <= most) {
		for (uint64_t r = 0; r < v->rows; r++)
			h = hash(h, row_at(v, r), row);
		return h;
	}
	step = kd_max(all / (most / PART), (uint64_t)1);
	for (uint64_t at = 0; at < all; at += step)
		h = hash(h, row_at(v, at / row) + at % row,
			 kd_min((uint64_t)PART, row - at % row));
	return h;
}

uint64_t kd_value_extent(const struct kd_value *v)
{
	return kd_value_empty(v) ? 0 : (v->rows - 1) * v->ld * v->size + row_bytes(v);
}

/* Whether some row of v has a byte in [p, p + n). Its rows ascend, so the last of those that begin
 * before the end reaches furthest. */
static int row_meets(const struct kd_value *v, const char *p, uint64_t n)
{
	uint64_t step = v->ld * v->size, row = 0;

	if (p + n <= (char *)v->data)
		return 0;
	if (v->rows > 1)
		row = kd_min((uint64_t)(p + n - 1 - (char *)v->data) / step, v->rows - 1);
	return row_at(v, row) + row_bytes(v) > p;
}

int kd_value_meets(const struct kd_value *a, const struct kd_value *b)
{
	if (kd_value_empty(a) || kd_value_empty(b))
		return 0;
	if (a->rows > b->rows)
		return kd_value_meets(b, a);
	for (uint64_t r = 0; r < a->rows; r++)
		if (row_meets(b, row_at(a, r), row_bytes(a)))
			return 1;
	return 0;
}
