// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_SOCKET: what a socket has that the kernel tells nobody: keys and policies, options that
 * can be set only; and what of a Unix socket's queue does not show.
 *
 * Its program stands still, and what others change meanwhile is either there or not: numbers are
 * read once, pointers are not followed, but for three that are under RCU.  lock_sock() would let
 * whoever has the socket, too, keep the caller waiting for ever, by a system call that faults.
 */
#include <linux/errno.h>
#include <linux/in.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/tcp.h>
#include <net/inet_sock.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/sock_reuseport.h>
#include <net/tcp.h>

#include "btf.h"
#include "ioctl.h"
#include "job.h"

/* Leased flow labels: in ipv6_pinfo, in newer kernels in inet_sock. */
static struct kcr_btf_member in_ipv6[] = {
	{ "ipv6_fl_list", "ipv6_fl_socklist", sizeof(void *) },
};

static struct kcr_btf_member in_inet[] = {
	{ "ipv6_fl_list", "ipv6_fl_socklist", sizeof(void *) },
};

static struct kcr_btf_wanted wanted[] = {
	{ "ipv6_pinfo", in_ipv6, ARRAY_SIZE(in_ipv6), .optional = true },
	{ "inet_sock", in_inet, ARRAY_SIZE(in_inet), .optional = true },
};

static struct kcr_btf_search labels = { wanted, ARRAY_SIZE(wanted) };

static bool is_tcp(const struct sock *sk)
{
	return sk->sk_type == SOCK_STREAM && sk->sk_protocol == IPPROTO_TCP;
}

/* TCP, UDP, ping or raw. */
static bool is_inet(const struct sock *sk)
{
	if (sk->sk_family != PF_INET && sk->sk_family != PF_INET6)
		return false;
	switch (sk->sk_type) {
	case SOCK_STREAM:
		return is_tcp(sk);
	case SOCK_DGRAM:
		return sk->sk_protocol == IPPROTO_UDP || sk->sk_protocol == IPPROTO_ICMP ||
		       sk->sk_protocol == IPPROTO_ICMPV6;
	}
	return sk->sk_type == SOCK_RAW;
}

static bool has_keys(struct sock *sk)
{
	bool has = false;
#ifdef CONFIG_TCP_MD5SIG
	const struct tcp_md5sig_info *info;

	rcu_read_lock();
	info = rcu_dereference(tcp_sk(sk)->md5sig_info);
	has = info && !hlist_empty(&info->head);
	rcu_read_unlock();
#endif
	return has;
}

static bool has_policy(const struct sock *sk)
{
#ifdef CONFIG_XFRM
	return rcu_access_pointer(sk->sk_policy[0]) || rcu_access_pointer(sk->sk_policy[1]);
#else
	return false;
#endif
}

static bool has_program(struct sock *sk)
{
	const struct sock_reuseport *group;
	bool has;

	rcu_read_lock();
	group = rcu_dereference(sk->sk_reuseport_cb);
	has = group && rcu_access_pointer(group->prog);
	rcu_read_unlock();
	return has;
}

/* Of IPv4: the list of IPv6 is the kernel's own. */
static bool gets_alerts(struct sock *sk)
{
	const struct ip_ra_chain *alert;

	rcu_read_lock();
	for (alert = rcu_dereference(sock_net(sk)->ipv4.ra_chain); alert && alert->sk != sk;
	     alert = rcu_dereference(alert->next))
		;
	rcu_read_unlock();
	return alert;
}

static bool leads_on(const void *object, const struct kcr_btf_wanted *owner)
{
	return owner->type && READ_ONCE(*(void *const *)kcr_btf_at(object, owner->members));
}

static void query_ipv6(const struct sock *sk, struct kcr_socket *request)
{
	const struct ipv6_pinfo *pinfo = inet6_sk(sk);

	if (sk->sk_family != PF_INET6 || !pinfo)
		return;
	if (READ_ONCE(pinfo->ipv6_ac_list))
		request->state |= KCR_SOCKET_ANYCAST;
	if (!kcr_btf_search(&labels) && (leads_on(pinfo, &wanted[0]) || leads_on(sk, &wanted[1])))
		request->state |= KCR_SOCKET_LABEL;
	request->mtu = READ_ONCE(pinfo->frag_size);
	request->source_interface = READ_ONCE(pinfo->sticky_pktinfo.ipi6_ifindex);
	memcpy(request->source, &pinfo->sticky_pktinfo.ipi6_addr, sizeof(request->source));
}

static void query_inet(struct sock *sk, struct kcr_socket *request)
{
	if (is_tcp(sk) && has_keys(sk))
		request->state |= KCR_SOCKET_KEYS;
	if (is_tcp(sk) && READ_ONCE(tcp_sk(sk)->saved_syn))
		request->state |= KCR_SOCKET_SYN;
	if (has_policy(sk))
		request->state |= KCR_SOCKET_POLICY;
	if (has_program(sk))
		request->state |= KCR_SOCKET_PROGRAM;
	if (sk->sk_type == SOCK_RAW && gets_alerts(sk))
		request->state |= KCR_SOCKET_ALERT;
	if (sock_flag(sk, SOCK_TXTIME))
		request->state |= KCR_SOCKET_TXTIME;
	request->shut = READ_ONCE(sk->sk_shutdown) & (KCR_SOCKET_SHUT_READ | KCR_SOCKET_SHUT_WRITE);
	request->multicast_interface = READ_ONCE(inet_sk(sk)->mc_index);
	query_ipv6(sk, request);
}

static void query_unix(struct sock *sk, struct kcr_socket *request)
{
	struct sk_buff_head *queue = &sk->sk_receive_queue;
	const struct sk_buff *skb;

	spin_lock_bh(&queue->lock);
	if (skb_queue_empty(queue))
		request->state |= KCR_SOCKET_IDLE;
	skb_queue_walk(queue, skb) {
		if (!skb->len && skb->peeked)
			request->state |= KCR_SOCKET_PEEKED;
	}
	spin_unlock_bh(&queue->lock);
}

static void clear(struct kcr_socket *request)
{
	*request = (struct kcr_socket) {
		.size = request->size, .flags = request->flags, .fd = request->fd,
	};
}

long kcr_ioc_socket(struct kcr_job *job, void *request)
{
	struct kcr_socket *answer = request;
	struct socket *socket;
	struct sock *sk;
	int err;

	BUILD_BUG_ON(KCR_SOCKET_SHUT_READ != RCV_SHUTDOWN || KCR_SOCKET_SHUT_WRITE != SEND_SHUTDOWN);
	clear(answer);
	socket = sockfd_lookup(answer->fd, &err);
	if (!socket)
		return err;
	sk = socket->sk;
	err = sk && (is_inet(sk) || sk->sk_family == PF_UNIX) ? 0 : -EOPNOTSUPP;
	if (!err && READ_ONCE(sk->sk_user_data))
		answer->state |= KCR_SOCKET_CLAIMED;
	if (!err && sk->sk_family == PF_UNIX)
		query_unix(sk, answer);
	else if (!err)
		query_inet(sk, answer);
	sockfd_put(socket);
	return err;
}
