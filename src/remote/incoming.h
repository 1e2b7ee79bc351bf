/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The incoming steal message at the thief (outgoing.h): closures that look as if they had been
 * committed here, with local copies of their data, and the results that go back. Small data items
 * lie in an arena, the others in the copy cache (copies.h).
 *
 * Nothing in a steal message is followed blindly: kd_incoming_open checks every number in it
 * first.
 */
#ifndef KD_INCOMING_H
#define KD_INCOMING_H

#include "remote/copies.h"
#include "remote/outgoing.h"

/* One data item. */
struct kd_incoming_item {
	struct kd_value value; /* the local copy */
	uint32_t flags;        /* KD_WIRE_ */
	uint64_t bytes;        /* length of the input as it travels */
	uint32_t rank;         /* that has the input: the victim or, if it is away, another */
	uint64_t at, key;      /* of the input in that rank's memory */
	char *arriving;        /* buffer for an input that is unpacked after it has been read */
	struct kd_copy *copy;  /* in the copy cache; NULL: value.data is in the arena or in own */
	struct kd_version version, written; /* of the input; of the output */
	void *own;             /* the allocation that holds value.data */
	int fetch;             /* the input has yet to be read */
	int compare;           /* with what the copy cache knows of it, before it is read */
	struct kd_copy_wait wait; /* for a copy that another import reads; import.c's, as is whose */
	void *whose;
	int held;              /* a result that the copy cache finds by its address: */
	struct kd_copy_held holding;
	int shares;            /* lies in a copy with other data (kd_copy_around) */
	int used;              /* an access of its size refers to it */
};

/* A piece of an input that is put together, to be read from another rank. */
struct kd_incoming_piece {
	struct kd_wire_piece wire;
	uint32_t item;
	char *arriving; /* buffer, if it does not lie there as it is to lie here */
};

struct kd_incoming {
	struct kd_net *net;
	char *closures;
	size_t closure_bytes;
	uint32_t count, independent;
	struct kd_incoming_item *data;
	uint32_t ndata;
	struct kd_incoming_piece *pieces;
	uint32_t npieces;
	char *arena;
};

/* Unpacks size bytes from a rank. Inputs that came along or are in the cache are in place
 * afterwards, except that a copy in the cache may be arriving; the others are marked fetch. 0; -EBADMSG: not a steal message; -ENOMEM. */
int kd_incoming_open(struct kd_net *net, struct kd_incoming *x, uint32_t from, const void *bytes,
		     size_t size);
/* Where to read the input of x->data[i] to; call kd_incoming_arrived when it is there. */
char *kd_incoming_room(struct kd_incoming *x, uint32_t i);
void kd_incoming_arrived(struct kd_incoming *x, uint32_t i);
/* The same for x->pieces[i]. */
char *kd_incoming_piece_room(struct kd_incoming *x, uint32_t i);
void kd_incoming_piece_arrived(struct kd_incoming *x, uint32_t i);
/* For kd_read.recall. */
uint64_t kd_incoming_recall(struct kd_incoming *x, uint32_t i, uint64_t at, uint64_t most,
			    int *had_p);
/* So many parts of x->data[i] were the same, so many differed. */
void kd_incoming_compared(struct kd_incoming *x, uint32_t i, uint32_t same, uint32_t differed);
/* The closures have run: releases to the cache the copies that they have only read. */
void kd_incoming_release(struct kd_incoming *x);
void kd_incoming_free(struct kd_incoming *x);

/* The results. Values that do not travel inline are exposed. */
struct kd_results {
	struct kd_net *net;
	char *bytes;
	size_t size;
	uint32_t count;
	struct kd_exposed *regions;
	uint32_t nregions;
	uint64_t large; /* bytes of exposed values */
	uint64_t fresh; /* of these, bytes that do not overwrite results retained here earlier */
};

void kd_results_make(struct kd_results *r, struct kd_incoming *x);
void kd_results_free(struct kd_results *r);

#endif
