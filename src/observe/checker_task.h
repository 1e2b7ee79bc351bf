/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks that are being run, innermost first, as the checker knows them; and its reports. */
#ifndef KD_CHECKER_TASK_H
#define KD_CHECKER_TASK_H

#include "core/stack.h"
#include "core/value.h"

#define KD_CHECKED_OTHERS 16
#define KD_CHECKED_ANCESTORS 64 /* whose data a task is compared with: the nearest */

/* A data item as a task was given it, when it was given it. */
struct kd_checked {
	struct kd_value v;
	uint64_t hash;
	unsigned mode, number; /* of the access; numbers begin with 1 */
	int constant; /* the task may not change it; hash is valid */
	int poisoned; /* it was, when the task began */
	char *before; /* of a reduction: its rows as the task found them; NULL: not checked */
};

/* One that belongs to another task, and that this one was not given. */
struct kd_checked_other {
	struct kd_checked item;
	const struct kdds_type *type;
};

struct kd_checked_task {
	struct kd_checked_task *below; /* the task that runs it, usually its parent */
	const char *name, *parent;
	uint32_t child;    /* its number among the children of its parent */
	uint32_t line;     /* where it was spawned (checker_line.h) */
	uint32_t children; /* that have begun, or wait */
	struct kdds_closure *closure; /* NULL: main */
	struct kd_stack *stack;
	struct kdds_frame *frame;     /* of its children, in that stack */
	char *data, *data_end; /* KDDS_DATA of its body; data_end is set when it ends */
	char *seen;  /* closures before it were there when the body waited in kdds_wait; or NULL */
	int ordered; /* its children run in reference order */
	int merges;  /* it contributes to private copies */
	uint32_t nitems, nothers;
	struct kd_checked_other others[KD_CHECKED_OTHERS];
	struct kd_checked items[];
};

/* Whether b has KDDS_DATA of t's body. */
static inline int kd_checked_owns(const struct kd_checked_task *t, const struct kd_block *b)
{
	return b->frame == t->frame && b->gen == t->frame->gen && b->head == (char *)t->closure;
}

/* The first closure of t's frame that has not been looked at. */
static inline char *kd_checked_new(const struct kd_checked_task *t)
{
	return t->seen ? t->seen : kd_frame_first(t->frame);
}

/* What the checker notes of a closure, and of each of its accesses: in the reservation of the stack
 * that span.h describes, which nobody else uses meanwhile. */
struct kd_checker_note {
	uint32_t child; /* its number */
	uint32_t done;
	uint32_t line;  /* where it was spawned (checker_line.h) */
	uint32_t pad;
};

struct kd_checker_hash {
	uint64_t hash; /* of the data when they were passed */
};

static inline struct kd_checker_note *kd_checker_note(const struct kd_stack *s, const void *c)
{
	return (void *)(s->spans + ((const char *)c - s->mem));
}

static inline struct kd_checker_hash *kd_checker_hash(const struct kd_stack *s, const void *access)
{
	return (void *)(s->spans + ((const char *)access - s->mem));
}

/* Where a report says that it was found. */
struct kd_checked_place {
	const char *parent; /* of the task; NULL: it is main */
	uint32_t child, line;
	const struct kdds_type *type;
	unsigned number; /* of the access of the task; 0: of none */
};

/* Access `number' of the type as text. */
const char *kd_checked_parameter(const struct kdds_type *type, unsigned number, char *text,
				 size_t bytes);

/* Prints a line about the parameter of the task, up to a limit, and counts it. */
void kd_checked_report(const struct kd_checked_place *at, const char *format, ...) kd_printf(2, 3);
/* The same place as text. */
const char *kd_checked_text(const struct kd_checked_place *at, char *text, size_t bytes);
uint64_t kd_checked_reports(void);

#endif
