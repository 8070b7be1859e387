# SPDX-License-Identifier: GPL-2.0
# Starting the ranks of a job: every launch/cr_*.c is a program that has what it uses of the
# other files here, and of the coordinator and daemon in job/, linked in from an archive: there
# is a cr_rank for each rank, which must start fast, without libraries it does not use.

LAUNCH_PROGS := $(patsubst launch/%.c,$(B)/bin/%,$(wildcard launch/cr_*.c))
LAUNCH_OBJ   := $(patsubst %.c,$(B)/user/%.o,$(filter-out launch/cr_%,$(wildcard launch/*.c)))
LAUNCH_LIB   := $(B)/user/liblaunch.a

user: $(LAUNCH_PROGS)
install: launch-install

$(LAUNCH_LIB): $(LAUNCH_OBJ) $(call job_obj,coordinator secret)
	@mkdir -p $(@D)
	$(call say,AR)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(LAUNCH_PROGS): $(B)/bin/%: $(B)/user/launch/%.o $(LAUNCH_LIB) $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $< -Wl,--start-group $(LAUNCH_LIB) \
		$(ROOM_LIBS) -Wl,--end-group $(PROG_LIBS) $(SODIUM_LIBS) -lpthread -lm

.PHONY: launch-install
launch-install: $(LAUNCH_PROGS)
	install -d $(DESTDIR)$(BINDIR)
	install -m 755 $(LAUNCH_PROGS) $(DESTDIR)$(BINDIR)
