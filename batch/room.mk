# SPDX-License-Identifier: GPL-2.0
# cr_batch: every batch/cr_*.c is a program that has the other files here, and those of
# util/, linked in.

BATCH_PROGS := $(patsubst batch/%.c,$(B)/bin/%,$(wildcard batch/cr_*.c))
BATCH_OBJ   := $(patsubst %.c,$(B)/user/%.o,$(filter-out batch/cr_%,$(wildcard batch/*.c)))

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
