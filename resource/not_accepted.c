// SPDX-License-Identifier: GPL-2.0
/* What TCP and Unix sockets share about connections that are not accepted yet. */
#include "resource/not_accepted.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"

#define LOOK_MS	10
#define LOOKS	50

int not_accepted_add(not_accepted_list *list, size_t *count, uint32_t client, bool ended)
{
	not_accepted_list more = realloc(*list, (*count + 1) * sizeof(*more));
	Kcr__NotAccepted *one = malloc(sizeof(*one));

	if (more)
		*list = more;
	if (!more || !one) {
		free(one);
		return report_errno(-ENOMEM, "saving a socket");
	}
	kcr__not_accepted__init(one);
	one->has_file_id = client;
	one->file_id = client;
	one->has_ended = one->ended = ended;
	more[(*count)++] = one;
	return 0;
}

void not_accepted_clear(not_accepted_list *list, size_t *count)
{
	for (size_t i = 0; i < *count; i++)
		kcr__not_accepted__free_unpacked((*list)[i], NULL);
	*count = 0;
}

bool not_accepted_wait(const struct file_table *t, int patience)
{
	return file_table_is_dry(t) && patience < LOOKS && !usleep(LOOK_MS * 1000);
}

int not_accepted_refuse(struct file_table *t, const struct file_probe *probe, const char *kind,
			const char *what)
{
	if (!file_table_is_dry(t))
		return file_save_error(probe, -EBUSY, "%s %s has not been accepted yet", kind, what);
	return file_unsupported(t, "%s %s that the program has yet to accept", kind, what);
}
