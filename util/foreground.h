/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The terminal of cr_restart and a program in a process group of its own: to
 * the shell the job is cr_restart, but the program's group reads the terminal
 * and gets its Ctrl-C.
 */
#ifndef KCR_UTIL_FOREGROUND_H
#define KCR_UTIL_FOREGROUND_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Call before the program runs, whose leader is our child.  `holder` is the group that
 * gets the terminal if we are in the foreground; 0: none yet.  Nothing is done, now or
 * later, if the child is in our group or another session, or if we have no
 * terminal or were started in the background by a shell without job control.
 */
void foreground_share(pid_t child, pid_t holder);

/* Does the program get the terminal's stop signals, so that we must follow its stops? */
bool foreground_is_shared(void);

/*
 * The program has stopped: so does our group, for the shell to see, until it is
 * continued; then the program is, with the terminal if the shell gave it to us.
 * SIGCONT must be blocked.
 */
void foreground_stop(int signal_number);

/* Takes the terminal back, unless another group has it by now. */
void foreground_end(void);

#endif /* KCR_UTIL_FOREGROUND_H */
