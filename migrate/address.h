/* SPDX-License-Identifier: GPL-2.0 */
/* Internet addresses as they are written: HOST:PORT, [IPV6]:PORT. */
#ifndef KCR_MIGRATE_ADDRESS_H
#define KCR_MIGRATE_ADDRESS_H

/*
 * A TCP socket that is connected to there, or that listens, at any address if there is only a
 * port; *port: then its port.  A descriptor, or -errno with a message.
 */
int address_connect(const char *where);
int address_listen(const char *where, int *port);

#endif /* KCR_MIGRATE_ADDRESS_H */
