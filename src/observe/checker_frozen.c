/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/checker_frozen.h"

#include <stdlib.h>

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
	struct frozen *f = kd_must(calloc(1, sizeof(*f)));

	*f = (struct frozen){first, *v, kd_value_hash(v, HASH_MOST)};
	first = f;
}

static void compare(struct frozen *f)
{
	const struct kd_checked_place main = {.parent = NULL};
	uint64_t hash = kd_value_hash(&f->v, HASH_MOST);

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
