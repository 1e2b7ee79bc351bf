/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names for static objects (task types, reduction operators, pack functions) that every process of
 * a job understands. The loader puts the program and its libraries at different addresses in each
 * process, but what lies at the same offset in the same module is the same object. So a name is the
 * fingerprint of the module and the offset, 32 bits each, and nothing needs to be registered.
 */
#ifndef KD_MODULE_H
#define KD_MODULE_H

#include "base/base.h"

/* Lists the modules that are loaded now; those loaded later have no names. 0 or -ENOMEM after an
 * error message. */
int kd_module_init(void);
void kd_module_fini(void);
/* Keeps them in the process: another library would be loaded to the place of one that dlclose has
 * removed, and what lies there would go by the names of the first. */
void kd_module_keep(void);

/* The name of what lies at p; 0: p is not in a module. Bit 31 of a name is 0; others may use it. */
uint64_t kd_module_name(const void *p);
/* The object with that name in this process. NULL: there is none, or less than size bytes of it.
 * executable: it must be a function. */
const void *kd_module_at(uint64_t name, size_t size, int executable);

/* Whether the address lies in the module that has this library. */
int kd_module_is_own(const void *p);
/* Whether code lies at the address. */
int kd_module_is_code(uintptr_t p);

/* Identifies the build of program and library: equal in all processes that run the same one. */
uint64_t kd_module_build(void);

#endif
