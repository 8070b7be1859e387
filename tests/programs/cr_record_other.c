// SPDX-License-Identifier: GPL-2.0
/*
 * The record of a libcr of another release, which says that its program was restarted
 * seven times: `later` is a page longer, `short` than any, `wrong` than its mapping.
 * Makes the file `again` when it says eight.
 */
#include <sys/mman.h>

#include "libcr/record.h"
#include "tests/programs/check.h"

static struct cri_record *make_record(size_t length, uint32_t size)
{
	int fd = memfd_create(CRI_RECORD_FILE, 0);
	struct cri_record *record;

	NEED(fd >= 0 && !ftruncate(fd, length));
	record = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(record != MAP_FAILED);
	close(fd);
	record->head = (struct cri_record_head){ .magic = CRI_RECORD_MAGIC, .size = size };
	record->restart = (struct cri_record_restart){ .count = 7, .source = "/somewhere" };
	return record;
}

int main(int argc, char **argv)
{
	size_t later = sizeof(struct cri_record) + CRI_RECORD_PAGE;
	const char *what = argv[argc - 1];
	struct cri_record *record;

	check_begin(argc, argv);
	if (!strcmp(what, "later"))
		record = make_record(later, later);
	else if (!strcmp(what, "short"))
		record = make_record(later, CRI_RECORD_FIRST_SIZE - CRI_RECORD_PAGE);
	else
		record = make_record(later, later + CRI_RECORD_PAGE);
	check_ready();
	while (!check_gone()) {
		check_sleep_ms(20);
		if (record->restart.count == 8)
			close(open("again", O_CREAT | O_WRONLY, 0666));
	}
	return check_end();
}
