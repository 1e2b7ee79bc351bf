/* SPDX-License-Identifier: BSD-3-Clause */
/* At which of its addresses this host can be reached by others. */
#ifndef KD_NETADDR_H
#define KD_NETADDR_H

#include <sys/socket.h>

#include "base/base.h"

#define KD_NETADDR_BYTES 256

/*
 * Writes an address in digits: loopback when all are local; else the one that listen says, an address or a name of this host;
 * without it the first that the host's name has, or any interface that is up. 0, or -errno after a line on stderr.
 */
int kd_netaddr_choose(const char *listen, int local, char text[KD_NETADDR_BYTES]);

/*
 * Listens for TCP connections at an address in digits: at any port, or (ports "LOW-HIGH" or one
 * number) at a free one of these. Returns the socket, which does not block, and its address; or
 * -errno after a line on stderr.
 */
int kd_netaddr_listen(const char *node, const char *ports, struct sockaddr_storage *address,
		      socklen_t *size_p);

/* "ADDRESS:PORT", in digits. */
void kd_netaddr_print(const struct sockaddr *address, socklen_t size, char text[KD_NETADDR_BYTES]);

#endif
