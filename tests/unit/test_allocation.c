// SPDX-License-Identifier: GPL-2.0
/* The nodes of a job that Slurm makes larger or smaller; its scontrol is simulated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/allocation.h"

static char folder[] = "/tmp/kcr-allocation-XXXXXX";

/* "show hostnames" makes a line of each letter of the list. */
static int set_up(void **state)
{
	char path[128], *all;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/scontrol", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("#!/bin/sh\ncase \"$*\" in\n"
	      "'show hostnames '*) echo \"$SLURM_JOB_NODELIST\" | grep -o '[a-z]' ;;\n"
	      "'--oneliner --details show job 7') echo \"$SAID\" ;;\nesac\n", file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0700), 0);
	assert_true(asprintf(&all, "%s:%s", folder, getenv("PATH")) > 0);
	setenv("PATH", all, 1);
	free(all);
	return 0;
}

static int clean(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void set(const char *nodes, const char *tasks, const char *said)
{
	setenv("SLURM_JOB_ID", "7", 1);
	setenv("SLURM_JOB_NODELIST", nodes, 1);
	setenv("SLURM_NODELIST", nodes, 1);
	setenv("SLURM_JOB_NUM_NODES", "2", 1);
	setenv("SLURM_TASKS_PER_NODE", tasks, 1);
	unsetenv("SLURM_NTASKS_PER_NODE");
	unsetenv("SLURM_CPUS_PER_TASK");
	setenv("SAID", said, 1);
}

static void expect(const char *nodes, const char *number, const char *tasks, const char *hosts)
{
	char *list;

	allocation_renew();
	assert_string_equal(getenv("SLURM_JOB_NODELIST"), nodes);
	assert_string_equal(getenv("SLURM_NODELIST"), nodes);
	assert_string_equal(getenv("SLURM_JOB_NUM_NODES"), number);
	assert_string_equal(getenv("SLURM_TASKS_PER_NODE"), tasks);
	list = allocation_hosts();
	assert_string_equal(list, hosts);
	free(list);
}

#define JOB "JobId=7 ReqNodeList=[xy] ExcNodeList=(null) NodeList="

static void nodes_are_added(void **state)
{
	(void)state;
	set("[ab]", "2(x2)", JOB "[abcd] BatchHost=a JOB_GRES=(null) Nodes=[ab] CPU_IDs=0-3 Mem=0 GRES= "
	    "Nodes=c CPU_IDs=0-1,4,6-7 Mem=0 GRES= Nodes=d CPU_IDs=3 Mem=0 GRES=");
	expect("[abcd]", "4", "2(x2),5,1", "a:2,b:2,c:5,d:1");
	assert_string_equal(getenv("SLURM_JOB_CPUS_PER_NODE"), "4(x2),5,1");
	assert_string_equal(getenv("SLURM_NNODES"), "4");

	set("[ab]", "2,1", JOB "[abc] Nodes=[abc] CPU_IDs=0-3 Mem=0");
	setenv("SLURM_CPUS_PER_TASK", "3", 1);
	expect("[abc]", "3", "2,1(x2)", "a:2,b:1,c:1");
	set("[bc]", "2,1", JOB "[abc] Nodes=[abc] CPU_IDs=0-3 Mem=0");
	setenv("SLURM_NTASKS_PER_NODE", "3", 1);
	expect("[abc]", "3", "3,2,1", "a:3,b:2,c:1");
}

static void nodes_are_gone(void **state)
{
	(void)state;
	set("[abc]", "3,1,2", JOB "[ac] Nodes=[ac] CPU_IDs=0-3 Mem=0");
	expect("[ac]", "2", "3,2", "a:3,c:2");
}

/* As where a job has taken the nodes of another one over. */
static void processors_are_not_known(void **state)
{
	(void)state;
	set("[ab]", "1,2", JOB "[abc] Nodes=[ab] CPU_IDs=0-3 Mem=0");
	setenv("SLURM_JOB_CPUS_PER_NODE", "6,7", 1);
	expect("[abc]", "3", "1,2(x2)", "a:1,b:2,c:2");
	assert_string_equal(getenv("SLURM_JOB_CPUS_PER_NODE"), "4(x2),7");
	set("[ab]", "1,2", JOB "[abc] BatchHost=a");
	setenv("SLURM_NTASKS_PER_NODE", "4", 1);
	expect("[abc]", "3", "1,2,4", "a:1,b:2,c:4");
}

static void nothing_changes(void **state)
{
	(void)state;
	set("[ab]", "1(x2)", JOB "[ab] Nodes=[ab] CPU_IDs=0-3 Mem=0");
	expect("[ab]", "2", "1(x2)", "a:1,b:1");
	set("[ab]", "1(x2)", JOB "(null) BatchHost=a");
	expect("[ab]", "2", "1(x2)", "a:1,b:1");
	set("[ab]", "1(x2)", "");
	expect("[ab]", "2", "1(x2)", "a:1,b:1");
	set("[ab]", "1(x2)", JOB "[abc] Nodes=[abc] CPU_IDs=0");
	unsetenv("SLURM_JOB_ID");
	expect("[ab]", "2", "1(x2)", "a:1,b:1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_added),
		cmocka_unit_test(nodes_are_gone),
		cmocka_unit_test(processors_are_not_known),
		cmocka_unit_test(nothing_changes),
	};

	return cmocka_run_group_tests(tests, set_up, clean);
}
