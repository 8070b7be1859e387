# SPDX-License-Identifier: GPL-2.0
# Components for Open MPI, if its compiler wrapper is installed.  One folder is
# one component; it is built for the Open MPI that mpicc belongs to.

MPICC := $(shell command -v mpicc 2>/dev/null)

#: mpi              the components for Open MPI, in build/mpi/

.PHONY: mpi install-mpi
mpi:

ifneq ($(MPICC),)
all: mpi
install: install-mpi

MPI_INC := $(shell ompi_info --path incdir --parsable 2>/dev/null | sed 's/.*:incdir://')
MPI_LIBDIR := $(shell ompi_info --path libdir --parsable 2>/dev/null | sed 's/.*:libdir://')
MPI_LIB := $(shell ompi_info --path pkglibdir --parsable 2>/dev/null | sed 's/.*:pkglibdir://')

# Headers that a distribution forgot come last.  -mcx16 as Open MPI itself; the
# checkpoint thread outlives MPI_Finalize, which unloads components: nodelete.
# Python loads libmpi with its symbols hidden: every component names what it needs.
MPI_CFLAGS := -std=gnu11 -Wall -Wextra $(WERROR) -D_GNU_SOURCE \
	-DKCR_VERSION='"$(VERSION)"' -I. -isystem $(MPI_INC)/openmpi \
	-isystem $(MPI_INC) $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I pmix 2>/dev/null)) \
	-idirafter mpi-plugin/open-mpi-5 -fPIC -mcx16 -fvisibility=hidden -fno-strict-aliasing
MPI_LDFLAGS := -shared -Wl,-z,nodelete -Wl,-z,relro -Wl,--version-script=mpi-plugin/component.map

MPI_BTL := $(B)/mpi/mca_btl_cr.so
MPI_HOOK := $(B)/mpi/mca_hook_cr.so
MPI_OSC := $(B)/mpi/mca_osc_cr.so
MPI_COMPONENTS := $(MPI_BTL) $(MPI_HOOK) $(MPI_OSC)

mpi: $(MPI_COMPONENTS)

$(B)/user/mpi-plugin/%.o: mpi-plugin/%.c Makefile mpi-plugin/room.mk
	@mkdir -p $(@D)
	$(call say,MPICC)
	$(Q)$(CC) $(MPI_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

mpi_obj = $(foreach d,$1,$(patsubst %.c,$(B)/user/%.o,$(wildcard mpi-plugin/$d/*.c)))

$(MPI_BTL): $(call mpi_obj,btl) $(call job_obj,secret)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(MPI_LDFLAGS) -o $@ $^ -L$(MPI_LIBDIR) -lmpi -lopen-pal \
		$(SODIUM_LIBS)

$(MPI_HOOK): $(call mpi_obj,hook) $(B)/user/job/coordinator/wire_wait.o \
		$(call room_obj,proc)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(MPI_LDFLAGS) -o $@ $^ \
		-L$(MPI_LIBDIR) -lmpi -lopen-pal -lpmix -lpthread

$(MPI_OSC): $(call mpi_obj,osc)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(MPI_LDFLAGS) -o $@ $^ -L$(MPI_LIBDIR) -lmpi -lopen-pal

$(call room_obj,proc): FILE_CFLAGS := -fPIC

# For programs that ask for checkpoints themselves; it needs no MPI.
KCR_MPI_LIB := $(B)/lib/libkcr_mpi.so.0
mpi: $(KCR_MPI_LIB)

$(KCR_MPI_LIB): $(call mpi_obj,library)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libkcr_mpi.so.0 -Wl,-z,defs -o $@ $^ -ldl
	@ln -sf libkcr_mpi.so.0 $(@D)/libkcr_mpi.so

install-mpi: mpi
	$(if $(MPI_LIB),,$(error ompi_info does not say where Open MPI has its components))
	install -d $(DESTDIR)$(MPI_LIB) $(DESTDIR)$(LIBDIR) $(DESTDIR)$(INCDIR)
	install -m 755 $(KCR_MPI_LIB) $(DESTDIR)$(LIBDIR)
	ln -sf libkcr_mpi.so.0 $(DESTDIR)$(LIBDIR)/libkcr_mpi.so
	install -m 644 mpi-plugin/library/kcr_mpi.h $(DESTDIR)$(INCDIR)
	install -m 644 $(MPI_COMPONENTS) $(DESTDIR)$(MPI_LIB)
endif
