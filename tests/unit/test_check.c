// SPDX-License-Identifier: GPL-2.0
/*
 * Context files whose checksums are right and whose messages make no sense:
 * context_load() refuses each of them, naming the fault.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "image/context.h"
#include "refused.h"

static void counts(void **state)
{
	(void)state;
	refused_expect(NULL);
	REFUSED(sample.preamble.nr_files, SAMPLE_FILES + 1, "missing");
	REFUSED(sample.preamble.nr_files, SAMPLE_FILES - 1, "unexpected file id");
	REFUSED(sample.preamble.nr_processes, SAMPLE_PROCESSES + 1, "missing");
	REFUSED(sample.preamble.nr_processes, 1, "more processes");
	REFUSED(sample.preamble.nr_processes, UINT32_MAX, "impossible counts");
	REFUSED(sample.file[1].id, 3, "unexpected file id");
	REFUSED(sample.preamble.root[0], SAMPLE_SHARING_PID, "topmost");
	REFUSED(sample.preamble.root[0], 12345, "topmost");
}

static void files(void **state)
{
	Kcr__UnixSocket *unix_socket;
	Kcr__EpollEntry entry = KCR__EPOLL_ENTRY__INIT, *entries = &entry;
	Kcr__EpollBusyPoll busy = KCR__EPOLL_BUSY_POLL__INIT;
	Kcr__Epoll epoll = KCR__EPOLL__INIT;
	Kcr__UnixSocket peerless = KCR__UNIX_SOCKET__INIT;
	Kcr__File saved = sample.file[2];

	(void)state;
	REFUSED(sample.file[2].kind_case, KCR__FILE__KIND__NOT_SET, "unknown kind");
	epoll.n_entry = 1;
	epoll.entry = &entries;
	entry.file_id = SAMPLE_FILES + 1;
	sample.file[2].kind_case = KCR__FILE__KIND_EPOLL;
	sample.file[2].epoll = &epoll;
	refused_expect("epoll entry");
	entry.file_id = 1;
	refused_expect(NULL);
	epoll.busy_poll = &busy;
	refused_expect(NULL);
	REFUSED(busy.usecs, 0x80000000, "busy polling");
	REFUSED(busy.budget, 0x10000, "busy polling");
	unix_socket = &peerless;
	unix_socket->has_peer_file_id = 1;
	unix_socket->peer_file_id = 1;		/* no socket */
	sample.file[2].kind_case = KCR__FILE__KIND_UNIX_SOCKET;
	sample.file[2].unix_socket = unix_socket;
	refused_expect("peer");
	unix_socket->peer_file_id = 0;
	refused_expect(NULL);
	sample.file[2] = saved;
	REFUSED(sample.file[3].shared_memory->same_as, 1, "without its contents");
	REFUSED(sample.file[3].shared_memory->same_as, 0, "without its contents");
	sample.file[0].regular->deleted = 1;
	REFUSED(sample.file[0].regular->has_deleted, 1, "without its contents");
	sample.file[0].regular->deleted = 0;
}

static void user_faults(void **state)
{
	Kcr__UserFaultRange range = KCR__USER_FAULT_RANGE__INIT, *ranges = &range;
	Kcr__UserFault fault = KCR__USER_FAULT__INIT;
	Kcr__File saved = sample.file[2];
	uint64_t protect[3] = { 0, 10, 6 };
	Kcr__Mm *mm = sample.process[0].mm;
	Kcr__Vma *heap = mm->vma[1];

	(void)state;
	sample.file[2].kind_case = KCR__FILE__KIND_USER_FAULT;
	sample.file[2].user_fault = &fault;
	fault.pid = SAMPLE_PID;
	heap->flags |= KCR_VMA_UFFD;
	mm->user_fault = &ranges;
	mm->n_user_fault = 1;
	range.start = heap->start;
	range.end = heap->end;
	range.file_id = 3;
	range.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
	range.protect = protect;
	range.n_protect = 3;
	refused_expect(NULL);
	REFUSED(fault.pid, SAMPLE_SHARING_PID, "without its process");
	REFUSED(fault.pid, 12345, "without its process");
	REFUSED(range.file_id, 1, "without its userfaultfd");
	REFUSED(range.file_id, SAMPLE_FILES + 1, "without its userfaultfd");
	REFUSED(range.start, heap->start + CONTEXT_PAGE, "wrong memory area");
	REFUSED(range.end, heap->end - CONTEXT_PAGE, "wrong memory area");
	REFUSED(heap->flags, heap->flags & ~KCR_VMA_UFFD, "wrong memory area");
	REFUSED(heap->flags, heap->flags | KCR_VMA_SHARED, "wrong memory area");
	REFUSED(range.mode, 0, "unknown mode");
	REFUSED(range.mode, 7, "unknown mode");
	REFUSED(range.mode, UFFDIO_REGISTER_MODE_MISSING, "that it does not do");
	REFUSED(protect[2], 7, "beyond its memory area");
	REFUSED(protect[0], UINT64_MAX, "beyond its memory area");
	mm->n_user_fault = 0;
	mm->user_fault = NULL;
	heap->flags &= ~KCR_VMA_UFFD;
	sample.file[2] = saved;
}

