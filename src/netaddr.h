/* SPDX-License-Identifier: BSD-3-Clause */
/* At which of its addresses this host can be reached by others. */
#ifndef KD_NETADDR_H
#define KD_NETADDR_H

#include "base.h"

#define KD_NETADDR_BYTES 256

/*
 * Writes an address in digits: loopback when all are local; else the one that listen says, an address or a name of this host;
 * without it the first that the host's name has, or any interface that is up. 0, or -errno after a line on stderr.
 */
int kd_netaddr_choose(const char *listen, int local, char text[KD_NETADDR_BYTES]);

#endif
