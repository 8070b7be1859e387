/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line of mpirun: which of its words are options, where each
 * program begins, and the same with a proxy before every program.
 */
#ifndef LAUNCH_COMMAND_H
#define LAUNCH_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct command {
	char **options;		/* those before the first program, with their values */
	char **program;		/* all from the first program on; NULL: there is none */
	char **proxied;		/* everything, `inserted` before each program */
	char **settings;	/* what --mca and its like say, as NAME=VALUE, in this order */
	char **own;		/* options of cr_mpirun, as NAME=VALUE; also among `options` */
	size_t *hosts;		/* words of `proxied`: a list of hosts, or a file with one */
	size_t nr_hosts;
	size_t output;		/* word of `proxied`: the folder for the ranks' output; 0: none */
	int major;		/* of Open MPI; 0: srun's */
};

/*
 * The parameter with names of variables for all ranks.  mpirun of 4.1 takes no -x beside it: it is
 * not in `proxied` then, but in `settings` (and `options`).
 */
#define COMMAND_VARIABLES "mca_base_env_list"

/*
 * Splits `arguments` (without mpirun itself) as Open MPI's release `major` does.  `inserted` is a
 * NULL-terminated vector, as are all that are made.  0, or -errno with a message (report.h).
 */
int command_split(struct command *c, char *const *arguments, int major, char *const *inserted);
void command_free(struct command *c);

/* Takes the option of cr_mpirun itself at *at, if it is one, with its value: 1, 0 or -errno. */
int command_take_own(struct command *c, char *const **at);

/* The last value of this option of cr_mpirun; "": it has none; NULL: it was not given. */
const char *command_own(const struct command *c, const char *name);

/* Is this word the option `name`, with one or two dashes before and perhaps a =VALUE behind? */
bool command_is_option(const char *word, const char *name);

/* The last value of a parameter there, else that of OMPI_MCA_`name` in the environment; NULL. */
const char *command_parameter(const struct command *c, const char *name);

#endif /* LAUNCH_COMMAND_H */
