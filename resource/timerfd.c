// SPDX-License-Identifier: GPL-2.0
/*
 * timerfd_create(2): remaining time, interval and unread expirations.
 * A timer set to a time of day keeps that; any other runs for the time left,
 * as its clock may be that of another boot.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "proc/clock.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/attribute.h"

#define SET_TICKS	_IOW('T', 0, __u64)	/* TFD_IOC_SET_TICKS */
#define SECOND		1000000000ull
#define INFO_SIZE	512
#define INTERRUPT_US	1000			/* more than an interrupt takes */

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[timerfd]");
}

static bool is_time_of_day(int clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_ALARM || clock == CLOCK_TAI;
}

/* "(seconds, nanoseconds)" */
static uint64_t parse_time(const char *text)
{
	unsigned long long s, ns;

	return text && sscanf(text, "(%llu, %llu)", &s, &ns) == 2 ? s * SECOND + ns : 0;
}

/* Reads fdinfo again: probe->fdinfo is older, and the clocks have gone on. */
static bool look(const struct file_probe *probe, char text[INFO_SIZE])
{
	char name[32];

	snprintf(name, sizeof(name), "fdinfo/%d", probe->fd);
	return proc_read(PROC_SELF, name, text, INFO_SIZE) > 0;
}

/*
 * A periodic timer that has expired does not run until it is read or queried:
 * querying its time counts the periods since and restarts it.  No time
 * left and no expirations is a timer that is not set, or one whose interrupt
 * is just being handled on another CPU: looking again later distinguishes them.
 */
static int save_without_rest(const struct file_probe *probe, Kcr__TimerFd *timer)
{
	char text[INFO_SIZE];
	struct itimerspec spec;
	const char *ticks;

	if (!timer->ticks)
		usleep(INTERRUPT_US);
	if (timerfd_gettime(probe->fd, &spec) || !look(probe, text))
		return file_save_error(probe, -errno, "cannot query its time");
	ticks = fdinfo_value(text, "ticks:");
	if (ticks)
		timer->ticks = strtoull(ticks, NULL, 10);
	timer->value_ns = spec.it_value.tv_sec * SECOND + spec.it_value.tv_nsec;
	/* Setting a timer clears its ticks: a periodic one with ticks runs, and is overdue. */
	if (!timer->value_ns && timer->interval_ns && timer->ticks)
		timer->value_ns = 1;
	return 0;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	int err;
	char text[INFO_SIZE];
	const char *info = look(probe, text) ? text : probe->fdinfo;
	const char *clock = fdinfo_value(info, "clockid:");
	const char *ticks = fdinfo_value(info, "ticks:");
	const char *flags = fdinfo_value(info, "settime flags:");
	Kcr__TimerFd *timer = file_new_kind(file, KCR__FILE__KIND_TIMERFD, sizeof(*timer));

	if (!timer)
		return -ENOMEM;
	if (!clock || !ticks || !flags)
		return file_unsupported(t, "a timerfd that this kernel gives no information on");
	timer->clock = atoi(clock);
	timer->ticks = strtoull(ticks, NULL, 10);
	timer->settime_flags = strtoul(flags, NULL, 8);
	timer->value_ns = parse_time(fdinfo_value(info, "it_value:"));
	timer->interval_ns = parse_time(fdinfo_value(info, "it_interval:"));
	if (!timer->value_ns && (timer->interval_ns || !timer->ticks)) {
		err = save_without_rest(probe, timer);
		if (err)
			return err;
	}
	if (timer->value_ns && timer->settime_flags & TFD_TIMER_ABSTIME &&
	    is_time_of_day(timer->clock))
		timer->value_ns += clock_ns(timer->clock);
	return 0;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

static int set(int fd, const Kcr__File *file)
{
	const Kcr__TimerFd *timer = file->timerfd;
	int flags = timer->settime_flags & (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
	uint64_t value = timer->value_ns, ticks = timer->ticks;
	struct itimerspec spec;

	if (value && flags & TFD_TIMER_ABSTIME && !is_time_of_day(timer->clock))
		value += clock_ns(timer->clock);
	spec.it_value = to_timespec(value);
	spec.it_interval = to_timespec(timer->interval_ns);
	if (timerfd_settime(fd, flags, &spec, NULL))
		return rebuild_error(file, -errno, "cannot set it");
	/* Not possible without CONFIG_CHECKPOINT_RESTORE; the next expiration still comes. */
	if (ticks && ioctl(fd, SET_TICKS, &ticks))
		report_warn("%llu expirations of a timerfd are lost: this kernel cannot restore them",
			    (unsigned long long)ticks);
	return 0;
}

/* Alarm clocks need a privilege; without it the timer just cannot wake the machine. */
static int make(int clock)
{
	int fd = timerfd_create(clock, TFD_CLOEXEC);

	if (fd >= 0 || errno != EPERM ||
	    (clock != CLOCK_REALTIME_ALARM && clock != CLOCK_BOOTTIME_ALARM))
		return fd < 0 ? -errno : fd;
	report_warn("a timerfd of an alarm clock cannot wake the machine any more: that needs "
		    "CAP_WAKE_ALARM");
	fd = timerfd_create(clock == CLOCK_REALTIME_ALARM ? CLOCK_REALTIME : CLOCK_BOOTTIME, TFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_timerfd(struct rebuild *r, const Kcr__File *file)
{
	int fd = make(file->timerfd->clock);

	if (fd < 0)
		return rebuild_error(file, fd, "timerfd_create");
	return rebuild_put(r, file->id, fd);
}

/* As late as possible, so that the time left is still left. */
static int complete(struct rebuild *r, const Kcr__File *file)
{
	return set(r->file_fd[file->id - 1], file);
}

const struct file_kind file_kind_timerfd = {
	.kind = KCR__FILE__KIND_TIMERFD,
	.name = "timerfd",
	.match = match,
	.save = save,
	.open = open_timerfd,
	.complete = complete,
};
