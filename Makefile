# SPDX-License-Identifier: GPL-2.0
# KCR: the module, the tools and their tests.  `make help` lists the targets.
#
# Everything is built under build/: the module in build/<kernel version>/, so
# that it can be built for several kernels side by side; objects and archives
# of the user-level rooms in build/user/, programs in build/bin/.

PREFIX  ?= /usr
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
INCDIR  ?= $(PREFIX)/include
COMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# dkms looks nowhere else.
SRCDIR  ?= /usr/src
DESTDIR ?=

B := build
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

# ---- the kernel to build for --------------------------------------------------

# Headers of the running kernel, else the newest installed ones.
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
	$(shell ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | sort -rV))
KVER := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h 2>/dev/null)
KOBJ := $(B)/$(KVER)
# Some kernels can only be built with the compiler and tools of their own
# suite: tests/vm/kernel-fetch leaves a wrapper that runs them in a root of
# its own.
KRUN := $(wildcard $(KDIR)/kcr-build-env)
# That root has its own /usr/src.
KPATH := $(if $(KRUN),/usr/src/$(notdir $(abspath $(KDIR))),$(abspath $(KDIR)))
# STRICT=0: warnings do not end the build, of the module or of anything else.
WERROR := $(if $(filter 0,$(STRICT)),,-Werror)
KMAKE = $(KRUN) $(MAKE) -C $(KPATH) M=$(CURDIR)/$(KOBJ) W=1 KCFLAGS=$(WERROR)

# ---- the user-level rooms -----------------------------------------------------

# The one folder that knows the processor: to bring another, write its like.
KCR_ARCH := x86
include arch/$(KCR_ARCH)/arch.mk

ROOMS := arch/$(KCR_ARCH) proc image rebuild resource checkpoint restart device report job migrate
PKGS  := libprotobuf-c libzstd liblz4 libcjson

CC      ?= gcc
CFLAGS  ?= -O2 -g
KCR_CFLAGS := -std=gnu11 -Wall -Wextra $(WERROR) -D_GNU_SOURCE \
	-DKCR_VERSION='"$(VERSION)"' -DXXH_INLINE_ALL -I. -I$(B)/gen -Ikmod/uapi \
	-Iarch/$(KCR_ARCH)/include
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
# The programs take what they can from the archives: to load four libraries is a
# tenth of a short command's time.  SHARED=1 loads them, as a distribution wants.
archive     = $(if $(SHARED),,$(filter /%,$(shell $(CC) -print-file-name=lib$(1:-l%=%).a)))
PROG_LIBS  := $(foreach l,$(PKG_LIBS),$(or $(if $(filter -l%,$l),$(call archive,$l)),$l))

# The interpreter that rebuilds an address space from within (rebuild/restorer.c)
# runs with no C library, no stack protector and at any address.
RESTORER_CFLAGS := -fPIC -ffreestanding -fno-builtin -fno-stack-protector \
	-fno-tree-loop-distribute-patterns -fno-jump-tables -U_FORTIFY_SOURCE -O2 \
	$(ARCH_RESTORER_CFLAGS)

PROTO     := $(wildcard image/proto/*.proto)
PROTO_GEN := $(PROTO:image/proto/%.proto=$(B)/gen/%.pb-c.c)
PROTO_HDR := $(PROTO_GEN:.c=.h)

room_src  = $(wildcard $1/*.c)
room_obj  = $(patsubst %.c,$(B)/user/%.o,$(call room_src,$1))
room_lib  = $(if $(call room_src,$1),$(B)/user/lib$1.a)
ROOM_LIBS := $(foreach r,$(ROOMS),$(call room_lib,$r))

# Every util/cr_*.c is a program; the other files of util/ are shared by them.
PROGS     := $(patsubst util/%.c,$(B)/bin/%,$(wildcard util/cr_*.c))
UTIL_OBJ  := $(patsubst %.c,$(B)/user/%.o,$(filter-out util/cr_%,$(wildcard util/*.c)))

# One short line per step; V=1 shows the commands.
Q    := $(if $(V),,@)
say   = $(if $(V),,@printf '  %-8s%s\n' $1 $(or $2,$@))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all module user tests install modules_install clean distclean check \
	dkms_install check-long check-kernels check-debug lint demo bench soak deb rpm deps \
	help kmod-farm

all: module user

help:
	@sed -n 's/^#: //p' Makefile */room.mk

# ---- targets --------------------------------------------------------------
#: all              the module and the programs
#: module           build/<kernel>/kcr.ko; KDIR= chooses the headers
#: user             the programs, in build/bin/
#: kmod/X.o         one object of the module
#: tests            the test programs, in build/tests/
#: install          DESTDIR= PREFIX=/usr: programs, manual pages, completion, deploy/
#: modules_install  the module, into the kernel's own folder
#: dkms_install     the module's sources, to /usr/src for dkms
#: deb              Debian packages, in build/deb/
#: rpm              rpm packages, in build/rpm/RPMS/
#: check            the tests; the module runs in the emulated machine
#: check-long       those that it leaves out, as they take longest
#: check-kernels    build and core tests on 5.10, 6.1, 6.12 and the newest
#: check-debug      core tests under a kernel with KASAN and lockdep
#: lint             the sources, looked at by tools of others
#: demo, bench      see tests/demo/ and tests/bench/
#: soak             checkpoints and restarts for ten minutes, or KCR_SOAK_SECONDS=
#: deps             installs the Debian packages that all this needs

# ---- module -------------------------------------------------------------------

# A mirror of the sources by links: kbuild puts objects beside its sources.
kmod-farm:
	@test -n "$(KVER)" || { echo "No kernel headers: install linux-headers-amd64 or set KDIR=" >&2; exit 1; }
	@mkdir -p $(KOBJ)
	@find $(KOBJ) -xtype l -delete
	@cp -rsf $(CURDIR)/Kbuild $(CURDIR)/kmod $(KOBJ)/

module: kmod-farm
	+@$(KMAKE) modules

kmod/%.o: kmod-farm
	+@$(KMAKE) $@

modules_install: module
	+$(KMAKE) $(if $(DESTDIR),INSTALL_MOD_PATH=$(abspath $(DESTDIR))) modules_install

dkms_install:
	rm -rf $(DESTDIR)$(SRCDIR)/kcr-$(VERSION)
	install -d $(DESTDIR)$(SRCDIR)/kcr-$(VERSION)
	cp -r Kbuild dkms.conf kmod $(DESTDIR)$(SRCDIR)/kcr-$(VERSION)

# ---- user ---------------------------------------------------------------------

user: $(PROGS)

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: image/proto/%.proto
	@mkdir -p $(B)/gen
	$(call say,PROTOC)
	$(Q)protoc-c --proto_path=image/proto --c_out=$(B)/gen $<

$(B)/user/%.o: %.c Makefile | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(FILE_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/user/gen/%.o: $(B)/gen/%.c Makefile | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/user/rebuild/restorer.o: FILE_CFLAGS := $(RESTORER_CFLAGS)

PROTO_OBJ := $(PROTO_GEN:$(B)/gen/%.c=$(B)/user/gen/%.o)

define room_rule
$(B)/user/lib$1.a: $(call room_obj,$1) $(if $(filter image,$1),$(PROTO_OBJ))
	$$(call say,AR)
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(if $(call room_src,$r),$(eval $(call room_rule,$r))))

$(PROGS): $(B)/bin/%: $(B)/user/util/%.o $(UTIL_OBJ) $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PROG_LIBS) -lpthread

