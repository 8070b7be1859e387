/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Has the disk begin with the bytes of a file while those behind them are still being written:
 * without it the kernel keeps them until there are many, or until fsync(2), and the disk idles
 * meanwhile.
 *
 * A thread of its own does so: starting to write waits while the disk has all the requests
 * that it can take.  It waits for no byte to be written, and an error is left to fsync(2).  With
 * adaptive compression rate.h sends bytes to the disk instead: that has to know its rate, and so
 * waits.
 */
#ifndef KCR_IMAGE_WRITEBACK_H
#define KCR_IMAGE_WRITEBACK_H

struct writeback;

/* From the file's position on.  NULL: it has no disk, or there is no thread: nothing is done. */
struct writeback *writeback_begin(int fd);
/* More may have been written.  NULL: does nothing, as below. */
void writeback_note(struct writeback *w);
void writeback_end(struct writeback *w);

#endif /* KCR_IMAGE_WRITEBACK_H */
