// SPDX-License-Identifier: GPL-2.0
/* What arch/ says of this processor, and the code that it writes, run here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cpuid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/instruction.h"
#include "arch/registers.h"
#include "arch/restorer.h"
#include "arch/thread.h"
#include "arch/vdso.h"
#include "arch/xstate.h"

static long answer(void)
{
	return 42;
}

static void code(void **state)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *jump = page + ARCH_STUB_LENGTH;
	unsigned int calls = 0;

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	arch_put_stub(page, SYS_getpid);
	arch_put_jump(jump, (uintptr_t)answer);
	for (size_t i = 0; i + ARCH_CALL_LENGTH <= ARCH_STUB_LENGTH; i++)
		calls += arch_is_call(page + i);
	assert_int_equal(calls, 1);
	assert_int_equal(jump[ARCH_JUMP_LENGTH], 0);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(((long (*)(void))(uintptr_t)page)(), getpid());
	assert_int_equal(((long (*)(void))(uintptr_t)jump)(), 42);
	assert_int_equal(arch_far_target((const uint8_t[]){ ARCH_FAR_OPCODE, 0xfe, 0xff, 0xff, 0xff },
					 0x7000), 0x7003);
	munmap(page, 4096);
}

static void vdso(void **state)
{
	(void)state;
	assert_int_equal(arch_vdso_call("__vdso_gettimeofday"), SYS_gettimeofday);
	assert_int_equal(arch_vdso_call("clock_gettime"), SYS_clock_gettime);
	assert_int_equal(arch_vdso_call("__vdso_sgx_enter_enclave"), -1);
}

static void restorer(void **state)
{
	char from[] = "copied", to[sizeof(from)] = "";

	(void)state;
	arch_copy((uintptr_t)to, (uintptr_t)from, sizeof(from));
	assert_string_equal(to, from);
	assert_int_equal(arch_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
	assert_int_equal(arch_system_call(-1, 0, 0, 0, 0, 0, 0), -ENOSYS);
}

static void registers(void **state)
{
	uint64_t regs[sizeof(struct user_regs_struct) / sizeof(uint64_t)];
	struct arch_tls_call call[ARCH_NR_TLS_CALLS];
	struct user_regs_struct named = { .rip = 1, .rax = 2, .rdi = 3, .rsi = 4, .rdx = 5,
					  .fs_base = 6, .gs_base = 7 };

	(void)state;
	memcpy(regs, &named, sizeof(regs));
	assert_int_equal(regs[ARCH_IP], 1);
	assert_int_equal(regs[ARCH_CALL_NR], 2);
	assert_int_equal(regs[ARCH_CALL_ARG0], 3);
	assert_int_equal(regs[ARCH_CALL_ARG1], 4);
	assert_int_equal(regs[ARCH_CALL_ARG2], 5);
	for (size_t i = 0; i < ARCH_NR_SHOWN; i++)
		assert_true(arch_shown[i].name && arch_shown[i].place < sizeof(regs) / 8);
	arch_tls_calls(regs, call);
	assert_int_equal(call[0].argument[1], 6);
	assert_int_equal(call[1].argument[1], 7);
	assert_non_null(arch_thread_pointer());
}

static void lengths(void **state)
{
	uint8_t area[1024] = { 0 };

	(void)state;
	assert_false(arch_xstate_has_length(568));
	assert_true(arch_xstate_has_length(576));
	assert_false(arch_xstate_has_length(580));
	assert_true(arch_xstate_has_length(64 << 10));
	assert_false(arch_xstate_has_length((64 << 10) + 8));
	assert_true(arch_xstate_has_form(area));
	area[512] = 7;			/* features, which are no part of the form */
	assert_true(arch_xstate_has_form(area));
	assert_int_equal(arch_xstate_features(area, 519), 0);
	assert_int_equal(arch_xstate_features(area, 520), 7);
	area[520] = 1;			/* compacted */
	assert_false(arch_xstate_has_form(area));
	area[520] = 0;
	area[575] = 1;
	assert_false(arch_xstate_has_form(area));
}

static void names(void **state)
{
	char text[64];

	(void)state;
	assert_string_equal(arch_xstate_names(0, text, sizeof(text)), "");
	assert_string_equal(arch_xstate_names(0x2e7, text, sizeof(text)), "x87 SSE AVX AVX-512 PKRU");
	assert_string_equal(arch_xstate_names(1ull << 63 | 3, text, sizeof(text)), "x87 SSE 63");
	assert_string_equal(arch_xstate_names(~0ull, text, 5), "x87 ");
	assert_non_null(strstr(arch_xstate_names(arch_xstate_enabled(), text, sizeof(text)), "SSE"));
}