static void policies(void **state)
{
	Kcr__MemoryPolicy policy = KCR__MEMORY_POLICY__INIT, *all = &policy;
	uint64_t nodes[KCR_POLICY_NODES / 64 + 1] = { 1 };
	Kcr__Thread *thread = sample.process[0].thread[0];
	Kcr__Mm *mm = sample.process[0].mm;

	(void)state;
	policy.nodes = nodes;
	policy.n_nodes = KCR_POLICY_NODES / 64;
	thread->policy = &policy;
	refused_expect(NULL);
	REFUSED(policy.n_nodes, KCR_POLICY_NODES / 64 + 1, "impossible nodes");
	policy.has_start = policy.has_end = true;
	policy.start = mm->vma[1]->start;
	policy.end = mm->vma[1]->end;
	refused_expect("wrong memory");
	thread->policy = NULL;
	mm->policy = &all;
	mm->n_policy = 1;
	refused_expect(NULL);
	REFUSED(policy.n_nodes, KCR_POLICY_NODES / 64 + 1, "impossible nodes");
	REFUSED(policy.end, policy.start, "wrong memory");
	REFUSED(policy.end, 0, "wrong memory");
	mm->n_policy = 0;
	mm->policy = NULL;
}

static void packets(void **state)
{
	char name[] = "a name of many bytes", slash[] = "a/b", good[] = "eth0", none[] = "";
	Kcr__PacketMembership member = KCR__PACKET_MEMBERSHIP__INIT, *members = &member;
	Kcr__PacketSocket packet = KCR__PACKET_SOCKET__INIT;
	Kcr__File saved = sample.file[2];
	uint8_t address[33] = {};

	(void)state;
	sample.file[2].kind_case = KCR__FILE__KIND_PACKET_SOCKET;
	sample.file[2].packet_socket = &packet;
	packet.type = SOCK_PACKET;
	packet.protocol = 0xffff;
	packet.interface = member.interface = good;
	packet.n_membership = 1;
	packet.membership = &members;
	member.count = CONTEXT_MEMBERSHIPS_MAX;
	member.address.data = address;
	member.address.len = 32;
	refused_expect(NULL);
	REFUSED(packet.type, SOCK_STREAM, "unknown type");
	REFUSED(packet.protocol, 0x10000, "protocol");
	REFUSED(packet.interface, name, "interface");
	REFUSED(packet.interface, slash, "interface");
	REFUSED(packet.interface, none, "interface");
	REFUSED(member.interface, name, "membership");
	REFUSED(member.type, 0x10000, "membership");
	REFUSED(member.count, 0, "membership");
	REFUSED(member.count, CONTEXT_MEMBERSHIPS_MAX + 1, "membership");
	REFUSED(member.address.len, 33, "membership");
	sample.file[2] = saved;
}

static void packet_rings(void **state)
{
	Kcr__PacketSocket packet = KCR__PACKET_SOCKET__INIT;
	Kcr__PacketPart part = KCR__PACKET_PART__INIT, *parts = &part;
	Kcr__PacketRing rx = KCR__PACKET_RING__INIT, tx = KCR__PACKET_RING__INIT;
	Kcr__File saved = sample.file[2];
	uint8_t data[768] = {};

	(void)state;
	sample.file[2].kind_case = KCR__FILE__KIND_PACKET_SOCKET;
	sample.file[2].packet_socket = &packet;
	packet.type = SOCK_RAW;
	packet.rx_ring = &rx;
	packet.tx_ring = &tx;
	packet.n_part = 1;
	packet.part = &parts;
	rx.block_size = tx.block_size = 8192;
	rx.block_nr = tx.block_nr = 2;
	rx.frame_nr = tx.frame_nr = 8;
	rx.next = 7;
	part.offset = 32000;
	part.data.data = data;
	part.data.len = sizeof(data);
	refused_expect(NULL);
	REFUSED(rx.next, 8, "ring");
	REFUSED(tx.next, 8, "ring");
	REFUSED(rx.has_sequence, true, "ring");
	REFUSED(rx.block_size, 8000, "ring");
	REFUSED(rx.block_size, 0, "ring");
	REFUSED(rx.block_nr, 0, "ring");
	REFUSED(tx.block_nr, 1, "too short");
	REFUSED(part.offset, 32001, "too short");
	REFUSED(part.offset, UINT64_MAX, "too short");
	packet.rx_ring = NULL;
	refused_expect("too short");
	sample.file[2] = saved;
}

