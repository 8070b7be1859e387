// SPDX-License-Identifier: GPL-2.0
/*
 * READY GO MEGABYTES THREADS [quiet]: memory full of patterns, at work from READY to GO
 * (lazy_work.h); `quiet`: nothing is touched meanwhile.
 */
#include "lazy_work.h"

int main(int argc, char **argv)
{
	unsigned int nr_workers;
	bool quiet = argc > 5 && !strcmp(argv[5], "quiet");

	if (argc == 3 && !strcmp(argv[1], "exec"))
		return 10 + (int)(strtoul(argv[2], NULL, 10) % 100);
	check_begin(argc, argv);
	NEED(argc > 4);
	own_path = argv[0];
	nr_workers = (unsigned int)atoi(argv[4]);
	NEED(nr_workers && nr_workers <= MAX_THREADS);
	for (unsigned int t = 0; t < nr_workers; t++) {
		struct worker *w = &workers[t];

		w->seed = t + 1;
		w->next = (t + 1) * 0x100000000ul;
		w->pages = (size_t)atoi(argv[3]) * 256 / nr_workers / PIECES;
		for (size_t i = 0; i < PIECES; i++)
			make(w, &w->piece[i]);
	}
	for (unsigned int t = 0; t < nr_workers && !quiet; t++)
		NEED(!pthread_create(&workers[t].thread, NULL, work, &workers[t]));
	check_ready();
	check_wait();
	stop = true;
	for (unsigned int t = 0; t < nr_workers; t++)
		if (quiet)
			look_at_all(&workers[t]);
		else
			CHECK(!pthread_join(workers[t].thread, NULL));
	return check_end();
}
