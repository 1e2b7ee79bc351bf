/* SPDX-License-Identifier: BSD-3-Clause */
/* kdds_checkpoint and kdds_restore. base/slots.h has the files, core/saved.h what is in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/slots.h"
#include "core/saved.h"
#include "core/stack.h"
#include "core/worker.h"
#include "kdds.h"

#define LISTED_MOST ((size_t)1 << 40) /* of items; a greater number is a negative one */

/* The state of main, as the library sees it. */
struct state {
	struct kd_saved_value *values;
	size_t n;
};

/* The slot whose file is known to be good, since this process has written it or has read all of it:
 * the next checkpoint replaces the other one. */
static struct {
	char *name;
	int slot;
} kept;

static void keep(const char *name, int slot)
{
	if (!kept.name || strcmp(kept.name, name)) {
		free(kept.name);
		kept.name = strdup(name);
	}
	kept.slot = slot;
}

static void must_be_main(const char *what)
{
	const struct kd_stack *s = kd_self_worker ? kd_self_worker->current : NULL;

	if (!s)
		kd_die("%s: called before kdds_init, after kdds_finalize, or by a thread other than "
		       "main's", what);
	if (kd_stack_next(s, s->top)->parent != &s->base || s->range.count)
		kd_die("%s: called by a task: only main has the state of the program", what);
}

static void check_argument(const char *what, const struct kdds_saved *x, size_t i, size_t n)
{
	if (x->kind == KD_SAVED_NUMBER && (!i || x[-1].kind != KD_SAVED_LIST))
		kd_die("%s: argument %zu (%s) is a number: give the address of a variable, or a "
		       "reference", what, i + 1, x->name);
	if (x->kind == KD_SAVED_NUMBER && x->at > LISTED_MOST)
		kd_die("%s: argument %zu (%s): a list of %zd references", what, i + 1, x->name,
		       (ssize_t)x->at);
	if (x->kind == KD_SAVED_LIST && (i + 1 == n || x[1].kind != KD_SAVED_NUMBER))
		kd_die("%s: argument %zu (%s) is an array of references: write kdds_list(%s, n)",
		       what, i + 1, x->name, x->name);
	if (x->flags & KD_SAVED_CONST && !strcmp(what, "kdds_restore"))
		kd_die("%s: argument %zu (%s) is const", what, i + 1, x->name);
	if (x->kind != KD_SAVED_NUMBER && !x->at)
		kd_die("%s: argument %zu (%s) is NULL", what, i + 1, x->name);
}

/* kdds_ref(d) and other macros arrive here expanded. */
static const char *name_of(const struct kdds_saved *x)
{
	return strstr(x->name, "__typeof__") ? "a kdds_ref" : x->name;
}

static void add(struct state *st, const struct kdds_saved *x, const struct kd_value *v)
{
	st->values[st->n++] = (struct kd_saved_value){*v, x->type, name_of(x)};
}

static void add_reference(const char *what, struct state *st, const struct kdds_saved *x,
			  const void *ref)
{
	const struct kdds_shape *shape;
	struct kd_value v = {NULL, 1, 1, 1, x->size, NULL};
	struct kdds_anchor *a;

	if (!ref || !kd_is_reference(ref))
		kdds_no_reference(what, NULL);
	a = kd_anchor_of(ref);
	shape = kd_shape_of(a);
	v.data = a->data;
	if (shape) {
		v.rows = shape->rows;
		v.cols = shape->cols;
		v.ld = shape->ld;
		v.pack = shape->cols && x->size ? shape->pack : NULL;
	}
	if (x->flags & KD_SAVED_NO_BYTES && !v.pack && !kd_value_empty(&v))
		kd_die("%s: %s refers to pointers, or to objects that are not trivially copyable: "
		       "bind them with pack functions (kdds_bind_packed)", what, name_of(x));
	add(st, x, &v);
}

static void add_argument(const char *what, struct state *st, const struct kdds_saved *x)
{
	const struct kd_value variable = {(void *)x->at, 1, 1, 1, x->size, NULL};
	const void *const *refs = (const void *const *)x->at;

	if (x->kind == KD_SAVED_VARIABLE)
		add(st, x, &variable);
	else if (x->kind == KD_SAVED_REF)
		add_reference(what, st, x, (const void *)x->at);
	else if (x->kind == KD_SAVED_LIST)
		for (size_t i = 0; i < x[1].at; i++)
			add_reference(what, st, x, refs[i]);
}