static void numbers(void **state)
{
	(void)state;
	REFUSED(process(0)->pid, 0, "process number");
	REFUSED(process(0)->pid, -5, "process number");
	REFUSED(process(0)->pid, 1 << 23, "process number");
	REFUSED(process(0)->credentials->euid, UINT32_MAX, "impossible user");
	REFUSED(process(0)->credentials->sgid, UINT32_MAX, "impossible user");
	REFUSED(process(2)->pid, SAMPLE_SHARING_PID, "described twice");
	REFUSED(process(2)->pid, SAMPLE_TID, "described twice");
	REFUSED(process(0)->ppid, -1, "process number");
	REFUSED(process(0)->thread[0]->tid, 7, "first thread");
	REFUSED(process(0)->thread[1]->tid, SAMPLE_PID, "described twice");
	REFUSED(process(0)->thread[1]->tid, -1, "thread number");
	REFUSED(process(0)->state, 9, "unknown state");
	REFUSED(process(1)->stop_signal, 65, "stop signal");
}

static void circles(void **state)
{
	int32_t *saved = sample.preamble.root;

	(void)state;
	sample.preamble.n_root = 0;
	sample.preamble.root = NULL;
	REFUSED(process(0)->ppid, SAMPLE_PID, "each other's parents");
	REFUSED(process(0)->ppid, SAMPLE_SHARING_PID, "each other's parents");
	sample.preamble.root = saved;
	sample.preamble.n_root = 1;
}

static void zombies(void **state)
{
	(void)state;
	REFUSED(process(0)->state, KCR__PROCESS__STATE__ZOMBIE, "zombie");
	REFUSED(process(2)->state, KCR__PROCESS__STATE__RUNNING, "first thread");
	REFUSED(process(2)->exit_code, SIGSTOP, "impossible exit status");
	REFUSED(process(2)->exit_code, 0x100 | SIGKILL, "impossible exit status");
	REFUSED(process(2)->exit_code, 0x10000, "impossible exit status");
	REFUSED(process(0)->n_thread, 0, "first thread");
	REFUSED(process(0)->has_leader_exit_code, true, "first thread");
}

/* Its threads are the others, and none of them has its number. */
static void first_thread_ended(void **state)
{
	Kcr__Process *p = process(0);
	Kcr__Thread **all = p->thread;

	(void)state;
	p->has_leader_exit_code = true;
	p->leader_exit_code = 0x500;
	p->thread++;
	p->n_thread--;
	refused_expect(NULL);
	REFUSED(p->leader_exit_code, 9, "exit status");
	REFUSED(p->has_leader_exit_code, false, "first thread");
	REFUSED(p->n_thread, 0, "first thread");
	REFUSED(p->thread[0]->tid, p->pid, "first thread");
	REFUSED(p->thread[0]->tid, SAMPLE_SHARING_PID, "described twice");
	p->has_leader_exit_code = false;
	p->leader_exit_code = 0;
	p->thread = all;
	p->n_thread++;
}

static void threads(void **state)
{
	Kcr__Thread *t = process(0)->thread[0];
	uint64_t *header = (uint64_t *)(t->xstate.data + 512);
	Kcr__RestartBlock block = KCR__RESTART_BLOCK__INIT;
	ProtobufCBinaryData pending = { 5, (uint8_t *)"short" };
	Kcr__XstatePart part = KCR__XSTATE_PART__INIT, *parts = &part;

	part.bit = 2;
	part.offset = 576;
	part.length = 256;
	(void)state;
	REFUSED(t->n_reg, KCR_NR_REGS - 1, "registers");
	REFUSED(t->xstate.len, 512, "impossible length");
	REFUSED(t->xstate.len, 829, "impossible length");
	REFUSED(sample.preamble.xstate_size, 576, "impossible length");
	sample.preamble.n_xstate_part = 1;
	sample.preamble.xstate_part = &parts;
	REFUSED(part.offset, 512, "impossible layout");
	REFUSED(part.bit, 63, "impossible layout");
	sample.preamble.n_xstate_part = 0;
	REFUSED(header[0], 1 << 9, "unexpected features");
	REFUSED(header[1], 1ull << 63, "unknown form");
	REFUSED(header[7], 1, "unknown form");
	block.kind = 9;
	REFUSED(t->restart, &block, "system call");
	t->n_pending = 1;
	REFUSED(t->pending, &pending, "pending signal");
	t->n_pending = 0;
}

