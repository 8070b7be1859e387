// SPDX-License-Identifier: GPL-2.0
/*
 * The client's side: its descriptor and the calls that libcr makes on it.  The
 * calls that sleep are interruptible, so that PARK can stop a thread inside, and
 * restart with nothing lost: what they wait for is state of the client.
 * Locks: see client.h.
 */
#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "client.h"
#include "ioctl.h"
#include "request.h"
#include "restart.h"

#define CLIENT_HASH_BITS	12

DEFINE_SPINLOCK(kcr_clients_lock);
static DEFINE_HASHTABLE(clients, CLIENT_HASH_BITS);

/* ---- finding, joining a job, leaving it ---------------------------------------- */

struct kcr_client *kcr_client_find(const struct pid *pid)
{
	struct kcr_client *client;

	lockdep_assert_held(&kcr_clients_lock);
	hash_for_each_possible(clients, client, hash, (unsigned long)pid)
		if (client->pid == pid)
			return client;
	return NULL;
}

bool kcr_client_is_untold(struct kcr_job *job, const struct pid *pid)
{
	struct kcr_client *client;
	bool untold;

	spin_lock(&kcr_clients_lock);
	client = kcr_client_find(pid);
	untold = client && client->job != job;
	spin_unlock(&kcr_clients_lock);
	return untold;
}

static bool is_exception(const struct kcr_client *client, pid_t tid, u32 when)
{
	u32 i;

	for (i = 0; i < client->nr_threads; i++)
		if (client->threads[i].tid == tid)
			return client->threads[i].flags & when;
	return false;
}

bool kcr_client_holds(struct kcr_job *job, const struct pid *pid, const struct task_struct *task,
		      u32 when)
{
	struct kcr_client *client;
	bool holds;

	spin_lock(&kcr_clients_lock);
	holds = !list_empty(&job->clients);
	client = kcr_client_find(pid);
	if (client && client->job == job && client->state == KCR_CLIENT_ANSWERED)
		holds = client->task != task &&
			is_exception(client, task->pid, when) == !!(client->free & when);
	spin_unlock(&kcr_clients_lock);
	return holds;
}

void kcr_client_attach(struct kcr_client *client, struct kcr_job *job,
		       enum kcr_client_state state)
{
	lockdep_assert_held(&kcr_clients_lock);
	client->job = kcr_job_get(job);
	list_add_tail(&client->node, &job->clients);
	WRITE_ONCE(job->nr_clients, job->nr_clients + 1);
	client->state = state;
	client->reported = false;
	client->over = false;
	client->forward = KCR_FORWARD_NONE;
	wake_up_all(&client->wake);
}

struct kcr_job *kcr_client_detach(struct kcr_client *client)
{
	struct kcr_job *job = client->job;

	lockdep_assert_held(&kcr_clients_lock);
	if (!job)
		return NULL;
	list_del_init(&client->node);
	WRITE_ONCE(job->nr_clients, job->nr_clients - 1);
	client->job = NULL;
	wake_up_all(&job->arrived);
	return job;
}

static void put_job(struct kcr_job *job)
{
	if (job)
		kcr_job_put(job);
}

/* ---- its end --------------------------------------------------------------------- */

static void end_client(struct kcr_client *client)
{
	struct kcr_answer_thread *threads = NULL;
	struct kcr_job *job;

	spin_lock(&kcr_clients_lock);
	hash_del(&client->hash);
	client->state = KCR_CLIENT_DEAD;
	client->nr_threads = 0;
	swap(client->threads, threads);
	wake_up_all(&client->wake);
	job = kcr_client_detach(client);
	spin_unlock(&kcr_clients_lock);
	kvfree(threads);
	put_job(job);
}

static int same_file(const void *file, struct file *other, unsigned int fd)
{
	return file == other;
}

/* Its process closes a descriptor: the last one ends the client. */
static int flush(struct file *file, fl_owner_t id)
{
	struct kcr_client *client = file->private_data;

	if (task_tgid(current) != client->pid || id != client->files)
		return 0;
	/* At its end all are closed: not each time a look at all that are left. */
	if (current->flags & PF_EXITING || !iterate_fd(id, 0, same_file, file))
		end_client(client);
	return 0;
}

static void free_client(struct kcr_client *client)
{
	put_pid(client->pid);
	kfree(client->path);
	kfree(client);
}

static int release(struct inode *inode, struct file *file)
{
	struct kcr_client *client = file->private_data;

	end_client(client);
	free_client(client);
	return 0;
}

