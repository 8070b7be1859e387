// SPDX-License-Identifier: GPL-2.0
/*
 * Keys, policies and options of sockets that the kernel tells nobody: the module looks for them
 * (KCR_IOC_SOCKET).  Options are saved among those that getsockopt(2) tells; the rest is refused.
 */
#include "resource/socket_hidden.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/file_table.h"
#include "resource/option_names.h"
#include "resource/socket.h"

static void warn_old(void)
{
	static bool warned;

	if (!warned)
		report_warn("the module in memory is older than this program, and does not tell all "
			    "that sockets have: load the new one");
	warned = true;
}

int socket_hidden_get(struct file_table *t, const struct file_probe *probe, struct kcr_socket *out)
{
	int err;

	*out = (struct kcr_socket){};
	if (t->job < 0)
		return 0;
	err = device_socket(t->job, probe->fd, out);
	if (err == -ENOTTY)
		warn_old();
	if (err == -ENOTTY || err == -EOPNOTSUPP)
		return 0;
	return err ? file_save_error(probe, err, "cannot query its state") : 0;
}

int socket_hidden_check(struct file_table *t, const struct kcr_socket *hidden)
{
	static const struct {
		uint32_t state;
		const char *text;
	} refused[] = {
		{ KCR_SOCKET_CLAIMED, "a socket that a BPF map or a protocol of the kernel uses" },
		{ KCR_SOCKET_KEYS, "a TCP socket with keys (TCP_MD5SIG)" },
		{ KCR_SOCKET_POLICY, "a socket with an IPsec policy of its own (IP_XFRM_POLICY)" },
		{ KCR_SOCKET_PROGRAM, "a socket of a group with a BPF program that chooses among them "
				      "(SO_ATTACH_REUSEPORT_EBPF, SO_ATTACH_REUSEPORT_CBPF)" },
		{ KCR_SOCKET_ANYCAST, "a socket with an anycast address (IPV6_JOIN_ANYCAST)" },
		{ KCR_SOCKET_LABEL, "a socket with a flow label (IPV6_FLOWLABEL_MGR)" },
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (hidden->state & refused[i].state)
			return file_unsupported(t, "%s", refused[i].text);
	return 0;
}

/* ---- options -------------------------------------------------------------------------------- */

/*
 * Which interface the kernel takes for IP_MULTICAST_IF with this address alone, as it does on
 * another machine, where interfaces have other numbers.
 */
static uint32_t interface_by_address(struct file_table *t, const Kcr__InetSocket *s,
				     struct in_addr address)
{
	int fresh = socket(s->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct kcr_socket hidden = {};

	if (fresh >= 0 && !setsockopt(fresh, IPPROTO_IP, IP_MULTICAST_IF, &address, sizeof(address)))
		device_socket(t->job, fresh, &hidden);
	if (fresh >= 0)
		close(fresh);
	return hidden.multicast_interface;
}

static int save_multicast(struct file_table *t, const struct file_probe *probe,
			  const struct kcr_socket *hidden, Kcr__InetSocket *s)
{
	struct ip_mreqn m = { .imr_ifindex = hidden->multicast_interface };
	socklen_t length = sizeof(m.imr_address);

	/* In a connection the kernel itself sets it, and lets nobody else. */
	if (!hidden->multicast_interface || s->type == SOCK_STREAM ||
	    getsockopt(probe->fd, IPPROTO_IP, IP_MULTICAST_IF, &m.imr_address, &length) ||
	    (m.imr_address.s_addr &&
	     interface_by_address(t, s, m.imr_address) == hidden->multicast_interface))
		return 0;
	return socket_option_add(&s->option, &s->n_option, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m));
}

static int save_source(const struct kcr_socket *hidden, Kcr__InetSocket *s)
{
	struct in6_pktinfo source = { .ipi6_ifindex = hidden->source_interface };

	memcpy(&source.ipi6_addr, hidden->source, sizeof(source.ipi6_addr));
	if (!source.ipi6_ifindex && IN6_IS_ADDR_UNSPECIFIED(&source.ipi6_addr))
		return 0;
	return socket_option_add(&s->option, &s->n_option, IPPROTO_IPV6, IPV6_PKTINFO, &source,
				 sizeof(source));
}

/* It shows as that of a new socket if its clock has number 0 (CLOCK_REALTIME). */
static int save_txtime(const struct kcr_socket *hidden, Kcr__InetSocket *s)
{
	struct sock_txtime usual = {};

	for (size_t i = 0; i < s->n_option; i++)
		if (s->option[i]->level == SOL_SOCKET && s->option[i]->name == SO_TXTIME)
			return 0;
	return hidden->state & KCR_SOCKET_TXTIME ?
	       socket_option_add(&s->option, &s->n_option, SOL_SOCKET, SO_TXTIME, &usual,
				 sizeof(usual)) : 0;
}

int socket_hidden_save(struct file_table *t, const struct file_probe *probe,
		       const struct kcr_socket *hidden, Kcr__InetSocket *s)
{
	const int on = 1, mtu = (int)hidden->mtu;
	int err = save_multicast(t, probe, hidden, s) ?: save_source(hidden, s) ?:
		  save_txtime(hidden, s);

	if (!err && mtu)
		err = socket_option_add(&s->option, &s->n_option, IPPROTO_IPV6, IPV6_MTU, &mtu,
					sizeof(mtu));
	if (!err && hidden->state & KCR_SOCKET_ALERT)
		err = socket_option_add(&s->option, &s->n_option, IPPROTO_IP, IP_ROUTER_ALERT, &on,
					sizeof(on));
	if (!err && hidden->state & KCR_SOCKET_SYN && !file_table_is_dry(t))
		report_warn("process %d: the SYN packet that it has not read (TCP_SAVED_SYN) is not "
			    "saved (%s)", probe->pid, probe->link);
	return err;
}