/* 0 or -ENOMEM. Programming errors end the program. */
static int take_state(const char *what, struct state *st, const struct kdds_saved *x, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		check_argument(what, &x[i], i, n);
		count += x[i].kind == KD_SAVED_NUMBER ? x[i].at : 1;
	}
	*st = (struct state){calloc(count + 1, sizeof(*st->values)), 0};
	if (!st->values) {
		kd_error("%s: out of memory for %zu data items", what, count);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		add_argument(what, st, &x[i]);
	return 0;
}

/* Main's files and state. 0; the code of a failed task; or -errno after a line. */
static int begin(const char *what, const char *name, const struct kdds_saved *x, size_t n,
		 struct kd_slots *s, struct state *st)
{
	int error;

	must_be_main(what);
	if (!name || !*name)
		kd_die("%s needs the name of a file", what);
	error = take_state(what, st, x, n);
	if (error)
		return error;
	error = kdds_sync_frame(NULL, 0);
	if (!error) {
		error = kd_slots_open(s, name);
		if (!error)
			return 0;
		if (error != -ENOENT || strcmp(what, "kdds_restore"))
			kd_error("%s: cannot open the directory of %s: %s", what, name,
				 kd_errno_text(-error));
	}
	free(st->values);
	return error;
}

static void end(struct kd_slots *s, struct state *st)
{
	kd_slots_close(s);
	free(st->values);
}

/* The number of the checkpoint in a slot; 0: there is none that can be used. */
static uint64_t sequence_of(const struct kd_slots *s, int slot)
{
	int fd = kd_slots_read(s, slot);
	uint64_t sequence = 0;
	struct kd_saved saved;
	const char *why;

	if (fd < 0)
		return 0;
	if (!kd_saved_open(&saved, fd, &why))
		sequence = saved.head.sequence;
	kd_saved_close(&saved);
	return sequence;
}

static int write_next(const char *name, const struct kd_slots *s, const struct state *st)
{
	uint64_t sequence[KD_SLOTS];
	int fd = kd_slots_write(s), slot, error;

	if (fd < 0)
		return fd;
	/* under the lock */
	for (int i = 0; i < KD_SLOTS; i++)
		sequence[i] = sequence_of(s, i);
	slot = sequence[1] < sequence[0];
	if (kept.name && !strcmp(kept.name, name) && sequence[kept.slot])
		slot = !kept.slot;
	error = kd_saved_write(fd, kd_max(sequence[0], sequence[1]) + 1, st->values, st->n);
	if (error) {
		kd_slots_drop(s, fd);
		return error;
	}
	error = kd_slots_commit(s, fd, slot);
	if (!error)
		keep(name, slot);
	return error;
}

int kdds_checkpoint_state(const char *name, const struct kdds_saved *x, size_t n)
{
	struct kd_slots s;
	struct state st;
	int error = begin("kdds_checkpoint", name, x, n, &s, &st);

	if (error)
		return error;
	error = write_next(name, &s, &st);
	if (error == -EBUSY)
		kd_error("kdds_checkpoint: another process is writing %s",
			 s.path[KD_SLOTS]);
	else if (error == -EISDIR)
		kd_error("kdds_checkpoint: cannot replace %s or %s: it is a directory", s.path[0],
			 s.path[1]);
	else if (error == -EACCES)
		kd_error("kdds_checkpoint: cannot write %s: no permission, or it is another user's",
			 s.path[KD_SLOTS]);
	else if (error)
		kd_error("kdds_checkpoint: cannot write %s: %s; the checkpoints before are kept",
			 s.path[KD_SLOTS], kd_errno_text(-error));
	end(&s, &st);
	return error;
}

/* What has been found in a slot. */
struct found {
	int error;  /* -ENOENT: nothing */
	struct kd_saved saved;
};

static void refuse(const struct kd_slots *s, int slot, int error, const char *why)
{
	kd_error("kdds_restore: %s is not used: %s", s->path[slot],
		 why ? why : kd_errno_text(-error));
}

/* Nothing is wrong with the file: it may be the newest one. */
static int is_passing(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EACCES ||
	       error == -EPERM || error == -ESTALE || error == -ETIMEDOUT;
}

static struct found look(const struct kd_slots *s, int slot)
{
	struct found f = {.saved = {.fd = -1}};
	const char *why = NULL;
	int fd = kd_slots_read(s, slot);

	f.error = fd;
	if (fd >= 0)
		f.error = kd_saved_open(&f.saved, fd, &why);
	if (f.error == -EINVAL) {
		f.error = -EBADMSG;
		why = "it is no file";
	}
	if (is_passing(f.error))
		kd_error("kdds_restore: cannot read %s: %s", s->path[slot],
			 kd_errno_text(-f.error));
	else if (f.error && f.error != -ENOENT)
		refuse(s, slot, f.error, why);
	return f;
}

