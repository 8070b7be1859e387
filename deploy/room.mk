# SPDX-License-Identifier: GPL-2.0
# What a machine is told of the module: who may open the device (udev, and the group by
# systemd-sysusers), that it is loaded at boot, and the parameters to load it with; and
# what a shell is told of tools that are not where it looks (modulefile).

UDEVDIR    ?= $(PREFIX)/lib/udev/rules.d
SYSUSERDIR ?= $(PREFIX)/lib/sysusers.d
MODLOADDIR ?= $(PREFIX)/lib/modules-load.d
MODPROBDIR ?= $(PREFIX)/lib/modprobe.d
MODFILEDIR ?= $(PREFIX)/share/modulefiles

.PHONY: deploy-install
install: deploy-install

deploy-install:
	install -D -m 644 deploy/60-kcr.rules $(DESTDIR)$(UDEVDIR)/60-kcr.rules
	install -D -m 644 deploy/sysusers.conf $(DESTDIR)$(SYSUSERDIR)/kcr.conf
	install -D -m 644 deploy/modules-load.conf $(DESTDIR)$(MODLOADDIR)/kcr.conf
	install -D -m 644 deploy/modprobe.conf $(DESTDIR)$(MODPROBDIR)/kcr.conf

# Everybody finds /usr/bin, and must not find it first.
ifeq ($(filter /usr /usr/local,$(PREFIX)),)
.PHONY: modulefile-install
install: modulefile-install

modulefile-install:
	install -d $(DESTDIR)$(MODFILEDIR)/kcr
	sed $(foreach name,PREFIX BINDIR LIBDIR INCDIR PYTHONDIR VERSION,-e 's,@$(name)@,$($(name)),') \
		deploy/modulefile.in > $(DESTDIR)$(MODFILEDIR)/kcr/$(VERSION)
endif
