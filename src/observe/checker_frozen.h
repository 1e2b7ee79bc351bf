/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's part about frozen data (core/frozen.h): which tasks may write to them, and whether
 * they have changed. */
#ifndef KD_CHECKER_FROZEN_H
#define KD_CHECKER_FROZEN_H

struct kd_value;

/* Main has frozen v, or is about to write to it again. */
void kd_checker_freeze(const struct kd_value *v);
void kd_checker_thaw(const struct kd_value *v);
/* Whether some of v is frozen. */
int kd_checker_frozen_meets(const struct kd_value *v);
/* Main waits: reports what has changed. */
void kd_checker_frozen_compare(void);
void kd_checker_frozen_free(void);

#endif
