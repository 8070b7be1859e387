/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the ranks have written into files of the launcher before they were started again.  srun
 * appends to them; mpirun of 4.1 would empty those of --output-filename, and gets another folder.
 */
#ifndef LAUNCH_OUTPUT_H
#define LAUNCH_OUTPUT_H

#include "launch/command.h"

/*
 * Makes FOLDER in c->proxied FOLDER.N, with an N from `least` and 1 on of which there is none.
 * Options of mpirun behind the name, as in FOLDER:nocopy, stay.  mpirun of 5 has a folder for each
 * of its jobs there.  0, or -errno with a message (report.h).
 */
int output_keep(struct command *c, unsigned int least);

#endif /* LAUNCH_OUTPUT_H */
