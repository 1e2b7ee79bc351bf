/* SPDX-License-Identifier: BSD-3-Clause */
/* One line about the run on stderr, written over again and again: of rank 0, which knows itself and what it has given away. */
#ifndef KD_PROGRESS_H
#define KD_PROGRESS_H

/* Whether somebody would see it. */
int kd_progress_wanted(void);
/* One thread. */
void kd_progress_show(void);
/* The line goes: what is printed next begins where it was. That thread has ended. */
void kd_progress_end(void);

#endif
