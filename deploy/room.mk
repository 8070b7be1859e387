# SPDX-License-Identifier: GPL-2.0
# What a machine is told of the module: who may open the device (udev, and the group by
# systemd-sysusers), that it is loaded at boot, and the parameters to load it with; and
# what a shell is told of tools that are not where it looks (modulefile).

# udev, systemd and modprobe look for these below /usr/lib and /usr/local/lib, else in /etc only.
ORDINARY := $(filter /usr /usr/local,$(PREFIX:%/=%))
CONFDIR    ?= $(if $(ORDINARY),$(PREFIX)/lib,/etc)
UDEVDIR    ?= $(CONFDIR)/udev/rules.d
SYSUSERDIR ?= $(CONFDIR)/sysusers.d
MODLOADDIR ?= $(CONFDIR)/modules-load.d
MODPROBDIR ?= $(CONFDIR)/modprobe.d
MODFILEDIR ?= $(PREFIX)/share/modulefiles

.PHONY: deploy-install
install: deploy-install

deploy-install:
	install -D -m 644 deploy/60-kcr.rules $(DESTDIR)$(UDEVDIR)/60-kcr.rules
	install -D -m 644 deploy/sysusers.conf $(DESTDIR)$(SYSUSERDIR)/kcr.conf
	install -D -m 644 deploy/modules-load.conf $(DESTDIR)$(MODLOADDIR)/kcr.conf
ifneq ($(MODPROBDIR),/etc/modprobe.d)
	install -D -m 644 deploy/modprobe.conf $(DESTDIR)$(MODPROBDIR)/kcr.conf
else	# where it may be what the administrator has made of it
	[ -e $(DESTDIR)$(MODPROBDIR)/kcr.conf ] || \
		install -D -m 644 deploy/modprobe.conf $(DESTDIR)$(MODPROBDIR)/kcr.conf
endif

# Everybody finds /usr/bin, and must not find it first.
ifeq ($(ORDINARY),)
.PHONY: modulefile-install
install: modulefile-install

modulefile-install:
	install -d $(DESTDIR)$(MODFILEDIR)/kcr
	sed $(foreach name,PREFIX BINDIR LIBDIR INCDIR PYTHONDIR VERSION,-e 's,@$(name)@,$($(name)),') \
		deploy/modulefile.in > $(DESTDIR)$(MODFILEDIR)/kcr/$(VERSION)
endif
