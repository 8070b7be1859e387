// SPDX-License-Identifier: GPL-2.0
/*
 * How ranks are reached.  Each has one address, created when it starts and again
 * when it is restarted: networks and ports, PID and file descriptor of its
 * shared memory, the identity of its node, and a key which peers that connect
 * must know, so that strangers and earlier runs of a peer are rejected.
 *
 * Addresses come from the modex until the first restart, then from the book, which has those
 * of the peers so far.  Others are asked for when they are needed; as the checkpoint thread
 * enters them while threads of the program are inside, the book has a lock.
 */
#include "btl_cr_gate.h"

#include "btl_cr.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "btl_cr_control.h"

#define VERSION 2
#define ASK_AGAIN_S 60		/* until mpirun's coordinator has answered */
_Static_assert(sizeof(struct cr_address) <= MCA_BTL_CR_ADDRESS_MAX, "control interface");

struct cr_address cr_address_own = { .inbox = -1 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t grown;
	struct cr_address *entry;	/* by rank; version 0: not known */
	uint32_t room;
	bool restarted;			/* the modex is void */
	int (*ask)(uint32_t rank);	/* or NULL */
} book = { .lock = PTHREAD_MUTEX_INITIALIZER, .grown = PTHREAD_COND_INITIALIZER };

/* FNV-1a */
static uint64_t mix(uint64_t hash, const void *data, size_t length)
{
	const unsigned char *byte = data;

	while (length--)
		hash = (hash ^ *byte++) * 0x100000001b3ULL;
	return hash;
}

/*
 * Ranks share memory if they run on the same kernel, see each other's processes
 * and have the same host name (containers and emulated nodes often differ in
 * the name only).
 */
static uint64_t node_identity(void)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	struct utsname name;
	struct stat space;
	char boot[64];
	ssize_t length;
	int fd;

	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, boot, sizeof(boot));
		if (length > 0)
			hash = mix(hash, boot, length);
		close(fd);
	}
	if (!uname(&name))
		hash = mix(hash, name.nodename, strlen(name.nodename));
	if (!stat("/proc/self/ns/pid", &space))
		hash = mix(hash, &space.st_ino, sizeof(space.st_ino));
	return mix(hash, &cr_param.node, sizeof(cr_param.node));
}

static bool wanted(const char *name)
{
	const char *list = cr_param.if_include, *at;
	size_t length = strlen(name);

	if (!list || !*list)
		return true;
	for (at = strstr(list, name); at; at = strstr(at + 1, name))
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* Are all ranks of the job on this node, according to its launcher? */
static bool all_here(void)
{
	const char *all = getenv("OMPI_COMM_WORLD_SIZE");
	const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

	return all && here && !strcmp(all, here);
}

static uint8_t prefix_bits(const unsigned char *mask, size_t length)
{
	unsigned int bits = 0;

	while (length--)
		bits += __builtin_popcount(*mask++);
	return bits;
}

static bool describe(const struct ifaddrs *one, struct cr_address_net *net)
{
	memset(net, 0, sizeof(*net));
	net->loopback = !!(one->ifa_flags & IFF_LOOPBACK);
	if (one->ifa_addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)one->ifa_addr;
		const struct sockaddr_in *mask = (const void *)one->ifa_netmask;

		net->family = AF_INET;
		memcpy(net->bytes, &in->sin_addr, 4);
		net->prefix = prefix_bits((const void *)&mask->sin_addr, 4);
		return true;
	}
	if (one->ifa_addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)one->ifa_addr;
		const struct sockaddr_in6 *mask = (const void *)one->ifa_netmask;

		if (IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr))
			return false;
		net->family = AF_INET6;
		memcpy(net->bytes, &in->sin6_addr, 16);
		net->prefix = prefix_bits((const void *)&mask->sin6_addr, 16);
		return true;
	}
	return false;
}

static int list_networks(struct cr_address *address, bool loopback)
{
	struct ifaddrs *all, *one;

	if (getifaddrs(&all))
		return -errno;
	address->nets_count = 0;
	for (one = all; one && address->nets_count < CR_ADDRESS_NETS; one = one->ifa_next) {
		if (!one->ifa_addr || !one->ifa_netmask || !(one->ifa_flags & IFF_UP) ||
		    !wanted(one->ifa_name) || (loopback && !(one->ifa_flags & IFF_LOOPBACK)))
			continue;
		if (describe(one, &address->nets[address->nets_count]))
			address->nets_count++;
	}
	freeifaddrs(all);
	return address->nets_count ? 0 : -ENETDOWN;
}

int cr_address_make(void)
{
	struct cr_address address = { .version = VERSION, .inbox = -1 };
	bool listed = cr_param.if_include && *cr_param.if_include;
	int rc = -ENETDOWN;

	if (!listed && all_here())
		rc = list_networks(&address, true);
	if (rc)
		rc = list_networks(&address, false);
	if (!rc)
		rc = seal_random(address.key, sizeof(address.key));
	if (rc)
		return rc;
	address.pid = getpid();
	address.node = node_identity();
	cr_address_own = address;
	return 0;
}

