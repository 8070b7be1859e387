# SPDX-License-Identifier: LGPL-2.1-or-later
# The Python binding, one file for every version of Python 3.

PYTHONDIR ?= $(PREFIX)/lib/python3/dist-packages

.PHONY: libcr-python-install
install: libcr-python-install

libcr-python-install:
	install -D -m 644 libcr/python/kcr.py $(DESTDIR)$(PYTHONDIR)/kcr.py