/* A state from elsewhere becomes one that can be loaded here. */
static void loading(void **state)
{
	uint32_t size = arch_xstate_size(), mxcsr;
	size_t length = size + 4096;
	uint8_t *here = calloc(1, size), *there = calloc(1, length);

	(void)state;
	assert_int_equal(arch_xstate_enabled() & 3, 3);
	assert_true(arch_xstate_has_length(size));
	memset(there, 0xff, length);
	arch_xstate_put(here, there, length, NULL);
	memcpy(&mxcsr, here + 24, sizeof(mxcsr));
	assert_int_equal(mxcsr & ~0x2ffff, 0);	/* bit 17: AMD's */
	assert_true(arch_xstate_has_form(here));
	assert_memory_equal(here + 32, there + 32, 480);
	there[512] = 3;
	memset(there + 513, 0, 7);
	assert_true(arch_xstate_has_layout(there, length, NULL));
	there[512] = 7;
	assert_false(arch_xstate_has_layout(there, length, NULL));
	assert_true(arch_xstate_has_layout(there, size, NULL));
	there[512] = 0xe7;		/* AVX-512, which is not at the same place everywhere */
	assert_true(arch_xstate_has_layout(there, size, NULL));
	assert_false(arch_xstate_has_layout(there, size - 8, NULL));
	arch_xstate_put(here, there, 576, NULL);
	free(here);
	free(there);
}

/* The parts of a state in the layout of another processor, the last one first, come to their places. */
static void layouts(void **state)
{
	struct arch_xstate_layout here, there = { 0 };
	uint8_t *from = calloc(1, 64 << 10), *to = calloc(1, arch_xstate_size());
	uint32_t at = 576 + 64;
	uint64_t features = 3;

	(void)state;
	arch_xstate_layout(&here);
	for (int bit = ARCH_XSTATE_BITS - 1; bit > 1; bit--) {
		if (!here.part[bit].length)
			continue;
		there.part[bit] = (struct arch_xstate_part){ at, here.part[bit].length };
		assert_true(arch_xstate_has_part(bit, at, here.part[bit].length));
		features |= 1ull << bit;
		memset(from + at, bit, here.part[bit].length);
		at += here.part[bit].length + 64;
	}
	memcpy(from + 512, &features, sizeof(features));
	assert_true(arch_xstate_has_layout(from, at, &there));
	arch_xstate_put(to, from, at, &there);
	assert_memory_equal(to + 512, &features, sizeof(features));
	for (int bit = 2; bit < ARCH_XSTATE_BITS; bit++) {
		if (!here.part[bit].length)
			continue;
		assert_memory_equal(to + here.part[bit].offset, from + there.part[bit].offset,
				    here.part[bit].length);
		assert_false(arch_xstate_has_layout(from, there.part[bit].offset, &there));
		there.part[bit].length--;
		assert_false(arch_xstate_has_layout(from, at, &there));
		there.part[bit].length = 0;
		assert_false(arch_xstate_has_layout(from, at, &there));
		there.part[bit].length = here.part[bit].length;
	}
	assert_false(arch_xstate_has_part(1, 576, 8));
	assert_false(arch_xstate_has_part(2, 512, 8));
	assert_false(arch_xstate_has_part(2, 576, 0));
	assert_false(arch_xstate_has_part(2, UINT32_MAX, 8));
	assert_false(arch_xstate_has_part(2, 576, UINT32_MAX));
	assert_false(arch_xstate_has_part(63, 576, 8));
	free(from);
	free(to);
}

/* Rights for memory without a protection key, where there are such keys. */
static void key_0(void **state)
{
	static uint8_t area[4096];
	uint32_t size = 0, at = 0, c, d, pkru;
	uint64_t features = 1 << 9;

	(void)state;
	if (!__get_cpuid_count(0xd, 9, &size, &at, &c, &d) || !size)
		skip();
	pkru = 0x55555554;		/* what the kernel gives to a new program */
	memcpy(area + at, &pkru, sizeof(pkru));
	assert_false(arch_xstate_locks_memory(area, sizeof(area)));
	memcpy(area + 512, &features, sizeof(features));
	assert_false(arch_xstate_locks_memory(area, sizeof(area)));
	for (uint32_t locked = 1; locked < 4; locked++) {
		pkru = locked;
		memcpy(area + at, &pkru, sizeof(pkru));
		assert_true(arch_xstate_locks_memory(area, sizeof(area)));
	}
	assert_false(arch_xstate_locks_memory(area, at));	/* it ends before */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code),
		cmocka_unit_test(vdso),
		cmocka_unit_test(restorer),
		cmocka_unit_test(registers),
		cmocka_unit_test(lengths),
		cmocka_unit_test(names),
		cmocka_unit_test(loading),
		cmocka_unit_test(layouts),
		cmocka_unit_test(key_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
