/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In the place of ssh: TCP connections to a cr_migrate --listen of the target, which runs there
 * what it is told by whoever knows the key of its only migration.  The ends prove to each other
 * that they know it (job/coordinator/greeting.h), and what is sent is sealed, but not encrypted.
 */
#ifndef KCR_MIGRATE_TCP_H
#define KCR_MIGRATE_TCP_H

/*
 * At the source, as `ssh HOST COMMAND`: where: HOST:PORT.  0 with the status of the command, of
 * waitpid(2), or -errno with a message.
 */
int tcp_connect(const char *where, const char *key_file, const char *command, int *status);
/*
 * At the target: waits at [ADDRESS:]PORT (0: any free one), says so on the standard output, and
 * serves one migration.  `program` is the path of cr_migrate.  0 with the status of the
 * receiver, or -errno with a message.
 */
int tcp_listen(const char *where, const char *key_file, const char *program, int *status);

/* For both: how soon a machine that has silently disappeared is noticed. */
void tcp_watch(int fd, const char *command);

#endif /* KCR_MIGRATE_TCP_H */
