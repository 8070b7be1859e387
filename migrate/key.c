// SPDX-License-Identifier: GPL-2.0
/* See key.h. */
#include "migrate/key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report.h"

static char made[PATH_MAX];

static int choose(char key[WIRE_SECRET + 1])
{
	uint8_t random[WIRE_SECRET / 2];
	int err = seal_random(random, sizeof(random));

	for (size_t i = 0; !err && i < sizeof(random); i++)
		snprintf(key + 2 * i, 3, "%02x", random[i]);
	return err;
}

int key_make(const char *file, char key[WIRE_SECRET + 1])
{
	int err = choose(key), fd;

	if (err)
		return report_errno(err, "random numbers");
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return report_fail(-EEXIST, "%s exists: a key is used once, remove it or name another "
				   "file", file);
	if (fd < 0 || !realpath(file, made)) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return report_errno(err, "the key %s", file);
	}
	if (dprintf(fd, "%s\n", key) != WIRE_SECRET + 1)
		err = -EIO;
	if (close(fd))
		err = -errno;
	if (err)
		key_remove();
	return err ? report_errno(err, "the key %s", file) : 0;
}

void key_remove(void)
{
	if (*made)
		unlink(made);
	*made = '\0';
}

/* Whoever else can read it can have programs run here, by the other end. */
static int check_owner(int fd, const char *file)
{
	struct stat st;

	if (fstat(fd, &st))
		return report_errno(-errno, "the key %s", file);
	if (!S_ISREG(st.st_mode) || st.st_mode & (S_IRWXG | S_IRWXO))
		return report_fail(-EPERM, "the key %s must be a file that only its owner may read (chmod "
				   "600)", file);
	return 0;
}

int key_read(const char *file, char key[WIRE_SECRET + 1])
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	ssize_t n;

	if (fd < 0)
		return report_errno(-errno, "the key %s", file);
	err = check_owner(fd, file);
	n = err ? 0 : read(fd, key, WIRE_SECRET);
	close(fd);
	if (err)
		return err;
	key[n < 0 ? 0 : n] = '\0';
	if (n != WIRE_SECRET || strspn(key, "0123456789abcdef") != WIRE_SECRET)
		return report_fail(-EINVAL, "%s has no key of cr_migrate --listen", file);
	return 0;
}
