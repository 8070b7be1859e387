# SPDX-License-Identifier: GPL-2.0
# What a machine is told of the module: who may open the device (udev, and the group by
# systemd-sysusers), that it is loaded at boot, and the parameters to load it with.

UDEVDIR    ?= $(PREFIX)/lib/udev/rules.d
SYSUSERDIR ?= $(PREFIX)/lib/sysusers.d
MODLOADDIR ?= $(PREFIX)/lib/modules-load.d
MODPROBDIR ?= $(PREFIX)/lib/modprobe.d

.PHONY: deploy-install
install: deploy-install

deploy-install:
	install -D -m 644 deploy/60-kcr.rules $(DESTDIR)$(UDEVDIR)/60-kcr.rules
	install -D -m 644 deploy/sysusers.conf $(DESTDIR)$(SYSUSERDIR)/kcr.conf
	install -D -m 644 deploy/modules-load.conf $(DESTDIR)$(MODLOADDIR)/kcr.conf
	install -D -m 644 deploy/modprobe.conf $(DESTDIR)$(MODPROBDIR)/kcr.conf
