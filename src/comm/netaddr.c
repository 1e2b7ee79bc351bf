/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/netaddr.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#define BACKLOG 4096 /* all ranks of a job may connect at once */

static int is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static socklen_t address_length(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Whether the address is this host's. */
static int is_ours(const struct sockaddr *a)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ours = fd >= 0 && !bind(fd, a, address_length(a));

	if (fd >= 0)
		close(fd);
	return ours;
}

static int has_ipv4_loopback(void)
{
	const struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	return is_ours((const struct sockaddr *)&a);
}

/* Writes the first address of that name that is this host's and not loopback, as text. 0, or an
 * error of getaddrinfo; EAI_NONAME: there is none. */
static int resolve(const char *name, char text[KD_NETADDR_BYTES])
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
	int error = getaddrinfo(name, NULL, &hints, &list);

	if (error)
		return error;
	error = EAI_NONAME;
	for (struct addrinfo *a = list; a && error; a = a->ai_next)
		if ((a->ai_family == AF_INET || a->ai_family == AF_INET6) &&
		    !is_loopback(a->ai_addr) && is_ours(a->ai_addr))
			error = getnameinfo(a->ai_addr, a->ai_addrlen, text, KD_NETADDR_BYTES, NULL,
					    0, NI_NUMERICHOST);
	freeaddrinfo(list);
	return error;
}

/* The address of an interface that is up, IPv4 before IPv6. */
static int first_interface(char text[KD_NETADDR_BYTES])
{
	static const int families[] = {AF_INET, AF_INET6};
	struct ifaddrs *list;
	int error = EAI_NONAME;

	if (getifaddrs(&list))
		return EAI_SYSTEM;
	for (int f = 0; f < 2; f++)
		for (struct ifaddrs *i = list; i && error; i = i->ifa_next)
			if (i->ifa_addr && i->ifa_addr->sa_family == families[f] &&
			    (i->ifa_flags & IFF_UP) && (i->ifa_flags & IFF_RUNNING) &&
			    !is_loopback(i->ifa_addr) &&
			    !(f && IN6_IS_ADDR_LINKLOCAL(
					   &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr)))
				error = getnameinfo(i->ifa_addr, address_length(i->ifa_addr), text,
						    KD_NETADDR_BYTES, NULL, 0, NI_NUMERICHOST);
	freeifaddrs(list);
	return error;
}

int kd_netaddr_choose(const char *listen, int local, char text[KD_NETADDR_BYTES])
{
	char host[256] = "";
	int error;

	if (local) {
		strcpy(text, has_ipv4_loopback() ? "127.0.0.1" : "::1");
		return 0;
	}
	if (listen && *listen) {
		error = resolve(listen, text);
		if (!error)
			return 0;
		kd_error("KDDS_ADDRESS=%s: %s", listen,
			 error == EAI_NONAME ? "no address of this host that other hosts can "
					       "reach; `ip address' lists them"
					     : gai_strerror(error));
		return -EADDRNOTAVAIL;
	}
	if (!gethostname(host, sizeof(host) - 1) && !resolve(host, text))
		return 0;
	if (!first_interface(text))
		return 0;
	kd_error("host %s has no address that other hosts can reach, only loopback: set "
		 "KDDS_ADDRESS on it",
		 host);
	return -EADDRNOTAVAIL;
}

/* 0 or -EINVAL. "": any port, which is port 0. */
static int parse_ports(const char *text, unsigned *low_p, unsigned *high_p)
{
	char end;

	*low_p = *high_p = 0;
	if (!text || !*text)
		return 0;
	if (sscanf(text, "%5u-%5u%c", low_p, high_p, &end) != 2) {
		if (sscanf(text, "%5u%c", low_p, &end) != 1)
			return -EINVAL;
		*high_p = *low_p;
	}
	return *low_p && *low_p <= *high_p && *high_p <= 65535 ? 0 : -EINVAL;
}

/* The socket or -errno. */
static int listen_at(const struct addrinfo *a, unsigned port)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, error;
	struct sockaddr_storage address;

	if (fd < 0)
		return -errno;
	memcpy(&address, a->ai_addr, a->ai_addrlen);
	/* The port is at the same place in both families. */
	((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
	/* Connections of earlier jobs may linger. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&address, a->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* Whether there is a route to an address. Sends nothing. 0 or -errno. */
static int reach(const struct sockaddr *address, socklen_t size)
{
	int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error = fd < 0 || connect(fd, address, size) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

int kd_netaddr_listen(const char *node, const char *ports, struct sockaddr_storage *address,
		      socklen_t *size_p)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *a;
	unsigned low, high;
	int fd = -EADDRNOTAVAIL, error;

	if (parse_ports(ports, &low, &high)) {
		kd_error("KDDS_PORTS=%s: expected a port or a range of ports, such as 40000-40999",
			 ports);
		return -EINVAL;
	}
	if (getaddrinfo(node, NULL, &hints, &a)) {
		kd_error("%s is not a numeric address", node);
		return -EADDRNOTAVAIL;
	}
	/* Neighbours begin at different ports, so that not each tries all ports that are taken. */
	for (unsigned i = 0, n = high - low + 1, begin = (unsigned)getpid() % n; i < n; i++) {
		fd = listen_at(a, low + (begin + i) % n);
		if (fd != -EADDRINUSE)
			break;
	}
	freeaddrinfo(a);
	if (fd == -EADDRINUSE)
		kd_error("no port of KDDS_PORTS=%s is free at %s: each process of a job on this "
			 "host needs one",
			 ports, node);
	else if (fd < 0)
		kd_error("cannot listen at %s: %s", node, kd_errno_text(-fd));
	if (fd < 0)
		return fd;
	*size_p = sizeof(*address);
	getsockname(fd, (struct sockaddr *)address, size_p);
	error = reach((struct sockaddr *)address, *size_p);
	if (error) {
		kd_error("this host cannot reach itself at %s: %s; is the interface up?", node,
			 kd_errno_text(-error));
		close(fd);
		return error;
	}
	return fd;
}

void kd_netaddr_print(const struct sockaddr *address, socklen_t size, char text[KD_NETADDR_BYTES])
{
	char host[KD_NETADDR_BYTES - 16] = "?", port[8] = "?";

	getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, KD_NETADDR_BYTES, address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
		 port);
}
