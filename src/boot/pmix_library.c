/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/log.h"

#ifdef KDDS_HAVE_PMIX

#include "boot/pmix_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define LIBRARY "libpmix.so.2"

struct kd_pmix kd_pmix;

static const struct {
	const char *name;
	void *pointer;
} functions[] = {
#define ROW(name) {"PMIx_" #name, &kd_pmix.name},
	KD_PMIX_FUNCTIONS(ROW)
#undef ROW
};

int kd_pmix_load(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		kd_error("PMIx: a PMIx launcher has started this process, but %s cannot be loaded "
			 "(Debian: libpmix2): %s",
			 LIBRARY, dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *f = dlsym(handle, functions[i].name);

		if (!f) {
			kd_error("PMIx: %s has no %s", LIBRARY, functions[i].name);
			return -ENOSYS;
		}
		memcpy(functions[i].pointer, &f, sizeof(f)); /* C has no cast for this */
	}
	return 0;
}

#endif
