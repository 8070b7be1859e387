/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one user makes the module hold: jobs, and the processes in them.  Their
 * memory belongs to the memory cgroup of who made them; their number is
 * limited here, per user.  All that live in a user namespace share the account
 * of the user who made the outermost one, however many identities it has.
 */
#ifndef KCR_ACCOUNT_H
#define KCR_ACCOUNT_H

struct kcr_account;

/*
 * The caller's account, with one job more.  ERR_PTR(-EDQUOT: it has as many
 * as max_jobs allows; -ENOMEM).  May sleep.
 */
struct kcr_account *kcr_account_open(void);
/* The job is gone, with all its processes. */
void kcr_account_close(struct kcr_account *account);

/* One process more: 0, or -EDQUOT: there are max_processes.  Atomic. */
int kcr_account_charge(struct kcr_account *account);
void kcr_account_uncharge(struct kcr_account *account);

#endif /* KCR_ACCOUNT_H */
