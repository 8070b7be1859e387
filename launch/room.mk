# SPDX-License-Identifier: GPL-2.0
# Starting the ranks of a job: every launch/cr_*.c is a program that has the other files here,
# and the coordinator and daemon of job/, linked in.

LAUNCH_PROGS := $(patsubst launch/%.c,$(B)/bin/%,$(wildcard launch/cr_*.c))
LAUNCH_OBJ   := $(patsubst %.c,$(B)/user/%.o,$(filter-out launch/cr_%,$(wildcard launch/*.c)))

user: $(LAUNCH_PROGS)
install: launch-install

$(LAUNCH_PROGS): $(B)/bin/%: $(B)/user/launch/%.o $(LAUNCH_OBJ) \
		$(call job_obj,coordinator secret) $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PROG_LIBS) $(SODIUM_LIBS) -lpthread

.PHONY: launch-install
launch-install: $(LAUNCH_PROGS)
	install -d $(DESTDIR)$(BINDIR)
	install -m 755 $(LAUNCH_PROGS) $(DESTDIR)$(BINDIR)
