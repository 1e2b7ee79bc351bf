/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/suspect.h"

#include <stdarg.h>
#include <stdio.h>

#include "boot/boot.h"
#include "remote/net.h"

void kd_suspect(struct kd_net *net, uint32_t rank, const char *format, ...)
{
	char why[300];
	va_list args;

	if (net->ends == 2)
		return; /* another thread says goodbye to the launcher */
	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	kd_boot_suspect(&net->boot, rank, net->incarnations[rank], why);
}