static void show_fdinfo(struct seq_file *seq, struct file *file)
{
	struct kcr_client *client = file->private_data;

	seq_printf(seq, "kcr-client:\t%d\n", pid_vnr(client->pid));
}

/* ---- waiting ---------------------------------------------------------------------- */

/* After a signal the system call is restarted, whether a handler ran or not. */
static int restart_call(int ret)
{
	return ret == -ERESTARTSYS ? -ERESTARTNOINTR : ret;
}

static int check_alive(const struct kcr_client *client)
{
	lockdep_assert_held(&kcr_clients_lock);
	return client->state == KCR_CLIENT_DEAD ? -ESHUTDOWN : 0;
}

/* A restarted thread that was not in ANSWER, or one that did not call DONE. */
static struct kcr_job *forget_outcome(struct kcr_client *client)
{
	if (client->state != KCR_CLIENT_OUTCOME && client->state != KCR_CLIENT_FINISHING)
		return NULL;
	client->state = KCR_CLIENT_IDLE;
	return kcr_client_detach(client);
}

static bool is_told(struct kcr_client *client)
{
	return READ_ONCE(client->state) != KCR_CLIENT_IDLE;
}

/*
 * A reference to the requesting job; NULL: none; ERR_PTR.  *done: a job to put.
 */
static struct kcr_job *look_for_job(struct kcr_client *client, struct kcr_job **done)
{
	struct kcr_job *job = NULL;
	int ret;

	*done = NULL;
	spin_lock(&kcr_clients_lock);
	ret = check_alive(client);
	if (ret) {
		spin_unlock(&kcr_clients_lock);
		return ERR_PTR(ret);
	}
	*done = forget_outcome(client);
	if (client->state == KCR_CLIENT_TOLD)
		client->state = KCR_CLIENT_RUNNING;
	if (client->state == KCR_CLIENT_RUNNING && client->job)
		job = kcr_job_get(client->job);
	else
		client->state = KCR_CLIENT_IDLE;	/* the job ended before it was looked at */
	spin_unlock(&kcr_clients_lock);
	return job;
}

/* A reference to the requesting job; ERR_PTR. */
static struct kcr_job *wait_until_told(struct kcr_client *client)
{
	struct kcr_job *job, *done;
	int ret;

	while (true) {
		job = look_for_job(client, &done);
		put_job(done);
		if (job)
			return job;
		ret = wait_event_interruptible(client->wake, is_told(client));
		if (ret)
			return ERR_PTR(restart_call(ret));
	}
}

static int copy_path(u64 buffer, const char *path)
{
	return copy_to_user(u64_to_user_ptr(buffer), path, strlen(path) + 1) ? -EFAULT : 0;
}

static long client_wait(struct kcr_client *client, void *request)
{
	struct kcr_client_wait *told = request;
	struct kcr_job *job = wait_until_told(client);
	int ret;

	if (IS_ERR(job))
		return PTR_ERR(job);
	told->notice = job->notification->notice;
	if (!told->notice.requester)
		told->notice.requester = pid_vnr(job->owner);
	ret = copy_path(told->path, job->notification->path);
	kcr_job_put(job);
	return ret;
}

/* ---- answering ------------------------------------------------------------------- */

/* The listed threads, with their IDs in the initial namespace; 0 for one that has ended. */
static struct kcr_answer_thread *get_threads(const struct kcr_client_answer *request)
{
	struct kcr_answer_thread *threads;
	u32 i;

	if (!request->nr_threads)
		return NULL;
	if (request->nr_threads > KCR_ANSWER_THREADS)
		return ERR_PTR(-EINVAL);
	threads = kvmalloc_array(request->nr_threads, sizeof(*threads), GFP_KERNEL_ACCOUNT);
	if (!threads)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(threads, u64_to_user_ptr(request->threads),
			   request->nr_threads * sizeof(*threads))) {
		kvfree(threads);
		return ERR_PTR(-EFAULT);
	}
	rcu_read_lock();
	for (i = 0; i < request->nr_threads; i++)
		threads[i].tid = pid_nr(find_vpid(threads[i].tid));
	rcu_read_unlock();
	return threads;
}

/* Exchanges *threads for an older list, to be freed.  kcr_clients_lock held. */
static int take_answer(struct kcr_client *client, const struct kcr_client_answer *request,
		       struct kcr_answer_thread **threads)
{
	switch (client->state) {
	case KCR_CLIENT_RUNNING:
		client->task = current;
		client->free = request->flags;
		client->nr_threads = request->nr_threads;
		swap(client->threads, *threads);
		client->answer = request->answer;
		client->code = request->code;
		client->reported = false;
		client->state = client->over ? KCR_CLIENT_OUTCOME : KCR_CLIENT_ANSWERED;
		if (client->job)
			wake_up_all(&client->job->arrived);
		return 0;
	case KCR_CLIENT_ANSWERED:	/* the call starts again … */
	case KCR_CLIENT_OUTCOME:	/* … or is that of a restarted process */
		return 0;
	default:
		return -EINVAL;
	}
}

