/* SPDX-License-Identifier: BSD-3-Clause */
/* The address at which other hosts can reach this one. */
#ifndef KD_NETADDR_H
#define KD_NETADDR_H

#include <sys/socket.h>

#include "base/base.h"

#define KD_NETADDR_BYTES 256

/*
 * Writes a numeric address: loopback when all ranks are local; otherwise that of listen, an address
 * or a name of this host; without listen, the first address of the host name or, failing that, of
 * an interface that is up. 0, or -errno after a line on stderr.
 */
int kd_netaddr_choose(const char *listen, int local, char text[KD_NETADDR_BYTES]);

/*
 * Listens for TCP connections at a numeric address: at any port or, if ports is "LOW-HIGH" or one
 * number, at a free one of these. Returns the socket, which does not block, and its address; or
 * -errno after a line on stderr.
 */
int kd_netaddr_listen(const char *node, const char *ports, struct sockaddr_storage *address,
		      socklen_t *size_p);

/* Writes "ADDRESS:PORT", numeric. */
void kd_netaddr_print(const struct sockaddr *address, socklen_t size, char text[KD_NETADDR_BYTES]);

#endif
