// SPDX-License-Identifier: GPL-2.0
/*
 * Per-user accounts; see account.h.  An account lives as long as one of its
 * jobs.  accounts_lock guards the table and the job counts; processes are
 * counted without a lock.  Users with CAP_SYS_RESOURCE when a job is opened are
 * counted, but not limited.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "account.h"

#define ACCOUNT_HASH_BITS	8

static unsigned int max_jobs = 4096;
module_param(max_jobs, uint, 0644);
MODULE_PARM_DESC(max_jobs, "Open checkpoints and restarts of one user");

static unsigned int max_processes = 16384;
module_param(max_processes, uint, 0644);
MODULE_PARM_DESC(max_processes, "Processes in all checkpoints and restarts of one user");

struct kcr_account {
	struct hlist_node hash;
	kuid_t uid;
	bool unlimited;
	unsigned int nr_jobs;
	atomic_t nr_processes;
};

static DEFINE_HASHTABLE(accounts, ACCOUNT_HASH_BITS);
static DEFINE_SPINLOCK(accounts_lock);

/* A user namespace gives its creator any number of UIDs: charge all of them to the creator. */
static kuid_t responsible(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_uid();

	for (; ns != &init_user_ns; ns = ns->parent)
		uid = ns->owner;
	return uid;
}

static struct kcr_account *find(kuid_t uid, bool unlimited)
{
	struct kcr_account *account;

	hash_for_each_possible(accounts, account, hash, __kuid_val(uid))
		if (uid_eq(account->uid, uid) && account->unlimited == unlimited)
			return account;
	return NULL;
}

struct kcr_account *kcr_account_open(void)
{
	bool unlimited = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	kuid_t uid = responsible();
	struct kcr_account *account, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	fresh->uid = uid;
	fresh->unlimited = unlimited;
	spin_lock(&accounts_lock);
	account = find(uid, unlimited);
	if (!unlimited && (account ? account->nr_jobs : 0) >= READ_ONCE(max_jobs)) {
		account = ERR_PTR(-EDQUOT);
	} else {
		if (!account) {
			account = fresh;
			fresh = NULL;
			hash_add(accounts, &account->hash, __kuid_val(uid));
		}
		account->nr_jobs++;
	}
	spin_unlock(&accounts_lock);
	kfree(fresh);
	return account;
}

void kcr_account_close(struct kcr_account *account)
{
	bool last;

	spin_lock(&accounts_lock);
	last = !--account->nr_jobs;
	if (last)
		hash_del(&account->hash);
	spin_unlock(&accounts_lock);
	if (last)
		kfree(account);
}

int kcr_account_charge(struct kcr_account *account)
{
	if (atomic_inc_return(&account->nr_processes) <= READ_ONCE(max_processes) ||
	    account->unlimited)
		return 0;
	atomic_dec(&account->nr_processes);
	return -EDQUOT;
}

void kcr_account_uncharge(struct kcr_account *account)
{
	atomic_dec(&account->nr_processes);
}
