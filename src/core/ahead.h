/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running ahead of reference order. Where thieves of other ranks find only closures that may not
 * leave the process (KDDS_LOCAL), such as tasks that read a file, those that could leave wait for
 * these. The visitor sets KD_AHEAD, and the owner runs LOCAL closures of the frame early, by the
 * steal path, until enough others are ready:
 *
 *   owner          read 0 | work 0 | read 1, read 2 | write 0 | work 1 | read 3 | write 1 ...
 *   other rank     finds read 1: KD_AHEAD           | work 2                  | work 3 ...
 *
 * Enough is a number, kd_stack.lead, that doubles when the other rank has taken what was ready and
 * finds nothing again, so that few data wait where tasks are long, and the rank need not wait for
 * the owner, who answers between two tasks only. Each closure that leaves sets KD_AHEAD again.
 *
 * A part of a spread loop is no such closure: what follows a loop waits for all parts, so nothing
 * becomes ready when one of them runs early.
 */
#ifndef KD_AHEAD_H
#define KD_AHEAD_H

#include "core/record.h"

/* A thief of another rank visits s, and has got a closure or not. kept: the latter because a ready
 * one was LOCAL. */
void kd_ahead_ask(struct kd_stack *s, int got, int kept);

/* Whether enough ready closures of the frame may leave: as many as the lead, or some whose data
 * exceed KDDS_CACHE. */
int kd_ahead_enough(const struct kd_view *v);

#endif
