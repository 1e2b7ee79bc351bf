/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "core/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define SEGMENTS 8

struct segment {
	uintptr_t begin, end;
	int executable;
};

struct module {
	const char *file; /* "": the program */
	uintptr_t base;
	uint32_t fingerprint;
	uint32_t segments;
	struct segment segment[SEGMENTS];
};

static struct module *modules;
static size_t count;

static uint32_t hash(uint32_t h, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)p)[i]) * 16777619u;
	return h;
}

/* The linker's build ID, from the notes of one segment; 0: none there. */
static uint32_t build_id(const char *p, size_t n)
{
	while (n >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)p;
		size_t name = (note->n_namesz + 3u) & ~(size_t)3;
		size_t desc = (note->n_descsz + 3u) & ~(size_t)3;

		if (name > n - sizeof(*note) || desc > n - sizeof(*note) - name)
			return 0;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(note + 1, "GNU", 4))
			return hash(2166136261u, (const char *)(note + 1) + name, note->n_descsz) |
			       1u;
		p += sizeof(*note) + name + desc;
		n -= sizeof(*note) + name + desc;
	}
	return 0;
}

static int add(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module *grown = realloc(modules, (count + 1) * sizeof(*modules)), *m;
	uint32_t id = 0, text = 2166136261u;

	(void)size;
	(void)arg;
	if (!grown)
		return -ENOMEM;
	modules = grown;
	m = &modules[count++];
	*m = (struct module){.file = info->dlpi_name, .base = info->dlpi_addr};
	for (int i = 0; i < info->dlpi_phnum && !id; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_NOTE)
			id = build_id((const char *)(info->dlpi_addr + ph->p_vaddr), ph->p_memsz);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const char *p = (const char *)(info->dlpi_addr + ph->p_vaddr);

		if (ph->p_type != PT_LOAD || m->segments == SEGMENTS || !(ph->p_flags & PF_R))
			continue;
		m->segment[m->segments++] = (struct segment){
			(uintptr_t)p, (uintptr_t)p + ph->p_memsz, ph->p_flags & PF_X};
		text = hash(text, &ph->p_memsz, sizeof(ph->p_memsz));
		/* Without a build ID the code itself identifies the module; the linker has not
		 * changed it. */
		if (ph->p_flags & PF_X)
			text = hash(text, p, ph->p_flags & PF_W || id ? 0 : ph->p_filesz);
	}
	m->fingerprint = id ? id : text | 1u;
	return 0;
}

int kd_module_init(void)
{
	int error = dl_iterate_phdr(add, NULL);

	if (error)
		kd_error("out of memory for the list of the program's modules");
	return error;
}

void kd_module_keep(void)
{
	for (size_t i = 0; i < count; i++)
		if (modules[i].file && *modules[i].file) {
			void *m = dlopen(modules[i].file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);

			if (m) /* it is not the kernel's */
				dlclose(m);
		}
}

void kd_module_fini(void)
{
	free(modules);
	modules = NULL;
	count = 0;
}

static const struct module *module_of(uintptr_t p, size_t size, int executable)
{
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < modules[i].segments; k++) {
			const struct segment *s = &modules[i].segment[k];

			if (p >= s->begin && p < s->end && size <= s->end - p &&
			    (!executable || s->executable))
				return &modules[i];
		}
	return NULL;
}

uint64_t kd_module_name(const void *p)
{
	const struct module *m = module_of((uintptr_t)p, 1, 0);

	if (!m || (uintptr_t)p - m->base > INT32_MAX)
		return 0;
	return (uint64_t)m->fingerprint << 32 | ((uintptr_t)p - m->base);
}

const void *kd_module_at(uint64_t name, size_t size, int executable)
{
	for (size_t i = 0; i < count; i++) {
		uintptr_t p = modules[i].base + (uint32_t)name;

		if (modules[i].fingerprint == name >> 32 &&
		    module_of(p, size, executable) == &modules[i])
			return (const void *)p;
	}
	return NULL;
}

static const struct module *own(void)
{
	static const char library;

	return module_of((uintptr_t)&library, 1, 0);
}

int kd_module_is_own(const void *p)
{
	return module_of((uintptr_t)p, 1, 0) == own();
}

int kd_module_is_code(uintptr_t p)
{
	return module_of(p, 1, 1) != NULL;
}

uint64_t kd_module_build(void)
{
	const struct module *library = own();

	if (!count)
		return 0;
	return (uint64_t)modules[0].fingerprint << 32 | (library ? library->fingerprint : 0);
}