-include $(wildcard */room.mk)
-include tests/tests.mk		# whose prerequisites are what the rooms name
-include $(wildcard tests/mpi/*.mk)

install: user
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(INCDIR)/linux
	install -m 755 $(PROGS) $(DESTDIR)$(BINDIR)
	install -m 644 $(wildcard kmod/uapi/linux/*.h) $(DESTDIR)$(INCDIR)/linux
	for page in $(MAN_PAGES); do \
		install -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; \
	done
	install -d $(DESTDIR)$(COMPDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	install -m 644 $(wildcard util/completion/cr_*) $(DESTDIR)$(COMPDIR)
	install -m 644 $(wildcard util/completion/zsh/_*) $(DESTDIR)$(ZSHDIR)
	install -m 644 $(wildcard util/completion/fish/*.fish) $(DESTDIR)$(FISHDIR)

# ---- Debian packages ------------------------------------------------------------

# Built from a copy, so that nothing of the build is left among the sources.
deb:
	@tests/deps deb
	rm -rf $(B)/deb
	mkdir -p $(B)/deb/kcr-$(VERSION)
	tar -c --exclude-vcs --exclude=./build . | tar -x -C $(B)/deb/kcr-$(VERSION)
	cd $(B)/deb/kcr-$(VERSION) && dpkg-buildpackage --no-sign -Jauto
	rm -rf $(B)/deb/kcr-$(VERSION)

# ---- rpm packages -----------------------------------------------------------------

# Where rpm does not know what is installed it cannot look for what the build needs.
RPMFLAGS ?= $(if $(wildcard /etc/debian_version),--nodeps)

rpm:
	$(if $(wildcard /etc/debian_version),@tests/deps rpm)
	rm -rf $(B)/rpm
	mkdir -p $(B)/rpm/SOURCES
	tar -czf $(B)/rpm/SOURCES/kcr-$(VERSION).tar.gz --exclude-vcs --exclude=./build \
		--owner=0 --group=0 --transform='flags=r;s,^\.,kcr-$(VERSION),' .
	rpmbuild -ba --define '_topdir $(CURDIR)/$(B)/rpm' $(RPMFLAGS) rpm/kcr.spec

# ---- tests --------------------------------------------------------------------

deps:
	tests/deps

check check-long check-kernels check-debug lint demo bench soak deb rpm: export MAKEFLAGS =

check:
	@tests/deps
	@tests/run

lint:
	@tests/deps lint
	@tests/lint/run

check-long:
	@tests/deps
	@tests/run --long

check-kernels:
	@tests/deps kernels
	@tests/run --kernels

check-debug:
	@tests/deps
	@tests/run --kernel debug --core

demo:
	@tests/deps
	@tests/demo/run

bench:
	@tests/deps bench
	@tests/bench/run

# KERNEL= chooses another one, as tests/run --kernel.
soak:
	@tests/deps
	@tests/soak/run $(if $(KERNEL),--kernel $(KERNEL))

# Downloaded and built kernels and system images survive `clean`.
clean:
	rm -rf $(B)/user $(B)/gen $(B)/bin $(B)/tests $(filter-out $(B)/kernels $(B)/vm $(B)/apt $(B)/packages,$(wildcard $(B)/*))

distclean:
	rm -rf $(B)

-include $(shell find $(B)/user $(B)/tests -name '*.d' 2>/dev/null)
