/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * KDDS_CHECK: finds what the model forbids and nothing else detects. One worker runs the program in
 * reference order; the task hooks see every task, and a hook of its own every spawn.
 *
 *   spawn      checker_push.h: what the body does with data that it has passed on
 *   begin      data that are to be overwritten are poisoned; what may not change is hashed
 *   end        the hashes; checker_frame.h: whether the children use one memory without an order
 *   done       the hashes again; whether outputs are still poisoned. KDDS_DATA are poisoned
 */
#ifndef KD_CHECKER_H
#define KD_CHECKER_H

struct kd_net;

/* Before there are workers: sets the hooks. 0, or -EINVAL after an error line. */
int kd_checker_start(const struct kd_net *net);
/* Main's body begins. */
void kd_checker_run(const struct kd_net *net);
/* There are no workers any more. Ends the program with status 1 if a mistake has been found. */
void kd_checker_stop(void);

#endif
