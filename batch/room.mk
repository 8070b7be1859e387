# SPDX-License-Identifier: GPL-2.0
# cr_batch: every batch/cr_*.c is a program that has the other files here, and those of
# util/, linked in.  slurm/ is for a site's Slurm: kcr.lua for its job_submit.lua and, where
# Slurm's headers are installed, the plugin for sbatch --kcr.

BATCH_PROGS := $(patsubst batch/%.c,$(B)/bin/%,$(wildcard batch/cr_*.c))
BATCH_OBJ   := $(patsubst %.c,$(B)/user/%.o,$(filter-out batch/cr_%,$(wildcard batch/*.c)))

SLURMDIR    ?= $(PREFIX)/share/kcr/slurm
SLURMINC    ?= /usr/include
SLURMLIBDIR ?= $(LIBDIR)/slurm

user: $(BATCH_PROGS)
install: batch-install

$(BATCH_PROGS): $(B)/bin/%: $(B)/user/batch/%.o $(BATCH_OBJ) $(UTIL_OBJ) $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PROG_LIBS) -lpthread -lm

.PHONY: batch-install
batch-install: $(BATCH_PROGS)
	install -d $(DESTDIR)$(BINDIR)
	install -m 755 $(BATCH_PROGS) $(DESTDIR)$(BINDIR)
	install -d $(DESTDIR)$(SLURMDIR)
	sed 's,@BINDIR@,$(BINDIR),' batch/slurm/kcr.lua.in > $(DESTDIR)$(SLURMDIR)/kcr.lua

ifneq ($(wildcard $(SLURMINC)/slurm/spank.h),)
SPANK     := $(B)/slurm/spank_kcr.so
SPANK_OBJ := $(addprefix $(B)/user/,batch/slurm/spank_kcr.o proc/duration.o)

user: $(SPANK)
install: spank-install

$(SPANK_OBJ): FILE_CFLAGS := -fPIC -isystem $(SLURMINC)

$(SPANK): $(SPANK_OBJ) batch/slurm/spank.map
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,relro -Wl,--version-script=batch/slurm/spank.map \
		-o $@ $(SPANK_OBJ)

.PHONY: spank-install
spank-install: $(SPANK)
	install -D -m 644 $(SPANK) $(DESTDIR)$(SLURMLIBDIR)/spank_kcr.so
else
.PHONY: no-spank
user: no-spank

no-spank:
	@echo "  There is no $(SLURMINC)/slurm/spank.h: the plugin for sbatch --kcr is not built"
endif
