/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one user makes the module hold: jobs, and the processes in them.  Their
 * memory is charged to the memory cgroup of the creator; their number is
 * limited here, per user.  All users of a user namespace share the account
 * of the user who created the outermost one, however many UIDs it has.
 */
#ifndef KCR_ACCOUNT_H
#define KCR_ACCOUNT_H

struct kcr_account;

/*
 * The caller's account, with one more job.  ERR_PTR(-EDQUOT: it has max_jobs
 * jobs; -ENOMEM).  May sleep.
 */
struct kcr_account *kcr_account_open(void);
/* The job is freed, with all its processes. */
void kcr_account_close(struct kcr_account *account);

/* One more process: 0, or -EDQUOT: there are max_processes.  Atomic. */
int kcr_account_charge(struct kcr_account *account);
void kcr_account_uncharge(struct kcr_account *account);

#endif /* KCR_ACCOUNT_H */