static bool has_outcome(struct kcr_client *client)
{
	return READ_ONCE(client->state) != KCR_CLIENT_ANSWERED;
}

static int give_answer(struct kcr_client *client, const struct kcr_client_answer *request)
{
	struct kcr_answer_thread *threads = get_threads(request);
	int ret;

	if (IS_ERR(threads))
		return PTR_ERR(threads);
	spin_lock(&kcr_clients_lock);
	ret = check_alive(client);
	if (!ret)
		ret = take_answer(client, request, &threads);
	spin_unlock(&kcr_clients_lock);
	kvfree(threads);
	return ret;
}

static long client_answer(struct kcr_client *client, void *request)
{
	struct kcr_client_answer *answer = request;
	int ret;

	if (answer->answer > KCR_ANSWER_OMIT)
		return -EINVAL;
	ret = give_answer(client, answer);
	if (!ret)
		ret = restart_call(wait_event_interruptible(client->wake, has_outcome(client)));
	if (ret)
		return ret;
	spin_lock(&kcr_clients_lock);
	ret = check_alive(client);
	if (!ret && client->state != KCR_CLIENT_OUTCOME)
		ret = -EINVAL;		/* another thread answers */
	if (!ret) {
		answer->outcome = client->outcome;
		answer->result = client->result;
		client->state = KCR_CLIENT_FINISHING;
	}
	spin_unlock(&kcr_clients_lock);
	/* client->path never changes once it is set. */
	if (!ret && answer->outcome == KCR_OUTCOME_RESTARTED)
		ret = copy_path(answer->path, client->path);
	return ret;
}

/* The job that the client leaves, or NULL.  kcr_clients_lock held. */
static struct kcr_job *finish(struct kcr_client *client, u32 code)
{
	struct kcr_job *job = client->job;

	client->state = KCR_CLIENT_IDLE;
	if (job && code && !job->finish_code) {
		job->finish_code = code;
		job->finish_pid = pid_nr_ns(client->pid, ns_of_pid(job->owner));
	}
	return kcr_client_detach(client);
}

static long client_done(struct kcr_client *client, void *request)
{
	const struct kcr_client_done *done = request;
	struct kcr_job *job = NULL;
	int ret;

	spin_lock(&kcr_clients_lock);
	ret = check_alive(client);
	if (!ret && client->state != KCR_CLIENT_FINISHING)
		ret = -EINVAL;
	if (!ret)
		job = finish(client, done->code);
	spin_unlock(&kcr_clients_lock);
	put_job(job);
	return ret;
}

/* ---- forwarding ------------------------------------------------------------------ */

static bool is_forwarded(struct kcr_client *client)
{
	return READ_ONCE(client->forward) == KCR_FORWARD_DONE ||
	       READ_ONCE(client->state) != KCR_CLIENT_RUNNING;
}

/* Passes the call to the requester, unless it was restarted and has been passed on already. */
static int ask(struct kcr_client *client, const struct kcr_client_forward *forward)
{
	lockdep_assert_held(&kcr_clients_lock);
	if (client->state != KCR_CLIENT_RUNNING)
		return -EINVAL;
	if (client->forward != KCR_FORWARD_NONE)
		return 0;
	if (!client->job || client->over)
		return -ECANCELED;
	client->forward_scope = forward->scope;
	client->forward_target = forward->target;
	client->forward = KCR_FORWARD_ASKED;
	wake_up_all(&client->job->arrived);
	return 0;
}

static long client_forward(struct kcr_client *client, void *request)
{
	int ret;

	spin_lock(&kcr_clients_lock);
	ret = check_alive(client);
	if (!ret)
		ret = ask(client, request);
	spin_unlock(&kcr_clients_lock);
	if (!ret)
		ret = restart_call(wait_event_interruptible(client->wake, is_forwarded(client)));
	if (ret)
		return ret;
	spin_lock(&kcr_clients_lock);
	ret = check_alive(client);
	if (!ret) {
		ret = client->forward == KCR_FORWARD_DONE ? client->forward_result : -ECANCELED;
		client->forward = KCR_FORWARD_NONE;
	}
	spin_unlock(&kcr_clients_lock);
	return ret;
}

