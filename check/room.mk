# SPDX-License-Identifier: GPL-2.0
# cr_check, which has what it needs of batch/ and util/ linked in.

CHECK_OBJ := $(call room_obj,check)

user: $(B)/bin/cr_check
install: check-install

$(B)/bin/cr_check: $(CHECK_OBJ) $(BATCH_OBJ) $(UTIL_OBJ) $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PROG_LIBS) -lpthread -lm

.PHONY: check-install
check-install: $(B)/bin/cr_check
	install -d $(DESTDIR)$(BINDIR)
	install -m 755 $(B)/bin/cr_check $(DESTDIR)$(BINDIR)
