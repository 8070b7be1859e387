# SPDX-License-Identifier: GPL-2.0
# Test programs.  build/tests/NAME runs in the emulated machine; build/tests/unit
# and build/tests/fuzz hold the native ones, built with sanitizers together with
# the rooms they test.

T := $(B)/tests
TEST_SRC  := $(wildcard tests/programs/*.c)
TEST_BIN  := $(TEST_SRC:tests/programs/%.c=$(T)/%)
UNIT_BIN  := $(patsubst tests/unit/%.c,$(T)/unit/%,$(wildcard tests/unit/test_*.c))
UNIT_SHARED := $(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c))
FUZZ_BIN  := $(patsubst tests/fuzz/%.c,$(T)/fuzz/%,$(wildcard tests/fuzz/*.c))

.PHONY: test-programs
test-programs: $(TEST_BIN)
tests: test-programs $(UNIT_BIN) $(FUZZ_BIN)

# A program may ask for flags of its own in a line `kcr-build: -static …`.
$(T)/%: tests/programs/%.c $(wildcard tests/programs/*.h)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -I. -Ikmod/uapi -I$(B)/gen \
		-o $@ $< $(TEST_FLAGS) $$(sed -n 's,.*kcr-build: \([^*]*\).*,\1,p' $<) -lpthread -lrt -lm

# Several files: what attacks the module (tests/fuzz/ioctl/fuzz.h).
test-programs: $(T)/fuzz_ioctl
$(T)/fuzz_ioctl: $(wildcard tests/fuzz/ioctl/*.[ch])
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -Ikmod/uapi -static \
		-o $@ $(filter %.c,$^) -lpthread

test-programs: $(T)/fuzz_images
$(T)/fuzz_images: $(wildcard tests/fuzz/images/*.[ch]) $(call room_lib,image) $(call room_lib,proc) \
		$(call room_lib,report) $(call room_lib,arch/$(KCR_ARCH))
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) -O2 -g -o $@ $(filter %.c %.a,$^) $(PROG_LIBS)

# One of the programs that are restarted again and again (tests/soak/run).
test-programs: $(T)/soak_busy
$(T)/soak_busy: tests/soak/busy.c tests/programs/check.h
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -I. -o $@ $< -lpthread -lrt

# What uses libcr at random (tests/libcr/random.h), compiled as C and as C++.
test-programs: $(T)/libcr_random $(if $(shell command -v g++),$(T)/libcr_random_cxx)
$(T)/libcr_random: RANDOM_CC = $(CC) -std=gnu11
$(T)/libcr_random_cxx: RANDOM_CC = $(CXX) -x c++ -std=gnu++17
$(T)/libcr_random $(T)/libcr_random_cxx: $(wildcard tests/libcr/*.[ch] tests/programs/check.h) \
		libcr/include/libcr.h | $(B)/lib/libcr.so
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(RANDOM_CC) -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -I. -Ilibcr/include \
		-o $@ $(filter %.c,$^) -L$(B)/lib -lcr -Wl,-rpath,'$$ORIGIN/../lib' -lpthread

# Those named cr_* are linked with libcr.
LIBCR_TEST_BIN := $(filter $(T)/cr_%,$(TEST_BIN))
$(LIBCR_TEST_BIN): | $(B)/lib/libcr.so $(B)/lib/libcr.a $(LIBCR_PRELOAD_A) \
	$(LIBCR_PRELOAD_SO)
$(LIBCR_TEST_BIN): TEST_FLAGS := -Ilibcr/include -L$(B)/lib -lcr -Wl,-rpath,'$$ORIGIN/../lib'

# And this one has it inside.
$(T)/inside_secure: | $(B)/lib/libcr.a

# This one forges context files, with the rooms that write them.
$(T)/image_edit: tests/programs/image_edit.c $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) $(CFLAGS) -o $@ $< \
		-Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PKG_LIBS) -lpthread

# The Fortran module and what tests it, where there is a compiler.
test-programs: $(if $(shell command -v gfortran),$(T)/cr_fortran)
$(T)/cr_fortran: libcr/fortran/kcr.f90 tests/programs/binding.f90 | $(B)/lib/libcr.so
	@mkdir -p $(T)/fortran
	$(call say,FC)
	$(Q)gfortran -std=f2008 -fall-intrinsics -O2 -g -Wall -Wextra -Werror -J$(T)/fortran -o $@ $^ \
		-L$(B)/lib -lcr -Wl,-rpath,'$$ORIGIN/../lib'

# Smoke tests of other languages, where there are compilers for them.
SMOKE_BIN := $(if $(shell command -v g++),$(T)/smoke_cxx) \
	$(if $(shell command -v gfortran),$(T)/smoke_fortran) \
	$(if $(shell command -v go),$(T)/smoke_go) $(if $(shell command -v javac),$(T)/Smoke.class)
test-programs: $(SMOKE_BIN)

$(T)/smoke_cxx: tests/programs/smoke.cc
	$(CXX) -O2 -Wall -Wextra -Werror -o $@ $< -lpthread
$(T)/smoke_fortran: tests/programs/smoke.f90
	gfortran -O2 -o $@ $<
$(T)/smoke_go: tests/programs/smoke.go
	GOCACHE=$(abspath $(T))/go-cache GO111MODULE=off go build -o $@ $<
$(T)/Smoke.class: tests/programs/Smoke.java
	javac -d $(@D) $<
$(SMOKE_BIN): | $(T)
$(T):
	@mkdir -p $@

# ---- native, with sanitizers --------------------------------------------------

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CLANG    ?= clang

JOB_ROOMS := job/coordinator job/secret
NATIVE_SRC := $(filter-out util/cr_% batch/cr_% launch/cr_%,\
	$(foreach r,$(ROOMS) $(JOB_ROOMS) util batch launch,$(call room_src,$r)))
UNIT_OBJ := $(NATIVE_SRC:%.c=$(T)/asan/%.o) $(PROTO_GEN:$(B)/gen/%.c=$(T)/asan/gen/%.o)
FUZZ_SRC := $(foreach r,arch/$(KCR_ARCH) proc image report job $(JOB_ROOMS),$(call room_src,$r)) \
	restart/loading.c tests/unit/lone_rank.c
FUZZ_OBJ := $(FUZZ_SRC:%.c=$(T)/cov/%.o) $(PROTO_GEN:$(B)/gen/%.c=$(T)/cov/gen/%.o)
UNIT_CC = $(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) -O1 -g $(SANITIZE) -MMD -MP
FUZZ_CC = $(CLANG) $(filter-out -Werror,$(KCR_CFLAGS)) -w $(PKG_CFLAGS) -O1 -g $(SANITIZE) -MMD -MP

$(T)/asan/gen/%.o: $(B)/gen/%.c | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(UNIT_CC) -c -o $@ $<

$(T)/asan/%.o: %.c | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(UNIT_CC) $(FILE_CFLAGS) -c -o $@ $<

$(T)/cov/gen/%.o: $(B)/gen/%.c | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer-no-link -c -o $@ $<

$(T)/cov/%.o: %.c | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer-no-link $(FILE_CFLAGS) -c -o $@ $<

# The interpreter runs without a run-time library, whoever tests its callers.
$(T)/asan/rebuild/restorer.o: FILE_CFLAGS := $(RESTORER_CFLAGS) -fno-sanitize=all

$(T)/asan/rooms.a: $(UNIT_OBJ)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

$(T)/cov/rooms.a: $(FUZZ_OBJ)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

# tests/unit/test_X.c is a program; it takes what it uses of the other files there.
$(T)/asan/shared.a: $(UNIT_SHARED:%.c=$(T)/asan/%.o)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

$(T)/unit/test_spawn: private PKG_CFLAGS += -Ilibcr/include
$(T)/unit/%: tests/unit/%.c $(T)/asan/shared.a $(T)/asan/rooms.a $(wildcard tests/unit/*.h)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(UNIT_CC) -o $@ $< $(T)/asan/shared.a $(T)/asan/rooms.a $(PKG_LIBS) \
		$(SODIUM_LIBS) -lcmocka -lpthread -lm

$(T)/fuzz/%: tests/fuzz/%.c $(T)/cov/rooms.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer -o $@ $< $(T)/cov/rooms.a $(PKG_LIBS) $(SODIUM_LIBS) -lpthread -lm

# ---- benchmarks -----------------------------------------------------------------

BENCH_BIN := $(patsubst tests/bench/%.c,$(T)/bench/%,$(wildcard tests/bench/*.c))

bench-programs: $(BENCH_BIN)

$(T)/bench/critical: BENCH_FLAGS := -Ilibcr/include
$(T)/bench/critical: $(B)/lib/libcr.a

$(T)/bench/%: tests/bench/%.c $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(CC) $(KCR_CFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(BENCH_FLAGS) -o $@ $< \
		-Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(filter $(B)/lib/%,$^) $(PKG_LIBS) -ldl -lpthread