static void print_value(char *text, size_t size, uint64_t type, uint64_t bytes, uint64_t rows,
			uint64_t cols)
{
	static const char *const types[] = {"unknown", "integers", "reals", "structs"};

	snprintf(text, size, "%llu x %llu %s of %llu bytes", (unsigned long long)rows,
		 (unsigned long long)cols, types[type <= KD_SAVED_STRUCT ? type : 0],
		 (unsigned long long)bytes);
}

static void say_difference(const char *path, const struct kd_saved *f, const struct state *st,
			   size_t i)
{
	const struct kd_saved_value *x = &st->values[i];
	char here[100], there[100];

	if (i >= st->n || i >= f->head.items) {
		kd_error("kdds_restore: %s has %llu data items and variables, the program asks for "
			 "%zu", path, (unsigned long long)f->head.items, st->n);
		return;
	}
	print_value(here, sizeof(here), x->type, x->v.size, x->v.rows, x->v.cols);
	print_value(there, sizeof(there), f->item[i].type, f->item[i].size, f->item[i].rows,
		    f->item[i].cols);
	kd_error("kdds_restore: %s has, as item %zu, %s%s; the program asks for %s%s (%s)", path,
		 i + 1, there, f->item[i].packed ? ", packed" : "", here,
		 x->v.pack ? ", packed" : "", x->name);
}

/* Restores from one file. -EBADMSG: the other one may be good. */
static int restore_from(const struct kd_slots *s, int slot, const struct found *f,
			const struct state *st)
{
	long differs = kd_saved_differs(&f->saved, st->values, st->n);
	int error;

	if (differs >= 0) {
		say_difference(s->path[slot], &f->saved, st, (size_t)differs);
		return -EINVAL;
	}
	error = kd_saved_check(&f->saved);
	if (error) {
		refuse(s, slot, error, error == -EBADMSG ?
		       "it is torn or has been altered" : NULL);
		return error == -ENOMEM ? error : -EBADMSG;
	}
	error = kd_saved_read(&f->saved, st->values, st->n);
	if (!error)
		return 0;
	kd_error("kdds_restore: %s could not be read a second time (%s): the state is undefined",
		 s->path[slot], kd_errno_text(-error));
	return error == -EBADMSG ? -EIO : error;
}

/* Restores from the newest of the files that is whole. */
static int restore_newest(const char *name, const struct kd_slots *s, const struct state *st,
			  const struct found found[KD_SLOTS])
{
	int newest = !found[1].error && (found[0].error || found[1].saved.head.sequence >
					 found[0].saved.head.sequence);
	int error = -ENOENT;

	for (int i = 0; i < KD_SLOTS; i++)
		if (is_passing(found[i].error))
			return found[i].error;
	for (int i = 0; i < KD_SLOTS; i++) {
		int slot = newest ^ i;

		if (!found[slot].error) {
			error = restore_from(s, slot, &found[slot], st);
			if (!error)
				keep(name, slot);
			if (error != -EBADMSG)
				break;
		} else if (found[slot].error != -ENOENT && error == -ENOENT) {
			error = found[slot].error;
		}
	}
	return error;
}

static int restore(const char *name, const struct kd_slots *s, const struct state *st)
{
	struct found found[KD_SLOTS] = {look(s, 0), look(s, 1)};
	int error = restore_newest(name, s, st, found);

	for (int i = 0; i < KD_SLOTS; i++)
		kd_saved_close(&found[i].saved);
	return error;
}

int kdds_restore_state(const char *name, const struct kdds_saved *x, size_t n)
{
	struct kd_slots s;
	struct state st;
	int error = begin("kdds_restore", name, x, n, &s, &st);

	if (error)
		return error;
	kd_slots_clean(&s);
	error = restore(name, &s, &st);
	end(&s, &st);
	return error;
}

int kdds_checkpoint_remove(const char *name)
{
	struct kd_slots s;
	int error;

	if (!name || !*name)
		kd_die("kdds_checkpoint_remove needs the name of a file");
	error = kd_slots_open(&s, name);
	if (!error) {
		error = kd_slots_remove(&s);
		kd_slots_close(&s);
	}
	if (error == -ENOENT)
		return 0;
	if (error)
		kd_error("kdds_checkpoint_remove: cannot remove %s: %s", name,
			 kd_errno_text(-error));
	return error;
}
