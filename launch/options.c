// SPDX-License-Identifier: GPL-2.0
/* Options of cr_mpirun.  See options.h. */
#include "launch/options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/snapshot.h"
#include "proc/bandwidth.h"
#include "proc/duration.h"
#include "proc/signal_name.h"
#include "report/report.h"

#define RECOVERIES	10	/* --recover without a number */
#define SILENCE_S	3	/* where the job recovers from the loss of a node */
#define SILENCE_LEAST_S	2	/* more than a daemon takes to notice, in whole seconds */
#define SECONDS_MOST	86400

/* The option, or the parameter of that name; NULL: neither, or it is empty. */
static const char *text_of(const struct command *c, const char *option, const char *parameter)
{
	const char *value = option ? command_own(c, option) : NULL;

	value = value ?: command_parameter(c, parameter);
	return value && *value ? value : NULL;
}

static int read_number(const char *name, const char *text, unsigned int least, unsigned int *out)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*end || *text == '-' || number < least || number > INT_MAX)
		return report_fail(-EINVAL, "%s is a number from %u on, not \"%s\"", name, least, text);
	*out = number;
	return 0;
}

static int read_time(const char *name, const char *text, uint64_t *ns)
{
	int64_t seconds = duration_parse(text);

	if (seconds < 1)
		return report_fail(-EINVAL, "%s is a time of a second or more (90, 15m, 12h, HH:MM:SS), "
				   "not \"%s\"", name, text);
	*ns = seconds * 1000000000ull;
	return 0;
}

static int read_interval(struct options *o, const struct command *c)
{
	const char *interval = command_own(c, "interval"), *mttf = command_own(c, "mttf");
	bool automatic = interval && !strcmp(interval, "auto");

	if (automatic && !mttf)
		return report_fail(-EINVAL, "--interval=auto needs the mean time to failure: --mttf=TIME");
	if (mttf && !automatic)
		return report_fail(-EINVAL, "--mttf is for --interval=auto");
	if (automatic)
		return read_time("--mttf", mttf, &o->mttf_ns);
	return interval ? read_time("--interval", interval, &o->interval_ns) : 0;
}

static int read_snapshots(struct options *o, const struct command *c)
{
	const char *path = text_of(c, "save", "schizo_cr_file");
	const char *keep = text_of(c, "keep", "schizo_cr_keep");
	const char *still = text_of(c, NULL, "schizo_cr_snapshot");
	char name[32];

	o->interfaces = text_of(c, NULL, "schizo_cr_if_include");
	o->stand_still = still && !atoi(still);
	o->local = text_of(c, "local", "schizo_cr_local");
	if (o->local && *o->local != '/')
		return report_fail(-EINVAL, "--local (schizo_cr_local) is a path from / on, not %s",
				   o->local);
	snprintf(name, sizeof(name), "context.%d", getpid());
	o->path = snapshot_name(path ?: name);
	o->keep = 1;
	if (!o->path)
		return -ENOMEM;
	return keep ? read_number("--keep (schizo_cr_keep)", keep, 1, &o->keep) : 0;
}

static int read_increments(struct options *o, const struct command *c)
{
	const char *every = command_own(c, "full-every"), *wanted = command_own(c, "incremental");
	char argument[32];
	unsigned int number;
	int err;

	if (!wanted)
		return every ? report_fail(-EINVAL, "--full-every is for --incremental") : 0;
	if (*wanted)
		return report_fail(-EINVAL, "--incremental has no value: what has changed since the last "
				   "snapshot of the name is saved");
	o->incremental = true;
	err = strings_add(&o->arguments, "--incremental");
	if (err || !every)
		return err;
	err = read_number("--full-every", every, 1, &number);
	snprintf(argument, sizeof(argument), "--full-every=%u", number);
	return err ?: strings_add(&o->arguments, argument);
}

static int read_bandwidth(struct options *o, const struct command *c)
{
	const char *text = command_own(c, "bandwidth");
	uint64_t rate = text ? bandwidth_parse(text) : 0;
	char argument[48];

	if (!text)
		return 0;
	if (!rate)
		return report_fail(-EINVAL, "--bandwidth is a number of bytes per second, from 1K on (800K, 100M, "
				   "1.5G), not \"%s\"", text);
	snprintf(argument, sizeof(argument), "--bandwidth=%" PRIu64, rate);
	return strings_add(&o->arguments, argument);
}

static int read_recovery(struct options *o, const struct command *c)
{
	const char *recover = command_own(c, "recover");

	o->from_start = command_own(c, "recover-from-start");
	o->exits = command_own(c, "recover-exit");
	o->recoveries = recover || o->from_start ? RECOVERIES : 0;
	if (o->exits && !o->recoveries)
		return report_fail(-EINVAL, "--recover-exit is for --recover");
	return recover && *recover ? read_number("--recover", recover, 1, &o->recoveries) : 0;
}

static int read_seconds(const struct command *c, const char *option, int least, unsigned int *out)
{
	const char *text = command_own(c, option);
	int64_t seconds = text ? duration_parse(text) : 0;

	if (text && (seconds < least || seconds > SECONDS_MOST))
		return report_fail(-EINVAL, "--%s is a time from %d seconds to a day, not \"%s\"",
				   option, least, text);
	*out = seconds;
	return 0;
}

static int read_nodes(struct options *o, const struct command *c)
{
	const char *spares = command_own(c, "spares");
	int err = read_seconds(c, "node-timeout", SILENCE_LEAST_S, &o->silence_s);

	if (!err && !o->silence_s && o->recoveries)
		o->silence_s = SILENCE_S;
	if (!err)
		err = read_seconds(c, "answer-timeout", 1, &o->answer_s);
	if (!err)
		err = read_seconds(c, "start-timeout", 1, &o->start_s);
	if (!err && (spares || o->start_s) && !o->recoveries)
		err = report_fail(-EINVAL, "--%s is for --recover", spares ? "spares" : "start-timeout");
	return err || !spares ? err : read_number("--spares", spares, 0, &o->spares);
}

int options_read(struct options *o, const struct command *c)
{
	const char *name = text_of(c, NULL, "schizo_cr_signal");
	int err;

	memset(o, 0, sizeof(*o));
	o->signal = name ? signal_number(name) : 0;
	if (name && o->signal <= 0)
		return report_fail(-EINVAL, "schizo_cr_signal: there is no signal %s", name);
	if (o->signal == SIGKILL || o->signal == SIGSTOP || o->signal == SIGCHLD)
		return report_fail(-EINVAL, "schizo_cr_signal: %s cannot ask for a checkpoint", name);
	err = read_interval(o, c);
	if (!err)
		err = read_snapshots(o, c);
	if (!err)
		err = read_increments(o, c);
	if (!err)
		err = read_bandwidth(o, c);
	if (!err)
		err = read_recovery(o, c);
	return err ?: read_nodes(o, c);
}

void options_free(struct options *o)
{
	free(o->path);
	o->path = NULL;
	strings_free(o->arguments);
	o->arguments = NULL;
}
