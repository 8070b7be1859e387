# SPDX-License-Identifier: LGPL-2.1-or-later
# libcr_run.so.0, which cr_run(1) preloads, and its sibling of libcr/omit/.
# They find libcr.so.0 in their own folder, or where a distribution has it (SHARED=1).
# The archives are for programs that are linked statically (-u cr_run_link_me -lcr_run
# -lcr).

LIBCR_PRELOADS := run omit
LIBCR_PRELOAD_SO := $(LIBCR_PRELOADS:%=$(B)/lib/libcr_%.so.0)
LIBCR_PRELOAD_A  := $(LIBCR_PRELOADS:%=$(B)/lib/libcr_%.a)
LIBCR_PRELOAD_OBJ := $(foreach n,$(LIBCR_PRELOADS),$(B)/user/libcr/$n/$n.o)

$(LIBCR_PRELOAD_OBJ): FILE_CFLAGS := -fPIC -Ilibcr/include

define libcr_preload_rule
$(B)/lib/libcr_$1.so.0: $(B)/user/libcr/$1/$1.o libcr/$1/libcr_$1.map | $(B)/lib/libcr.so
	$$(call say,LD)
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -shared -Wl,-soname,libcr_$1.so.0 -Wl,-z,defs \
		$(if $(SHARED),,-Wl,-rpath,'$$$$ORIGIN') -Wl,--version-script=libcr/$1/libcr_$1.map \
		-o $$@ $$< -L$(B)/lib -lcr -lpthread

$(B)/lib/libcr_$1.a: $(B)/user/libcr/$1/$1.o
	@mkdir -p $$(@D)
	$$(call say,AR)
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$<
endef
$(foreach n,$(LIBCR_PRELOADS),$(eval $(call libcr_preload_rule,$n)))

.PHONY: libcr-preload-install
user: $(LIBCR_PRELOAD_SO) $(LIBCR_PRELOAD_A)
install: libcr-preload-install

libcr-preload-install: $(LIBCR_PRELOAD_SO) $(LIBCR_PRELOAD_A)
	install -d $(DESTDIR)$(LIBDIR)
	install -m 755 $(LIBCR_PRELOAD_SO) $(DESTDIR)$(LIBDIR)
	install -m 644 $(LIBCR_PRELOAD_A) $(DESTDIR)$(LIBDIR)
	for name in $(LIBCR_PRELOADS); do \
		ln -sf libcr_$$name.so.0 $(DESTDIR)$(LIBDIR)/libcr_$$name.so || exit 1; \
	done

# Where cr_run looks, after the folder lib beside its own.
$(B)/gen/libdir.h: kcr-libdir
	@mkdir -p $(@D)
	@echo '#define KCR_LIBDIR "$(LIBDIR)"' | cmp -s - $@ || \
		echo '#define KCR_LIBDIR "$(LIBDIR)"' > $@
.PHONY: kcr-libdir
kcr-libdir:

$(B)/user/util/cr_run.o: $(B)/gen/libdir.h
