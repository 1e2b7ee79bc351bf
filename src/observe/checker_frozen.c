/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "observe/checker_frozen.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "observe/checker_task.h"
#include "observe/checker_value.h"

#define HASH_MOST 262144 /* bytes of what is frozen */

static struct frozen {
	struct frozen *next;
	struct kd_value v;
	uint64_t hash;
} *first;

void kd_checker_freeze(const struct kd_value *v)
{
	struct frozen *f;

	if (kd_value_empty(v))
		return;
	f = kd_must(calloc(1, sizeof(*f)));
	*f = (struct frozen){first, *v, kd_value_hash(v, HASH_MOST)};
	first = f;
}

/* Whether all pages of the data still exist. */
static int is_there(const struct kd_value *v)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)v->data & -page, end = (uintptr_t)v->data + kd_value_extent(v);
	unsigned char *in = kd_must(malloc((end - begin) / page + 1));
	int there = !mincore((void *)begin, end - begin, in);

	free(in);
	return there;
}

static void compare(struct frozen *f)
{
	const struct kd_checked_place main = {.parent = NULL};
	uint64_t hash;

	if (kd_value_empty(&f->v))
		return;
	if (!is_there(&f->v)) {
		kd_checked_report(&main, "data that kdds_freeze has frozen have been freed");
		f->v.rows = 0; /* once */
		return;
	}
	hash = kd_value_hash(&f->v, HASH_MOST);
	if (hash != f->hash)
		kd_checked_report(&main, "data that kdds_freeze has frozen have been written to");
	f->hash = hash;
}

void kd_checker_thaw(const struct kd_value *v)
{
	struct frozen **link = &first, *f;

	while (*link && !kd_value_same(&(*link)->v, v))
		link = &(*link)->next;
	f = *link;
	if (!f)
		return;
	compare(f);
	*link = f->next;
	free(f);
}

int kd_checker_frozen_meets(const struct kd_value *v)
{
	const struct frozen *f = first;

	while (f && !kd_value_meets(&f->v, v))
		f = f->next;
	return f != NULL;
}

void kd_checker_frozen_compare(void)
{
	for (struct frozen *f = first; f; f = f->next)
		compare(f);
}

void kd_checker_frozen_free(void)
{
	while (first) {
		struct frozen *next = first->next;

		free(first);
		first = next;
	}
}
