/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress line: one line about the run on stderr, rewritten again and again. Rank 0
 * prints it, about itself and the steal messages that it has sent. */
#ifndef KD_PROGRESS_H
#define KD_PROGRESS_H

/* Whether the options ask for the line, and, unless it is forced, stderr is a terminal. */
int kd_progress_wanted(void);
/* Rewrites the line. Called by one thread only. */
void kd_progress_show(void);
/* Erases the line, so that the next output begins in its place. That thread has ended. */
void kd_progress_end(void);

#endif
