/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kinds of open files share: their table entries, helpers of save
 * and helpers of rebuild.  The interface to the other rooms is resource.h.
 */
#ifndef KCR_RESOURCE_FILE_H
#define KCR_RESOURCE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resource/resource.h"

extern const struct file_kind file_kind_client;
extern const struct file_kind file_kind_device;
extern const struct file_kind file_kind_directory;
extern const struct file_kind file_kind_epoll;
extern const struct file_kind file_kind_eventfd;
extern const struct file_kind file_kind_inet_socket;
extern const struct file_kind file_kind_fanotify;
extern const struct file_kind file_kind_inotify;
extern const struct file_kind file_kind_io_uring;
extern const struct file_kind file_kind_memfd;
extern const struct file_kind file_kind_message_queue;
extern const struct file_kind file_kind_netlink_socket;
extern const struct file_kind file_kind_packet_socket;
extern const struct file_kind file_kind_pidfd;
extern const struct file_kind file_kind_pipe;
extern const struct file_kind file_kind_regular;
extern const struct file_kind file_kind_shared_memory;
extern const struct file_kind file_kind_signalfd;
extern const struct file_kind file_kind_terminal;
extern const struct file_kind file_kind_timerfd;
extern const struct file_kind file_kind_unix_socket;
extern const struct file_kind file_kind_user_fault;

/* The kind with this tag in the image; NULL: none. */
const struct file_kind *file_kind_of(Kcr__File__KindCase tag);

/* ---- save ------------------------------------------------------------------- */

/* Fills all except fd, pid, thread, number and mapped flags; mallocs link and fdinfo.  -errno. */
int file_probe_fill(struct file_probe *p);
/* The text of fdinfo; NULL: it could not be read. */
char *file_probe_fdinfo(const struct file_probe *p);

/* Is this a dry run?  The programs run: queues and counters must be left alone. */
bool file_table_is_dry(const struct file_table *t);

