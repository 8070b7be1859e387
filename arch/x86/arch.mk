# SPDX-License-Identifier: GPL-2.0
# Compiler flags for the code that runs with nothing mapped but itself.

ARCH_RESTORER_CFLAGS := -mgeneral-regs-only -fcf-protection=none
