# SPDX-License-Identifier: GPL-2.0
# A job of several processes, whatever has started it.  The tools link this room's own
# files from an archive, like any room's; the Open MPI components link the objects of
# its folders as well.

# BLAKE2b, ChaCha20 and Poly1305, and little else.
SODIUM_LIBS := $(shell pkg-config --libs libsodium 2>/dev/null || echo -lsodium)

# Of one or more folders: . coordinator secret
job_obj = $(foreach d,$1,$(call room_obj,$(patsubst %/.,%,job/$d)))

# No dependency on generated headers: the transport is built without protoc-c.
$(B)/user/job/%.o: job/%.c Makefile job/room.mk
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<
