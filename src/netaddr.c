/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "netaddr.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"

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

/* Whether it is this host's. */
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
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return is_ours((const struct sockaddr *)&a);
}

/* The first address of that name which is ours, loopback apart, as text. 0, or an error of getaddrinfo; EAI_NONAME: none is. */
static int resolve(const char *name, char text[KD_NETADDR_BYTES])
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
	int error = getaddrinfo(name, NULL, &hints, &list);

	if (error)
		return error;
	error = EAI_NONAME;
	for (struct addrinfo *a = list; a && error; a = a->ai_next)
		if ((a->ai_family == AF_INET || a->ai_family == AF_INET6) && !is_loopback(a->ai_addr) && is_ours(a->ai_addr))
			error = getnameinfo(a->ai_addr, a->ai_addrlen, text, KD_NETADDR_BYTES, NULL, 0, NI_NUMERICHOST);
	freeaddrinfo(list);
	return error;
}

/* An interface that is up, IPv4 before IPv6. */
static int first_interface(char text[KD_NETADDR_BYTES])
{
	static const int families[] = {AF_INET, AF_INET6};
	struct ifaddrs *list;
	int error = EAI_NONAME;

	if (getifaddrs(&list))
		return EAI_SYSTEM;
	for (int f = 0; f < 2; f++)
		for (struct ifaddrs *i = list; i && error; i = i->ifa_next)
			if (i->ifa_addr && i->ifa_addr->sa_family == families[f] && (i->ifa_flags & IFF_UP) &&
			    (i->ifa_flags & IFF_RUNNING) && !is_loopback(i->ifa_addr) &&
			    !(f && IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr)))
				error = getnameinfo(i->ifa_addr, address_length(i->ifa_addr), text, KD_NETADDR_BYTES, NULL, 0,
						    NI_NUMERICHOST);
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
			 error == EAI_NONAME ? "no address of this host by which others reach it; `ip address' lists them" :
					       gai_strerror(error));
		return -EADDRNOTAVAIL;
	}
	if (!gethostname(host, sizeof(host) - 1) && !resolve(host, text))
		return 0;
	if (!first_interface(text))
		return 0;
	kd_error("host %s has no address but loopback for the others to reach it by: set KDDS_ADDRESS on it", host);
	return -EADDRNOTAVAIL;
}
