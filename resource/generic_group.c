// SPDX-License-Identifier: GPL-2.0
/*
 * Asks the controller of generic netlink for families and their groups.  See
 * generic_group.h.
 */
#include "resource/generic_group.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_SIZE	(32u << 10)	/* the kernel's largest part of a dump */

/* What is said of one group; `name` is NULL for a family without groups. */
struct finding {
	const char *family;
	uint32_t family_id;
	const char *name;
	uint32_t number;
};

/* Called for each; a result other than 0 ends the search and is its result. */
typedef int (*visitor)(void *arg, const struct finding *f);

/* ---- attributes ------------------------------------------------------------------ */

/* The attribute at *at, which advances behind it; NULL: no more. */
static const struct nlattr *next_attribute(const char **at, const char *end)
{
	const struct nlattr *a = (const void *)*at;

	if (end - *at < (ptrdiff_t)sizeof(*a) || a->nla_len < sizeof(*a) || a->nla_len > end - *at)
		return NULL;
	*at += NLA_ALIGN(a->nla_len) < end - *at ? NLA_ALIGN(a->nla_len) : end - *at;
	return a;
}

static const char *payload(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static const char *payload_end(const struct nlattr *a)
{
	return (const char *)a + a->nla_len;
}

/* The kernel's strings end in a NUL. */
static const char *text_of(const struct nlattr *a)
{
	return memchr(payload(a), '\0', payload_end(a) - payload(a)) ? payload(a) : "";
}

/* A number of 2 or 4 bytes. */
static uint32_t number_of(const struct nlattr *a)
{
	uint32_t number = 0;
	size_t length = payload_end(a) - payload(a);

	memcpy(&number, payload(a), length < sizeof(number) ? length : sizeof(number));
	return number;
}

static int visit_group(const struct nlattr *group, struct finding *f, visitor visit, void *arg)
{
	const char *at = payload(group);
	const struct nlattr *a;

	f->name = "";
	f->number = 0;
	while ((a = next_attribute(&at, payload_end(group)))) {
		if ((a->nla_type & NLA_TYPE_MASK) == CTRL_ATTR_MCAST_GRP_NAME)
			f->name = text_of(a);
		else if ((a->nla_type & NLA_TYPE_MASK) == CTRL_ATTR_MCAST_GRP_ID)
			f->number = number_of(a);
	}
	return visit(arg, f);
}

/* A message about one family. */
static int visit_family(const struct nlmsghdr *head, visitor visit, void *arg)
{
	const char *at = (const char *)head + NLMSG_HDRLEN + GENL_HDRLEN;
	const char *end = (const char *)head + head->nlmsg_len;
	const struct nlattr *a, *groups = NULL, *group;
	struct finding f = { .family = "" };
	int ret = 0;

	while ((a = next_attribute(&at, end))) {
		switch (a->nla_type & NLA_TYPE_MASK) {
		case CTRL_ATTR_FAMILY_NAME:
			f.family = text_of(a);
			break;
		case CTRL_ATTR_FAMILY_ID:
			f.family_id = number_of(a);
			break;
		case CTRL_ATTR_MCAST_GROUPS:
			groups = a;
			break;
		default:
			break;
		}
	}
	at = groups ? payload(groups) : NULL;
	while (groups && !ret && (group = next_attribute(&at, payload_end(groups))))
		ret = visit_group(group, &f, visit, arg);
	return ret;
}

/* ---- the request -------------------------------------------------------------------- */

static int send_request(int fd, const char *family)
{
	struct {
		struct nlmsghdr head;
		struct genlmsghdr generic;
		struct nlattr attribute;
		char name[GENL_NAMSIZ];
	} request = {
		.head = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = GENL_ID_CTRL,
			  .nlmsg_flags = NLM_F_REQUEST | (family ? NLM_F_ACK : NLM_F_DUMP) },
		.generic = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
	};
	size_t length = family ? strlen(family) + 1 : 0;

	if (length > sizeof(request.name))
		return -ENOENT;
	if (family) {
		request.attribute.nla_type = CTRL_ATTR_FAMILY_NAME;
		request.attribute.nla_len = NLA_HDRLEN + length;
		memcpy(request.name, family, length);
		request.head.nlmsg_len += NLA_HDRLEN + NLA_ALIGN(length);
	}
	return send(fd, &request, request.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* Reads one part of the answer; *more: it goes on. */
static int read_part(int fd, char *buffer, visitor visit, void *arg, bool *more)
{
	ssize_t got = recv(fd, buffer, ANSWER_SIZE, 0);
	const struct nlmsghdr *head = (const void *)buffer;
	int left = got, ret = 0;

	if (got < 0)
		return -errno;
	for (; !ret && *more && NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
		if (head->nlmsg_type == NLMSG_ERROR || head->nlmsg_type == NLMSG_DONE) {
			*more = false;
			if (head->nlmsg_type == NLMSG_ERROR)
				ret = ((const struct nlmsgerr *)NLMSG_DATA(head))->error;
		} else if (head->nlmsg_type == GENL_ID_CTRL) {
			ret = visit_family(head, visit, arg);
		}
	}
	return ret;
}

/* Visits the groups of a family, whose module is loaded; NULL: of all that there are. */
static int visit_all(const char *family, visitor visit, void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), ret;
	char *buffer = malloc(ANSWER_SIZE);
	bool more = true;

	ret = fd < 0 ? -errno : buffer ? send_request(fd, family) : -ENOMEM;
	while (!ret && more)
		ret = read_part(fd, buffer, visit, arg, &more);
	if (fd >= 0)
		close(fd);
	free(buffer);
	return ret;
}

/* ---- save and find ------------------------------------------------------------------- */

static bool has_number(const Kcr__NetlinkSocket *s, uint32_t number)
{
	for (size_t i = 0; i < s->n_group; i++)
		if (s->group[i] == number)
			return true;
	return false;
}

static int add(void *arg, const struct finding *f)
{
	Kcr__NetlinkSocket *s = arg;
	Kcr__NetlinkGroup *group;

	if (!has_number(s, f->number) || s->n_generic_group == s->n_group)
		return 0;
	group = malloc(sizeof(*group));
	if (!group)
		return -ENOMEM;
	kcr__netlink_group__init(group);
	s->generic_group[s->n_generic_group++] = group;
	group->number = f->number;
	group->family_id = f->family_id;
	group->family = strdup(f->family);
	group->name = strdup(f->name);
	return group->family && group->name ? 0 : -ENOMEM;
}

int generic_group_save(Kcr__NetlinkSocket *s)
{
	if (!s->n_group)
		return 0;
	s->generic_group = calloc(s->n_group, sizeof(*s->generic_group));
	return s->generic_group ? visit_all(NULL, add, s) : -ENOMEM;
}

struct search {
	const char *name;
	uint32_t number, family_id;	/* number 0: not found */
};

static int compare(void *arg, const struct finding *f)
{
	struct search *search = arg;

	if (!strcmp(f->name, search->name)) {
		search->number = f->number;
		search->family_id = f->family_id;
	}
	return 0;
}

int generic_group_find(const Kcr__NetlinkGroup *group, uint32_t *number, uint32_t *family)
{
	struct search search = { .name = group->name };
	int err = visit_all(group->family, compare, &search);

	if (err)
		return err;
	if (!search.number)
		return -ENOENT;
	*number = search.number;
	*family = search.family_id;
	return 0;
}
