/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names for static things (task types, reduction operators, pack functions) that every process of a job understands. The
 * loader puts the program and its libraries at different addresses in each process; what is at the same offset in the same
 * image is the same thing. So a name is the image's fingerprint and the offset, 32 bits each, and nothing needs to be registered.
 */
#ifndef KD_IMAGE_H
#define KD_IMAGE_H

#include "base/base.h"

/* Lists the images loaded now; those loaded later have no names. 0 or -ENOMEM after a line. */
int kd_image_init(void);
void kd_image_fini(void);

/* The name of what lies at p; 0: not in an image. Names have bit 31 clear, for others' use. */
uint64_t kd_image_name(const void *p);
/* What has that name here, if size bytes of it do: NULL if not. executable: it is to be a function. */
const void *kd_image_at(uint64_t name, size_t size, int executable);

/* Whether the address is one of code. */
int kd_image_is_code(uintptr_t p);

/* The same for all processes that run the same build of program and library. */
uint64_t kd_image_build(void);

#endif
