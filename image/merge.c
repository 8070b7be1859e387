// SPDX-License-Identifier: GPL-2.0
/*
 * Copies an image to a new file that needs no other: description and contents as they
 * are, and each page from the file of the chain that has it.  What is copied is verified;
 * pages are compressed anew.
 */
#include "image/merge.h"

#include <errno.h>

#include "report/report.h"

/* All but the list of ancestors. */
static int write_preamble(struct context_writer *w, const struct context *c)
{
	Kcr__Preamble preamble = *c->preamble;

	preamble.n_ancestor = 0;
	preamble.ancestor = NULL;
	return context_write_message(w, CONTEXT_PREAMBLE, &preamble.base);
}

static int write_description(struct context_writer *w, const struct context *c)
{
	int err = write_preamble(w, c);

	for (size_t i = 0; !err && i < c->nr_files; i++)
		err = context_write_message(w, CONTEXT_FILE, &c->file[i]->base);
	for (size_t i = 0; !err && i < c->nr_processes; i++)
		err = context_write_message(w, CONTEXT_PROCESS, &c->process[i]->base);
	return err;
}

static int copy_contents(struct context_writer *w, struct context_reader *r)
{
	struct context_item item;
	int more, err;

	while ((more = context_read(r, &item)) > 0 && item.type == CONTEXT_CONTENT) {
		err = context_write_content(w, item.file_id, item.offset, item.data, item.length);
		if (err)
			return err;
	}
	if (more < 0)
		return more;
	context_unread(r);
	return 0;
}

int merge_write(struct context_reader *last, const struct context *context,
		const struct chain *chain, enum context_compression compression, int fd)
{
	struct context_page_sink sink;
	struct context_writer *w;
	uint64_t features = context_needs(context->process, context->nr_processes);
	int err;

	if (context_reader_features(last) & (CONTEXT_HAS_SHARED | CONTEXT_HAS_DUPLICATES))
		return report_fail(-EOPNOTSUPP, "an image made with --dedup cannot be merged: it "
				   "has pages that stand for several");
	for (size_t i = 0; i < context->nr_files; i++)
		features |= context_file_needs(context->file[i]);
	err = context_writer_new(&w, fd, features);
	if (err)
		return err;
	context_page_sink(&sink, w);
	err = write_description(w, context);
	if (!err)
		err = copy_contents(w, last);
	if (!err)
		err = chain_move(&(struct pages_flow) {
			.sink = &sink.sink, .work = PAGES_RECODE, .compression.kind = compression,
		}, last, chain);
	if (!err)
		err = context_writer_finish(w);
	context_writer_free(w);
	return err;
}
