/* SPDX-License-Identifier: GPL-2.0 */
/* What an option of mpirun or srun is about: a new one replaces all old ones on its topic. */
#ifndef JOB_TOPIC_H
#define JOB_TOPIC_H

enum topic { TOPIC_NONE, TOPIC_COUNT, TOPIC_HOSTS, TOPIC_MAP, TOPIC_BIND, TOPIC_RANK, TOPIC_CWD };

#endif /* JOB_TOPIC_H */
