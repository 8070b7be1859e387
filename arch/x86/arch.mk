# SPDX-License-Identifier: GPL-2.0
# Compiler flags of single files.

# For the code that runs with nothing mapped but itself.
ARCH_RESTORER_CFLAGS := -mgeneral-regs-only -fcf-protection=none

$(B)/user/arch/x86/hash_avx2.o: FILE_CFLAGS := -mavx2
