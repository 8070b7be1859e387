// SPDX-License-Identifier: GPL-2.0
/*
 * Hosts, see hosts.h.  In a list each is NAME or NAME:SLOTS, in a file the first word of a
 * line; a host may occur more than once, for more slots.  What is no name (a relative +n0, an
 * excluded ^name, a comment) stays as it is.
 */
#include "launch/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job/relaunch.h"
#include "job/snapshot.h"
#include "launch/allocation.h"
#include "report/report.h"

#define NAME_ROOM	256

/* ---- names ----------------------------------------------------------------------------- */

/* Is one of the names an address that the other one has? */
static bool has_address(const char *address, const char *name)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	struct in_addr wanted;
	bool has = false;

	if (inet_pton(AF_INET, address, &wanted) != 1 || getaddrinfo(name, NULL, &hints, &list))
		return false;
	for (struct addrinfo *each = list; each && !has; each = each->ai_next)
		has = ((struct sockaddr_in *)each->ai_addr)->sin_addr.s_addr == wanted.s_addr;
	freeaddrinfo(list);
	return has;
}

/* The domain counts only where both have one. */
static bool is_same(const char *a, const char *b)
{
	size_t short_a = strcspn(a, "."), short_b = strcspn(b, ".");

	if (!strcasecmp(a, b))
		return true;
	if (isdigit((unsigned char)*a) && has_address(a, b))
		return true;
	return short_a == short_b && !strncasecmp(a, b, short_a) && (!a[short_a] || !b[short_b]);
}

bool hosts_has(const char *list, const char *name)
{
	char one[NAME_ROOM];

	while (list && *list) {
		size_t length = strcspn(list, ",");

		snprintf(one, sizeof(one), "%.*s", (int)length, list);
		if (is_same(name, one))
			return true;
		list += length + (list[length] == ',');
	}
	return false;
}

static unsigned int count_names(const char *list)
{
	unsigned int count = list && *list;

	for (; list && *list; list++)
		count += *list == ',';
	return count;
}

/* ---- entries --------------------------------------------------------------------------- */

struct entry {
	char *text;
	char name[NAME_ROOM];		/* "": it names no host */
};

struct entries {
	struct entry *entry;
	size_t count;
};

static void find_name(struct entry *e, const char *ends)
{
	const char *text = e->text + strspn(e->text, " \t"), *at;
	size_t length = strcspn(text, ends);

	e->name[0] = '\0';
	if (strchr("#+^", *text))	/* or its end */
		return;
	at = memchr(text, '@', length);
	if (at) {
		length -= at + 1 - text;
		text = at + 1;
	}
	snprintf(e->name, sizeof(e->name), "%.*s", (int)length, text);
}

static int add_entry(struct entries *list, const char *text, size_t length, const char *ends)
{
	struct entry *grown = realloc(list->entry, (list->count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	list->entry = grown;
	grown += list->count;
	grown->text = strndup(text, length);
	if (!grown->text)
		return -ENOMEM;
	list->count++;
	find_name(grown, ends);
	return 0;
}

static void leave_out(struct entries *list, const char *names)
{
	size_t left = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (*list->entry[i].name && hosts_has(names, list->entry[i].name))
			free(list->entry[i].text);
		else
			list->entry[left++] = list->entry[i];
	}
	list->count = left;
}

/* The host that comes last of all that begin in this list; NULL: it has none. */
static const char *last_host(const struct entries *list)
{
	const char *last = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const char *name = list->entry[i].name;
		bool known = !*name;

		for (size_t j = 0; j < i && !known; j++)
			known = *list->entry[j].name && is_same(name, list->entry[j].name);
		if (!known)
			last = name;
	}
	return last;
}

/* `where` is what the user has called it. */
static int limit(struct entries *list, const char *lost, unsigned int spares, const char *where)
{
	unsigned int gone = count_names(lost), held = spares > gone ? spares - gone : 0;
	char name[NAME_ROOM];
	const char *last;

	leave_out(list, lost);
	for (; held && (last = last_host(list)); held--) {
		snprintf(name, sizeof(name), "%s", last);
		leave_out(list, name);
	}
	if (last_host(list))
		return 0;
	return report_fail(-EINVAL, gone ? "no host of %s is left" :
					   "--spares leaves no host of %s to begin with", where);
}

static void free_entries(struct entries *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entry[i].text);
	free(list->entry);
}

/* What remains of them; malloc()ed or NULL. */
static char *join(const struct entries *list, char separator)
{
	char *out = NULL;
	size_t length;
	FILE *stream = open_memstream(&out, &length);

	for (size_t i = 0; stream && i < list->count; i++)
		fprintf(stream, "%s%s", i ? (char[]){ separator, '\0' } : "", list->entry[i].text);
	if (stream && !fclose(stream))
		return out;
	free(out);
	return NULL;
}

