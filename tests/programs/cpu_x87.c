// SPDX-License-Identifier: GPL-2.0
/*
 * The x87 stack, its control word and MXCSR, live in a loop without system calls.
 */
#include <pthread.h>

#include "check.h"

static volatile uint32_t go;
static const double input[6] = { 1.5, -2.25, 1e300, 3.0000000001, 0.1, -0.0 };
static long double output[6];
static uint16_t control_in = 0x0e7f, control_out;
static uint32_t mxcsr_in = 0x9fc0, mxcsr_out;

static void *spin(void *argument)
{
	__asm__ volatile(
		"fninit\n\t fldcw %[cin]\n\t ldmxcsr %[min]\n\t"
		"fldl %[i0]\n\t fldl %[i1]\n\t fldl %[i2]\n\t fldl %[i3]\n\t fldl %[i4]\n\t fldl %[i5]\n\t"
		"1: cmpl $0, %[go]\n\t je 1b\n\t"
		"fnstcw %[cout]\n\t stmxcsr %[mout]\n\t"
		"fstpt %[o5]\n\t fstpt %[o4]\n\t fstpt %[o3]\n\t fstpt %[o2]\n\t fstpt %[o1]\n\t fstpt %[o0]"
		: [cout] "=m"(control_out), [mout] "=m"(mxcsr_out), [o0] "=m"(output[0]),
		  [o1] "=m"(output[1]), [o2] "=m"(output[2]), [o3] "=m"(output[3]),
		  [o4] "=m"(output[4]), [o5] "=m"(output[5])
		: [go] "m"(go), [cin] "m"(control_in), [min] "m"(mxcsr_in), [i0] "m"(input[0]),
		  [i1] "m"(input[1]), [i2] "m"(input[2]), [i3] "m"(input[3]), [i4] "m"(input[4]),
		  [i5] "m"(input[5])
		: "memory", "cc");
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	NEED(!pthread_create(&thread, NULL, spin, NULL));
	check_sleep_ms(100);
	check_ready();
	check_wait();
	go = 1;
	CHECK(!pthread_join(thread, NULL));
	for (int i = 0; i < 6; i++)
		CHECK(output[i] == (long double)input[i]);
	CHECK(control_out == control_in && mxcsr_out == mxcsr_in);
	return check_end();
}
