# SPDX-License-Identifier: GPL-2.0
# A job of several processes, whatever has started it.  The tools have this room's own
# files in an archive, like any room's; the components for Open MPI have the objects of
# its folders beside them.

# BLAKE2b, ChaCha20 and Poly1305, and little else.
SODIUM_LIBS := $(shell pkg-config --libs libsodium 2>/dev/null || echo -lsodium)

# Of one or more folders: . coordinator secret
job_obj = $(foreach d,$1,$(call room_obj,$(patsubst %/.,%,job/$d)))

# It waits for no generated header: the transport is built where there is no protoc-c.
$(B)/user/job/%.o: job/%.c Makefile job/room.mk
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<