struct limits {
	const char *lost;
	unsigned int spares;
};

/* The same text without the hosts that are not to be used; *out is malloc()ed. */
static int limit_text(char **out, const char *text, char separator, const struct limits *l,
		      const char *where)
{
	const char ends[] = { separator, separator == ',' ? ':' : ' ', '\t', '\r', '\0' };
	struct entries list = { 0 };
	int err = 0;

	for (const char *at = text; *at && !err; at += *at == separator) {
		const char *end = strchrnul(at, separator);

		err = add_entry(&list, at, end - at, ends);
		at = end;
	}
	if (!err)
		err = limit(&list, l->lost, l->spares, where);
	if (!err && !(*out = join(&list, separator)))
		err = -ENOMEM;
	free_entries(&list);
	return err;
}

/* ---- options --------------------------------------------------------------------------- */

static int read_text(const char *path, char **text)
{
	size_t room = 0;
	FILE *file = fopen(path, "re");
	int err;

	*text = NULL;
	if (!file)
		return report_errno(-errno, "%s", path);
	errno = 0;
	err = getdelim(text, &room, '\0', file) < 0 && ferror(file) ? -errno : 0;
	fclose(file);
	if (err)
		return report_errno(err, "%s", path);
	if (!*text)
		*text = strdup("");
	return *text ? 0 : -ENOMEM;
}

/* The launcher finds it in this process, which outlives it: *path is malloc()ed. */
static int keep_open(const char *text, char **path)
{
	int fd = memfd_create("hosts", MFD_CLOEXEC), err = 0;

	if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
		err = report_errno(-errno, "cannot keep the list of hosts");
	else if (asprintf(path, "/proc/%d/fd/%d", getpid(), fd) < 0)
		err = -ENOMEM;
	if (err && fd >= 0)
		close(fd);
	return err;
}

/* The hosts that have the ranks' files are needed, all of them, and no spare one is among them. */
static int limit_file(char **out, const char *path, const struct limits *given)
{
	const struct limits l = { given->lost, relaunch_has_placed(path) ? 0 : given->spares };
	char *text, *limited = NULL;
	int err = read_text(path, &text);

	if (!err)
		err = limit_text(&limited, text, '\n', &l, path);
	if (!err)
		err = keep_open(limited, out);
	free(limited);
	free(text);
	return err;
}

static int limit_word(char **word, const char *option, const struct limits *l)
{
	bool attached = option == *word, is_list = command_is_option(option, "host") ||
						   command_is_option(option, "H");
	const char *value = attached ? strchr(option, '=') + 1 : *word;
	char *limited = NULL, *made;
	int err = is_list ? limit_text(&limited, value, ',', l, value) :
			    limit_file(&limited, value, l);

	if (!err && asprintf(&made, "%.*s%s", attached ? (int)(value - option) : 0, option, limited) < 0)
		err = -ENOMEM;
	free(limited);
	if (err)
		return err;
	free(*word);
	*word = made;
	return 0;
}

/* Before the options of every program. */
static int insert_hosts(struct command *c, const char *list)
{
	char **out = NULL;
	bool begins = true;
	int err = 0;

	for (char **word = c->proxied; *word && !err; word++) {
		if (begins)
			err = strings_add(&out, "--host") ?: strings_add(&out, list);
		if (!err)
			err = strings_add(&out, *word);
		begins = !strcmp(*word, ":");
	}
	strings_free(err ? out : c->proxied);
	if (!err)
		c->proxied = out;
	return err;
}

/* Without a word of the user's the launcher takes all that the scheduler has given the job. */
static int limit_allocation(struct command *c, const struct limits *l)
{
	char *all = allocation_hosts(), *limited = NULL;
	int err = 0;

	if (all)
		err = limit_text(&limited, all, ',', l, "the allocation");
	else if (l->spares)
		err = report_fail(-EINVAL, "--spares needs the hosts: by --host, by --hostfile or of a "
				  "scheduler");
	if (limited && !err)
		err = insert_hosts(c, limited);
	free(limited);
	free(all);
	return err;
}

int hosts_limit(struct command *c, const char *lost, unsigned int spares)
{
	const struct limits limits = { lost, spares };
	int err = 0;

	if (((!lost || !*lost) && !spares) || !c->program)
		return 0;
	if (!c->nr_hosts)
		err = limit_allocation(c, &limits);
	for (size_t i = 0; i < c->nr_hosts && !err; i++) {
		char **word = &c->proxied[c->hosts[i]];

		err = limit_word(word, **word == '-' && strchr(*word, '=') ? *word : word[-1], &limits);
	}
	return err && report_error() != err ? report_errno(err, "no memory") : err;
}
