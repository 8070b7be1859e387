# SPDX-License-Identifier: GPL-2.0
# cr_batch: every batch/cr_*.c is a program that has the other files here, and those of
# util/, linked in.  slurm/ is for a site's job_submit.lua.

BATCH_PROGS := $(patsubst batch/%.c,$(B)/bin/%,$(wildcard batch/cr_*.c))
BATCH_OBJ   := $(patsubst %.c,$(B)/user/%.o,$(filter-out batch/cr_%,$(wildcard batch/*.c)))

SLURMDIR ?= $(PREFIX)/share/kcr/slurm

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