int cr_address_check(const void *data, size_t length)
{
	const struct cr_address *address = data;

	if (length != sizeof(*address) || address->version != VERSION ||
	    address->nets_count > CR_ADDRESS_NETS)
		return -EINVAL;
	for (unsigned int i = 0; i < address->nets_count; i++)
		if (address->nets[i].prefix > 8 * sizeof(address->nets[i].bytes))
			return -EINVAL;
	return 0;
}

/* ---- the book --------------------------------------------------------------- */

static int enter(uint32_t rank, const struct cr_address *address)
{
	struct cr_address *grown;
	uint32_t room;

	if (rank >= book.room) {
		room = rank + rank / 2 + 64;
		grown = realloc(book.entry, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + book.room, 0, (room - book.room) * sizeof(*grown));
		book.entry = grown;
		book.room = room;
	}
	book.entry[rank] = *address;
	return 0;
}

int cr_address_enter(uint32_t rank, const struct cr_address *address)
{
	int rc;

	pthread_mutex_lock(&book.lock);
	rc = enter(rank, address);
	pthread_cond_broadcast(&book.grown);
	pthread_mutex_unlock(&book.lock);
	return rc;
}

void cr_address_forget(bool restarted)
{
	pthread_mutex_lock(&book.lock);
	free(book.entry);
	book.entry = NULL;
	book.room = 0;
	book.restarted = restarted;
	pthread_mutex_unlock(&book.lock);
}

void cr_address_source(int (*ask)(uint32_t rank))
{
	pthread_mutex_lock(&book.lock);
	book.ask = ask;
	pthread_mutex_unlock(&book.lock);
}

static bool entered(uint32_t rank)
{
	return rank < book.room && book.entry[rank].version;
}

/*
 * Under the lock.  There is no limit: cr_mpirun may be stopped, or the job suspended.  A question
 * that is asked again fails if nobody is there any more.
 */
static int await(uint32_t rank)
{
	struct timespec again;
	int rc;

	if (!book.ask)
		return -ENOENT;
	if (cr_gate_mine())
		return -EAGAIN;
	do {
		rc = book.ask(rank);
		clock_gettime(CLOCK_MONOTONIC, &again);
		again.tv_sec += ASK_AGAIN_S;
		while (!rc && !entered(rank))
			rc = -pthread_cond_clockwait(&book.grown, &book.lock, CLOCK_MONOTONIC, &again);
	} while (rc == -ETIMEDOUT && !entered(rank));
	return entered(rank) ? 0 : rc;
}

static int find_in_modex(uint32_t rank, struct cr_address *address)
{
	opal_process_name_t name = opal_proc_local_get()->proc_name;
	void *data = NULL;
	size_t length;
	int rc;

	name.vpid = rank;
	OPAL_MODEX_RECV(rc, &mca_btl_cr_component.btl_version, &name, &data, &length);
	if (rc != OPAL_SUCCESS)
		return -ENOENT;
	rc = cr_address_check(data, length);
	if (!rc)
		memcpy(address, data, sizeof(*address));
	free(data);
	return rc;
}

int cr_address_find(uint32_t rank, struct cr_address *address)
{
	bool elsewhere;
	int rc = 0;

	pthread_mutex_lock(&book.lock);
	elsewhere = !book.restarted && !entered(rank);
	if (!elsewhere && !entered(rank))
		rc = await(rank);
	if (!elsewhere && !rc)
		*address = book.entry[rank];
	pthread_mutex_unlock(&book.lock);
	return elsewhere ? find_in_modex(rank, address) : rc;
}

/* ---- networks --------------------------------------------------------------- */

static bool same_network(const struct cr_address_net *a, const struct cr_address_net *b)
{
	unsigned int whole = a->prefix / 8, rest = a->prefix % 8;

	if (a->family != b->family || a->prefix != b->prefix || memcmp(a->bytes, b->bytes, whole))
		return false;
	return !rest || !((a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest));
}

/* The higher, the better; loopback only leads to the same host. */
static int rank_network(const struct cr_address_net *net)
{
	int score = net->family == AF_INET;

	for (unsigned int i = 0; i < cr_address_own.nets_count; i++)
		if (same_network(net, &cr_address_own.nets[i]))
			score |= 2;
	return net->loopback ? score : score + 4;
}

socklen_t cr_address_socket(const struct cr_address *address, unsigned int nth,
			    struct sockaddr_storage *socket)
{
	unsigned int order[CR_ADDRESS_NETS], count = address->nets_count, i, j;
	const struct cr_address_net *net;

	if (!count)
		return 0;
	for (i = 0; i < count; i++) {
		for (j = i; j && rank_network(&address->nets[order[j - 1]]) <
				 rank_network(&address->nets[i]); j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	net = &address->nets[order[nth % count]];
	memset(socket, 0, sizeof(*socket));
	if (net->family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)socket;

		in->sin_family = AF_INET;
		in->sin_port = htons(net->port);
		memcpy(&in->sin_addr, net->bytes, 4);
		return sizeof(*in);
	} else {
		struct sockaddr_in6 *in = (struct sockaddr_in6 *)socket;

		in->sin6_family = AF_INET6;
		in->sin6_port = htons(net->port);
		memcpy(&in->sin6_addr, net->bytes, 16);
		return sizeof(*in);
	}
}
