// SPDX-License-Identifier: GPL-2.0
/* Thread-local storage.  See arch/thread.h. */
#include "arch/thread.h"

#include <asm/prctl.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/registers.h"

#ifndef ARCH_REQ_XCOMP_PERM
#define ARCH_REQ_XCOMP_PERM	0x1023	/* Linux 5.16 */
#endif
#define TILE_DATA		18	/* component of the XSAVE area */

void arch_tls_calls(const uint64_t *regs, struct arch_tls_call call[ARCH_NR_TLS_CALLS])
{
	call[0] = (struct arch_tls_call){
		"arch_prctl(ARCH_SET_FS)", SYS_arch_prctl,
		{ ARCH_SET_FS, regs[ARCH_REGISTER(fs_base)] },
	};
	call[1] = (struct arch_tls_call){
		"arch_prctl(ARCH_SET_GS)", SYS_arch_prctl,
		{ ARCH_SET_GS, regs[ARCH_REGISTER(gs_base)] },
	};
}

int arch_request_amx(void)
{
	return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) < 0 ? -errno : 0;
}
