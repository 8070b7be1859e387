# SPDX-License-Identifier: LGPL-2.1-or-later
# libcr.so.0, libcr.a, their headers, libcr.pc.  The folders libcr/*/ have what
# is built beside the library, each with a room.mk of its own.

LIBDIR ?= $(PREFIX)/lib

LIBCR_OBJ := $(patsubst %.c,$(B)/user/%.o,$(wildcard libcr/*.c))
LIBCR     := $(B)/lib/libcr.so.0 $(B)/lib/libcr.so $(B)/lib/libcr.a

$(LIBCR_OBJ): FILE_CFLAGS := -fPIC -ftls-model=initial-exec -Ilibcr/include

$(B)/lib/libcr.so.0: $(LIBCR_OBJ) libcr/libcr.map
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcr.so.0 -Wl,-z,defs \
		-Wl,--version-script=libcr/libcr.map -o $@ $(LIBCR_OBJ) -lpthread -ldl

$(B)/lib/libcr.so: $(B)/lib/libcr.so.0
	@ln -sf libcr.so.0 $@

$(B)/lib/libcr.a: $(LIBCR_OBJ)
	@mkdir -p $(@D)
	$(call say,AR)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

.PHONY: libcr libcr-install
libcr: $(LIBCR)
user: libcr
install: libcr-install

libcr-install: libcr
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCDIR)
	install -m 755 $(B)/lib/libcr.so.0 $(DESTDIR)$(LIBDIR)
	ln -sf libcr.so.0 $(DESTDIR)$(LIBDIR)/libcr.so
	install -m 644 $(B)/lib/libcr.a $(DESTDIR)$(LIBDIR)
	sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' -e 's,@INCDIR@,$(INCDIR),' \
		-e 's,@VERSION@,$(VERSION),' libcr/libcr.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/libcr.pc
	install -m 644 libcr/include/libcr.h libcr/include/blcr_common.h \
		libcr/include/kcr.h $(DESTDIR)$(INCDIR)

-include $(wildcard libcr/*/room.mk)