static void filters(void **state)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	Kcr__Filter filter = KCR__FILTER__INIT, *list[] = { &filter };
	Kcr__Thread *t = process(0)->thread[0];
	uint32_t number = 1;

	(void)state;
	filter.program.data = (uint8_t *)&allow;
	filter.program.len = sizeof(allow);
	filter.has_flags = true;
	sample.preamble.filter = list;
	sample.preamble.n_filter = 1;
	t->has_seccomp = true;
	t->seccomp = SECCOMP_MODE_FILTER;
	t->filter = &number;
	t->n_filter = 1;
	refused_expect(NULL);
	REFUSED(filter.program.len, 0, "impossible length");
	REFUSED(filter.program.len, 7, "impossible length");
	REFUSED(filter.flags, SECCOMP_FILTER_FLAG_NEW_LISTENER, "unknown flags");
	REFUSED(number, 0, "unknown seccomp filter");
	REFUSED(number, 2, "unknown seccomp filter");
	REFUSED(t->seccomp, SECCOMP_MODE_STRICT, "another seccomp mode");
	REFUSED(t->seccomp, 3, "unknown seccomp mode");
	REFUSED(t->n_filter, 0, "another seccomp mode");
	t->n_filter = 0;
	t->has_seccomp = false;
	t->seccomp = 0;
	sample.preamble.n_filter = 0;
}

static void clocks(void **state)
{
	Kcr__Clocks clocks = KCR__CLOCKS__INIT, *list[] = { &clocks, &clocks, &clocks, &clocks };
	Kcr__Process *p = process(0);

	(void)state;
	clocks.monotonic_ns = 5;
	clocks.boottime_ns = 6;
	sample.preamble.clocks = list;
	sample.preamble.n_clocks = 1;
	p->has_clocks = true;
	p->clocks = 1;
	refused_expect(NULL);
	REFUSED(p->clocks, 0, "unknown clocks");
	REFUSED(p->clocks, 2, "unknown clocks");
	REFUSED(clocks.monotonic_ns, INT64_MAX, "impossible time");
	REFUSED(clocks.boottime_ns, UINT64_MAX, "impossible time");
	REFUSED(sample.preamble.n_clocks, SAMPLE_PROCESSES + 1, "number of clocks");
	p->has_clocks = false;
	p->clocks = 0;
	sample.preamble.n_clocks = 0;
}

static void settings(void **state)
{
	Kcr__Thread *t = process(0)->thread[0];
	Kcr__Sched sched = KCR__SCHED__INIT, *before = t->sched;

	(void)state;
	sched.has_util_min = sched.has_util_max = process(0)->has_autogroup_nice = true;
	t->sched = &sched;
	REFUSED(sched.util_min, 1025, "impossible utilization");
	REFUSED(sched.util_max, 1025, "impossible utilization");
	t->sched = before;
	process(0)->has_mdwe = t->has_tsc = t->has_mce_kill = true;
	t->tsc = PR_TSC_SIGSEGV;
	process(0)->mdwe = 3;
	refused_expect(NULL);
	REFUSED(t->tsc, 3, "unknown settings");
	REFUSED(t->mce_kill, 3, "unknown settings");
	REFUSED(process(0)->mdwe, 4, "unknown settings");
	REFUSED(process(0)->autogroup_nice, 20, "impossible priority");
	REFUSED(process(0)->autogroup_nice, -21, "impossible priority");
	process(0)->has_autogroup_nice = false;
	process(0)->has_mdwe = t->has_tsc = t->has_mce_kill = false;
	process(0)->mdwe = t->tsc = 0;
}

