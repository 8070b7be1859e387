# SPDX-License-Identifier: LGPL-2.1-or-later
# The Fortran module: installed as a source, as every compiler has module files
# of its own.

.PHONY: libcr-fortran-install
install: libcr-fortran-install

libcr-fortran-install:
	install -D -m 644 libcr/fortran/kcr.f90 $(DESTDIR)$(INCDIR)/kcr.f90