/* ---- the descriptor -------------------------------------------------------------- */

static const struct client_command {
	struct kcr_request_type request;
	long (*run)(struct kcr_client *client, void *request);
} commands[] = {
	/* ioctl, size in its first version, flags; function */
	{ { KCR_IOC_CLIENT_WAIT, 32, 0 }, client_wait },
	{ { KCR_IOC_CLIENT_ANSWER, 48, KCR_ANSWER_FREE_CONTINUE | KCR_ANSWER_FREE_RESTART },
	  client_answer },
	{ { KCR_IOC_CLIENT_DONE, 16, 0 }, client_done },
	{ { KCR_IOC_CLIENT_FORWARD, 16, 0 }, client_forward },
};

static long run_command(struct kcr_client *client, const struct client_command *command,
			unsigned int number, void __user *argp)
{
	void *request = kcr_request_get(&command->request, number, argp);

	if (IS_ERR(request))
		return PTR_ERR(request);
	return kcr_request_put(&command->request, number, request, argp,
			       command->run(client, request));
}

static long client_ioctl(struct file *file, unsigned int number, unsigned long arg)
{
	struct kcr_client *client = file->private_data;
	size_t i;

	if (task_tgid(current) != client->pid)
		return -EPERM;
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (kcr_request_is(&commands[i].request, number))
			return run_command(client, &commands[i], number, (void __user *)arg);
	return -ENOTTY;
}

static const struct file_operations client_fops = {
	.owner = THIS_MODULE,
	.flush = flush,
	.release = release,
	.show_fdinfo = show_fdinfo,
	.unlocked_ioctl = client_ioctl,
	.llseek = noop_llseek,
};

/* A path of up to KCR_PATH_MAX bytes, with its NUL; ERR_PTR. */
static char *get_path(const char __user *from)
{
	char *path = kmalloc(KCR_PATH_MAX, GFP_KERNEL_ACCOUNT);
	long length;

	if (!path)
		return ERR_PTR(-ENOMEM);
	length = strncpy_from_user(path, from, KCR_PATH_MAX);
	if (length >= 0 && length < KCR_PATH_MAX)
		return path;
	kfree(path);
	return ERR_PTR(length < 0 ? length : -EINVAL);
}

static struct kcr_client *new_client(const struct kcr_client_new *request)
{
	struct kcr_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);

	if (!client)
		return ERR_PTR(-ENOMEM);
	if (request->flags & KCR_CLIENT_RESTARTED) {
		char *path = get_path(u64_to_user_ptr(request->path));

		if (IS_ERR(path)) {
			kfree(client);
			return ERR_CAST(path);
		}
		client->path = path;
	}
	INIT_LIST_HEAD(&client->node);
	init_waitqueue_head(&client->wake);
	client->pid = get_pid(task_tgid(current));
	client->files = current->files;
	return client;
}

/* From here on jobs find it. */
static int publish(struct kcr_client *client, struct kcr_job *job, bool restarted)
{
	int ret = 0;

	spin_lock(&kcr_clients_lock);
	if (kcr_client_find(client->pid))
		ret = -EEXIST;
	else if (restarted && READ_ONCE(job->dead))
		ret = -ECANCELED;
	if (!ret) {
		hash_add(clients, &client->hash, (unsigned long)client->pid);
		if (restarted) {
			kcr_client_attach(client, job, KCR_CLIENT_OUTCOME);
			client->outcome = KCR_OUTCOME_RESTARTED;
			client->result = pid_vnr(job->owner);
		}
	}
	spin_unlock(&kcr_clients_lock);
	return ret;
}

long kcr_ioc_client(struct kcr_job *job, void *request)
{
	const struct kcr_client_new *wanted = request;
	bool restarted = wanted->flags & KCR_CLIENT_RESTARTED;
	struct kcr_client *client;
	struct file *file;
	int fd, ret;

	if (restarted && IS_ERR(kcr_restart_get(job)))
		return -EINVAL;
	client = new_client(wanted);
	if (IS_ERR(client))
		return PTR_ERR(client);
	file = anon_inode_getfile("[kcr_client]", &client_fops, client, O_RDWR);
	if (IS_ERR(file)) {
		free_client(client);
		return PTR_ERR(file);
	}
	/* The file owns it now. */
	fd = get_unused_fd_flags(O_CLOEXEC);
	ret = fd < 0 ? fd : publish(client, job, restarted);
	if (ret) {
		if (fd >= 0)
			put_unused_fd(fd);
		fput(file);
		return ret;
	}
	fd_install(fd, file);
	return fd;
}