static void areas(void **state)
{
	Kcr__Vma **vma = process(0)->mm->vma;
	Kcr__Record *record = process(0)->mm->record[0];
	char path[KCR_PATH_MAX + 1] = "";

	(void)state;
	REFUSED(vma[1]->start, SAMPLE_HEAP + 1, "impossible address");
	REFUSED(vma[1]->end, SAMPLE_HEAP, "impossible address");
	REFUSED(vma[1]->start, SAMPLE_TEXT, "impossible address");
	REFUSED(vma[4]->end, 0x7ffffffff000ull + CONTEXT_PAGE, "impossible address");
	REFUSED(vma[1]->flags, 1ull << 60, "unknown flags");
	REFUSED(vma[1]->flags, KCR_VMA_HUGETLB, "page size");
	REFUSED(vma[0]->file_id, SAMPLE_FILES + 1, "without its file");
	REFUSED(vma[1]->end, SAMPLE_HEAP + 3 * CONTEXT_PAGE, "outside");
	REFUSED(vma[1]->end, SAMPLE_HEAP + 2 * CONTEXT_PAGE, "record at");
	REFUSED(record->address, SAMPLE_HEAP + 1, "record at");
	REFUSED(record->address, SAMPLE_HEAP - CONTEXT_PAGE, "record at");
	REFUSED(record->address, -3ull * CONTEXT_PAGE, "record at");
	memset(path, '/', sizeof(path) - 1);
	REFUSED(record->restart_source, path, "path");
	vma[1]->has_offset = 1;
	REFUSED(vma[1]->offset, 1, "file offset");
	REFUSED(vma[1]->offset, INT64_MAX & ~4095ull, "file offset");
	vma[1]->has_offset = 0;
	vma[1]->has_pkey = process(0)->mm->has_keys = process(0)->mm->has_execute_key = 1;
	REFUSED(vma[1]->pkey, 16, "impossible protection key");
	REFUSED(process(0)->mm->keys, 1, "impossible protection keys");
	REFUSED(process(0)->mm->keys, 1 << 16, "impossible protection keys");
	REFUSED(process(0)->mm->execute_key, 16, "impossible protection keys");
	vma[1]->has_pkey = process(0)->mm->has_keys = process(0)->mm->has_execute_key = 0;
}

static void address_spaces(void **state)
{
	Kcr__Mm *mm = process(0)->mm;

	(void)state;
	REFUSED(process(0)->mm, NULL, "exactly once");
	REFUSED(process(1)->mm_id, 2, "exactly once");
	REFUSED(mm->id, 2, "another one's");
	REFUSED(mm->pid, SAMPLE_SHARING_PID, "another one's");
	REFUSED(mm->exe_file_id, 99, "executable");
	REFUSED(mm->auxv.len, 24, "auxiliary vector");
	REFUSED(process(0)->has_mm_id, 0, "without memory");
	process(1)->mm = mm;
	refused_expect("another one's");
	process(1)->mm = NULL;
}

static void descriptors(void **state)
{
	Kcr__Descriptor **descriptor = process(0)->descriptor;

	(void)state;
	REFUSED(descriptor[1]->fd, 3, "descriptor described twice");
	REFUSED(descriptor[1]->fd, -1, "descriptor number");
	REFUSED(descriptor[1]->fd, INT32_MAX, "descriptor number");
	REFUSED(descriptor[1]->file_id, 0, "without its file");
	REFUSED(descriptor[1]->file_id, 5, "without its file");
	process(1)->n_descriptor = 2;
	process(1)->descriptor = descriptor;
	refused_expect("described twice");
	process(1)->n_descriptor = 0;
	process(1)->descriptor = NULL;
}

static void handlers(void **state)
{
	Kcr__Timer timer = KCR__TIMER__INIT, *timers = &timer;

	(void)state;
	REFUSED(process(0)->n_action, 63, "signal handlers");
	REFUSED(process(0)->n_action, 0, "without signal handlers");
	REFUSED(process(1)->sighand_id, 7, "signal handlers");
	process(0)->n_timer = 1;
	process(0)->timer = &timers;
	timer.id = 3;
	refused_expect("timer");
	timer.id = 0;
	timer.kind = 5;
	refused_expect("timer");
	process(0)->n_timer = 0;
	refused_expect(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts), cmocka_unit_test(files),
		cmocka_unit_test(packets), cmocka_unit_test(packet_rings), cmocka_unit_test(user_faults),
		cmocka_unit_test(policies),
		cmocka_unit_test(numbers), cmocka_unit_test(circles), cmocka_unit_test(zombies),
		cmocka_unit_test(first_thread_ended),
		cmocka_unit_test(threads),
		cmocka_unit_test(filters), cmocka_unit_test(clocks),
		cmocka_unit_test(settings),
		cmocka_unit_test(areas),
		cmocka_unit_test(address_spaces),
		cmocka_unit_test(descriptors),
		cmocka_unit_test(handlers),
	};

	return cmocka_run_group_tests(tests, refused_setup, refused_teardown);
}