/* For save(): why this file cannot be saved; returns -EOPNOTSUPP. */
int file_unsupported(struct file_table *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* For save(): a failure; the message names process and descriptor. Returns err. */
int file_save_error(const struct file_probe *probe, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reports that the limit on open files is too low for those of process pid: -EMFILE. */
int file_too_many(pid_t pid);

/* Has this file been left out (--skip-unsupported)? */
bool file_table_left_out(const struct file_table *t, uint32_t id);
/* A socket of NETLINK_SOCK_DIAG, opened at its first use; -errno. */
int file_table_diag(struct file_table *t);
/* For inet_socket.c: the addresses of all its sockets; freed with the table. */
void **file_table_inet_ends(struct file_table *t);

/*
 * For unix_queue.c: what it has read of this socket, of a table, before it is saved; freed with
 * the table.
 */
Kcr__UnixSocket **file_table_unread(const struct file_probe *probe);

#define FILE_SEND_MS	100	/* for a datagram to leave the machine */

/*
 * Waits a millisecond for data that are on their way out.  false: the time that all sockets of
 * the table have together, FILE_SEND_MS, is over.
 */
bool file_table_await_sent(struct file_table *t);

/*
 * For save(): the lowest id of a file of this kind with the same inode, possibly its own, whose
 * contents are saved (`has_contents`; NULL: those of all are).
 */
uint32_t file_table_first_with_inode(const struct file_table *t, const struct file_probe *probe,
				     const Kcr__File *file,
				     bool (*has_contents)(const Kcr__File *file));
/* Are the contents of this file to be saved with another open file, or mapping, of it? */
bool file_table_keeps(const struct file_table *t, const struct file_probe *probe);
/* A path that leads to this file, by which another one was opened; malloc()ed, or NULL. */
char *file_table_other_path(const struct file_table *t, const struct file_probe *probe);

/* A copy of the data, or ENOMEM with a message. */
int file_bytes(ProtobufCBinaryData *out, const void *data, size_t length);
char *file_string(const char *text);	/* strdup; NULL with a message */

/* Adds a message of this kind (of `size` bytes) to `file`; NULL: no memory (reported). */
void *file_new_kind(Kcr__File *file, Kcr__File__KindCase tag, size_t size);

/* The text after "KEY" (with its colon) in a line of fdinfo, white space skipped; NULL. */
const char *fdinfo_value(const char *fdinfo, const char *key);

/* Is it an anonymous inode of this name ("[eventfd]", "inotify")? */
bool probe_is_anon(const struct file_probe *probe, const char *name);
/*
 * Does the link end in " (deleted)", and is there no file of that very name?  Or does it only
 * have the name of a silly rename?
 */
bool probe_is_deleted(const struct file_probe *probe);
/*
 * Does its path lead to it?  Not if it was opened in another mount namespace, where the
 * path means another file.
 */
bool probe_is_at_path(const struct file_probe *probe);
/* A copy of its path, without the suffix if it is deleted. */
char *probe_path(const struct file_probe *probe, bool deleted);

/* The usual path of a device without a state; NULL: another device.  device.c */
const char *device_usual_path(uint64_t rdev);

/* ---- locks (file_lock.c) ------------------------------------------------------ */

struct lock_list {			/* POSIX locks found, by process */
	struct lock_entry { pid_t pid; int number; uint32_t type; int64_t start, len;
			    pid_t owner; } *entry;
	size_t count;
};

/* Reads "lock:" lines: flock and OFD locks into `file`, POSIX locks of `pid` into `list`. */
int locks_parse(const char *fdinfo, pid_t pid, int number, Kcr__File *file,
		struct lock_list *list);
int locks_of_process(const struct lock_list *list, Kcr__Process *p);
/* Takes the locks and the lease of an open file again, except those of locks_install(). */
int locks_rebuild(const struct rebuild *r, int fd, const Kcr__File *file);
/* In a process that has it as this descriptor: takes those that are told to be its own. */
int locks_install(const Kcr__Process *process, int number, const Kcr__File *file);
/* Has it a delegation (F_SETDELEG), a lease that folders and metadata have, too? */
bool lease_is_delegated(int fd);
void lease_save(const struct file_table *t, const struct file_probe *probe, Kcr__File *file);
void locks_script(const Kcr__Process *process, struct script *s);

/*
 * Why a file of the kernel's own file systems cannot be opened again as it is; NULL: it can, with a
 * warning if something is lost.  file_state.c
 */
const char *file_state_refusal(const struct file_table *t, const struct file_probe *probe);

/* ---- contents (file_content.c) ------------------------------------------------ */

/*
 * May its contents be in an image?  Only if a process of the table has it open for reading, or
 * could have: what was opened with O_PATH or only for writing may be anybody's.
 */
bool file_content_is_readable(const struct file_table *t, const struct file_probe *probe);
/* Writes what is not zero of a file's first st_size bytes. */
int file_write_content(const struct file_probe *probe, const Kcr__File *file,
		       struct context_writer *w);
/* Puts part of it back. 0 or -errno, without a message. */
int file_store_content(int fd, uint64_t offset, const void *data, size_t length);

/* ---- rebuild ------------------------------------------------------------------ */

/* Records a file descriptor for file `id`, moved above the saved ones; takes it over. */
int rebuild_put(struct rebuild *r, uint32_t id, int fd);
/* Likewise as the one to write its contents to. */
int rebuild_put_content(struct rebuild *r, uint32_t id, int fd);
/* A new open file description of one of cr_restart's own descriptors 0, 1, 2. */
int rebuild_reopen_stdio(const struct rebuild *r, int number, int flags);
/* rebuild_put() of cr_restart's descriptor 0, 1 or 2, with a new description if possible. */
int rebuild_put_stdio(struct rebuild *r, uint32_t id, int number, uint32_t flags);

/* "cannot restore DESCRIPTION: …: strerror"; returns err. */
int rebuild_error(const Kcr__File *file, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Flags of a saved description that open(2) may get again. */
int rebuild_open_flags(const Kcr__File *file);
/* identity_open() of a path that --relocate may move. */
int rebuild_open_path(const struct rebuild *r, const char *path, int flags, mode_t mode);
/*
 * Likewise for an existing file, once it is known to be of this type (S_IFMT):
 * opening another type could wait for ever or have side effects.
 */
int rebuild_open_node(const struct rebuild *r, const char *path, int flags, struct stat *st,
		      mode_t type);
/* The parent folder (O_PATH) of a path that --relocate may move, and the name in it. */
int rebuild_open_folder(const struct rebuild *r, const char *path, char name[NAME_MAX + 1]);
/* identity_is_guarded() after --relocate. */
bool rebuild_is_guarded(const struct rebuild *r, const char *path);
/* The path after --relocate, to be freed unless it is `path` itself. */
const char *rebuild_path(const struct rebuild *r, const char *path);
void rebuild_path_free(const char *path, const char *original);
/*
 * Sets the owner of a new file (also with O_PATH) with the rights in force: whoever these belong
 * to may have opened it by name meanwhile, and would keep it.  Where they do not suffice it
 * stays its maker's, unless a process of its owner is in the image and would trust it:
 * -EPERM, reported.
 */
int rebuild_own(const struct rebuild *r, int fd, uid_t uid, gid_t gid, const char *name);
/* Likewise with the caller's own rights, for what nobody else can have opened. */
void rebuild_give(int fd, uid_t uid, gid_t gid, const char *name);
/* Does a process of the image run as this user? */
bool rebuild_has_user(const struct rebuild *r, uid_t uid);
/* Sets its mode (also with O_PATH), which may need privilege after rebuild_give().  0 or -errno. */
int rebuild_set_mode(int fd, mode_t mode);

/* In a process: makes the userfaultfds that work on its memory.  user_fault.c */
int user_faults_make(struct rebuild *r, const Kcr__Process *process);

/* ---- rights (file_rights.c) ----------------------------------------------------- */

/* Finds the process whose rights open each file, for file_with_rights().  -ENOMEM, reported. */
int file_rights_prepare(struct rebuild *r);
/*
 * One step of a file's kind with the rights of a process that has it: the least
 * privileged one, if there are several.  A file that it could not open itself, but
 * was given, is opened with the caller's own rights if no user can interfere.
 */
int file_with_rights(struct rebuild *r, const Kcr__File *file,
		     int (*step)(struct rebuild *r, const Kcr__File *file));
/* For steps that have no result. */
int file_enter(const struct rebuild *r, const Kcr__File *file);

/* ---- /proc/PID of the image's processes (own_proc.c) ------------------------------ */

/* Does it belong to a thread that is not its process's first: one that does not exist yet? */
bool own_proc_is_of_thread(const struct file_probe *probe);
bool own_proc_has(const struct rebuild *r, const char *path);
/* Likewise for the save: of one of these processes? */
bool own_proc_is_among(const char *path, Kcr__Process *const *process, size_t count);
/* A descriptor in its place until own_proc_install(); for own_proc_has() only. */
int own_proc_stand_in(struct rebuild *r, const Kcr__File *file, const char *path);
/* Replaces it by that of the right process, in `process`; does nothing for other paths. */
int own_proc_install(struct rebuild *r, const Kcr__Process *process, const Kcr__File *file,
		     const char *path, int number);

/* Has any process (or the given one) this file as this descriptor (-1: any)? */
bool rebuild_has_number(const struct rebuild *r, uint32_t id, int number);

static inline bool process_has_number(const Kcr__Process *p, uint32_t id, int number)
{
	for (size_t i = 0; i < p->n_descriptor; i++)
		if (p->descriptor[i]->file_id == id &&
		    (number < 0 || p->descriptor[i]->fd == number))
			return true;
	return false;
}

/* The new PID of a saved process; 0: it is not in the image. */
pid_t rebuild_pid(const struct rebuild *r, pid_t pid);
/*
 * The group that the processes of that one are in now, once all have joined theirs: whatever the
 * image calls a group may be one of strangers.
 */
pid_t rebuild_group(const struct rebuild *r, pid_t group);
/* Likewise of a process, once it exists. */
pid_t rebuild_wait_pid(const struct rebuild *r, pid_t pid);
/* The process whose install() is the first for this file. */
const Kcr__Process *rebuild_first_owner(const struct rebuild *r, uint32_t id);

#endif /* KCR_RESOURCE_FILE_H */
